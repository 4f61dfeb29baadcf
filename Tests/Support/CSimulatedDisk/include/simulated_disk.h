// A disk in memory that remembers what was synced. It is one machine's file system for whatever works on it: by the
// calls below, and through SQLite by the VFS that `sd_mount` gives it a place in. Every change is an operation in a
// log; from the log `sd_walk` builds what a power cut could leave at any moment.
//
// The model is POSIX at its weakest: a write is safe only after a sync of its file, a name only after a sync of its
// directory, whichever comes first; until then any subset of the changes may be found, writes torn at 512 bytes. A
// change whose sync failed is never safe again, whatever later syncs answer, as on Linux.
#pragma once

#include <stddef.h>
#include <stdint.h>

/// The files, names and log of one machine.
typedef struct sd_disk sd_disk;

/// What a file is.
typedef struct {
  uint32_t inode;
  int is_directory;
  int64_t size;
  uint32_t links;
  uint32_t mode;
  int64_t modified;
  /// Does any SQLite connection have it open?
  int is_open;
} sd_status;

/// Kinds of calls that can be made to fail.
enum {
  SD_CHANGES = 1,
  SD_SYNCS = 2,
  SD_READS = 4,
};

/// An empty disk. `device` is the number of its file system, and stays that of every image made from it.
sd_disk *sd_make(uint32_t device);
/// A disk with the same content, everything on it safe, and an empty log.
sd_disk *sd_copy(const sd_disk *disk);
/// Nobody has a file of it open any more.
void sd_free(sd_disk *disk);

/// Puts the disk under the path `/simulated-disk-<number>`, for SQLite also; the number is the same for a disk and its
/// images, so only one of them is mounted at a time. Answers 0, or -1 when the place is taken.
int sd_mount(sd_disk *disk);
/// Takes it away. Answers how many files SQLite still has open: 0, or somebody leaks a connection.
int sd_unmount(sd_disk *disk);
uint32_t sd_device(const sd_disk *disk);

/// The number of power cuts the disk has seen; it stands for the kernel's boot id.
uint32_t sd_boot(const sd_disk *disk);

// File calls; each answers 0 or an errno. Paths are absolute and below the mount point.

int sd_stat(sd_disk *disk, const char *path, sd_status *status);
/// The names in a directory, each with its end, into `buffer`; `*length` is what is used.
int sd_list(sd_disk *disk, const char *path, char *buffer, size_t capacity, size_t *length);
/// Reads from the beginning at most `capacity` bytes; `*length` is the size of the file.
int sd_read(sd_disk *disk, const char *path, void *buffer, size_t capacity, size_t *length);
int sd_create(sd_disk *disk, const char *path, uint32_t mode);
int sd_write(sd_disk *disk, const char *path, const void *bytes, size_t length, int64_t offset);
int sd_truncate(sd_disk *disk, const char *path, int64_t size);
int sd_set_mode(sd_disk *disk, const char *path, uint32_t mode);
int sd_make_directory(sd_disk *disk, const char *path, uint32_t mode);
int sd_link(sd_disk *disk, const char *existing, const char *path);
int sd_rename(sd_disk *disk, const char *old, const char *path, int replaces);
int sd_unlink(sd_disk *disk, const char *path);
int sd_remove_directory(sd_disk *disk, const char *path);
int sd_sync_file(sd_disk *disk, const char *path);
int sd_sync_directory(sd_disk *disk, const char *path);

// Faults. Calls of the asked kinds are counted from 1, those that SQLite makes too.

/// Fails the call with that number, and with `is_sticky` all after it; 0 fails none. Starts the count anew.
void sd_fail_at(sd_disk *disk, int64_t number, int is_sticky, int code, int kinds);
/// Lets the sync with that number, of files and directories, answer that it was made although it was not; 0 none.
void sd_skip_sync(sd_disk *disk, int64_t number);
/// Calls counted since `sd_fail_at`.
int64_t sd_calls(const sd_disk *disk);
/// Syncs asked for since `sd_skip_sync`.
int64_t sd_syncs(const sd_disk *disk);
/// What the last call that failed or lied was, as "sync Library.sqlite".
const char *sd_last_fault(const sd_disk *disk);
/// How often a file was opened and closed beside a SQLite lock on it: on a real disk each time the lock is lost.
int64_t sd_lost_locks(const sd_disk *disk);
const char *sd_lost_lock(const sd_disk *disk);

// The log.

/// Operations so far: a moment between two of them.
int64_t sd_moment(const sd_disk *disk);
/// Forgets the log: everything is safe now.
void sd_settle(sd_disk *disk);
/// What the operation with that index was.
const char *sd_operation(const sd_disk *disk, int64_t index, char *buffer, size_t capacity);

/// Goes through the log of a disk from its beginning.
typedef struct sd_walk sd_walk;
/// What becomes of an operation that is not safe.
enum {
  SD_DROPPED = 0,
  SD_KEPT = 1,
  /// Of a write: the file gets longer, and what is written is not there.
  SD_ZEROED = 2,
  /// Of a write: each 512 bytes are there or not, by the seed.
  SD_TORN = 3,
};
/// Kinds of operations that are not safe.
enum { SD_IS_CONTENT = 0, SD_IS_NAME = 1 };

/// Starts before the first operation of the disk's log. The disk stays, and does not change meanwhile.
sd_walk *sd_walk_make(const sd_disk *disk);
void sd_walk_free(sd_walk *walk);
/// Makes the next operation; 0 when there is none.
int sd_walk_step(sd_walk *walk);
/// How many operations are not safe at this moment, oldest first.
size_t sd_walk_pending(const sd_walk *walk);
int sd_walk_kind(const sd_walk *walk, size_t index);
uint32_t sd_walk_object(const sd_walk *walk, size_t index);
/// The disk after a power cut at this moment, with one of SD_DROPPED… for each operation that is not safe.
sd_disk *sd_walk_image(const sd_walk *walk, const uint8_t *choices, uint64_t seed);
/// The disk at this moment if only the process dies: nothing is lost, and the boot is the same.
sd_disk *sd_walk_killed(const sd_walk *walk);
/// Names, contents, modes, links and boot in one number: equal for disks nobody can tell apart.
uint64_t sd_digest(sd_disk *disk);
