// A disk in memory that records what was synced. It is one machine's file system for all code that uses it: by the
// calls below, and through SQLite by the VFS, once `sd_mount` has mounted it. Every change is an operation in a log;
// from the log `sd_walk` builds the states that a power cut could leave at any moment.
//
// The model is POSIX at its weakest: a write is safe only after a sync of its file, a name only after a sync of its
// directory, whichever comes first; until then any subset of the changes may be found, writes torn at 512 bytes. A
// change whose sync failed is never safe again, whatever later syncs return, as on Linux.
// change whose sync failed is never safe again, whatever later syncs answer, as on Linux.
#pragma once

#include <stddef.h>
#include <stdint.h>

/// The files, names and log of one machine.
typedef struct sd_disk sd_disk;

/// The status of a file.
typedef struct {
  uint32_t inode;
  int is_directory;
  int64_t size;
  uint32_t links;
  uint32_t mode;
  int64_t modified;
  /// Whether any SQLite connection has it open.
  int is_open;
} sd_status;

/// Kinds of calls that can be made to fail.
enum {
  SD_CHANGES = 1,
  SD_SYNCS = 2,
  SD_READS = 4,
};

/// Makes an empty disk. `device` is the number of its file system, which all images made from it share.
sd_disk *sd_make(uint32_t device);
/// Returns a disk with the same content, all of it safe, and an empty log.
sd_disk *sd_copy(const sd_disk *disk);
/// Frees a disk whose files are all closed.
void sd_free(sd_disk *disk);

/// Mounts the disk under the path `/simulated-disk-<number>`, for SQLite also; the number is the same for a disk and
/// its images, so only one of them is mounted at a time. Returns 0, or -1 if the path is taken.
int sd_mount(sd_disk *disk);
/// Unmounts it. Returns how many files SQLite still has open: 0, unless a connection leaks.
int sd_unmount(sd_disk *disk);
uint32_t sd_device(const sd_disk *disk);

/// The number of power cuts of the disk; it represents the kernel's boot id.
uint32_t sd_boot(const sd_disk *disk);

// File calls; each returns 0 or an errno. Paths are absolute and below the mount point.

int sd_stat(sd_disk *disk, const char *path, sd_status *status);
/// Writes the names in a directory, each with its terminator, into `buffer`; `*length` is the used length.
int sd_list(sd_disk *disk, const char *path, char *buffer, size_t capacity, size_t *length);
/// Reads at most `capacity` bytes from the beginning; `*length` is the size of the file.
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

// Faults. Calls of the given kinds are counted from 1, including SQLite's.

/// Makes the call with that number fail, and with `is_sticky` all after it; 0 fails none. Restarts the count.
void sd_fail_at(sd_disk *disk, int64_t number, int is_sticky, int code, int kinds);
/// Makes the sync with that number, of files and directories, report success without syncing; 0 skips none.
void sd_skip_sync(sd_disk *disk, int64_t number);
/// Calls counted since `sd_fail_at`.
int64_t sd_calls(const sd_disk *disk);
/// Syncs requested since `sd_skip_sync`.
int64_t sd_syncs(const sd_disk *disk);
/// The last call that failed or was skipped, as "sync Library.sqlite".
const char *sd_last_fault(const sd_disk *disk);
/// How often a file was opened and closed while SQLite had a lock on it: on a real disk this drops the lock.
int64_t sd_lost_locks(const sd_disk *disk);
const char *sd_lost_lock(const sd_disk *disk);

// The log.

/// The number of operations so far: a moment between two of them.
int64_t sd_moment(const sd_disk *disk);
/// Forgets the log: everything is safe from here on.
void sd_settle(sd_disk *disk);
/// Describes the operation with that index.
const char *sd_operation(const sd_disk *disk, int64_t index, char *buffer, size_t capacity);

/// Reads the log of a disk from its beginning.
typedef struct sd_walk sd_walk;
/// The choices for an operation that is not safe.
enum {
  SD_DROPPED = 0,
  SD_KEPT = 1,
  /// For a write: the file gets longer, but without the written bytes.
  SD_ZEROED = 2,
  /// For a write: each block of 512 bytes is written or not, by the seed.
  SD_TORN = 3,
};
/// Kinds of operations that are not safe.
enum { SD_IS_CONTENT = 0, SD_IS_NAME = 1 };

/// Starts before the first operation of the disk's log. The disk must stay and not change meanwhile.
sd_walk *sd_walk_make(const sd_disk *disk);
void sd_walk_free(sd_walk *walk);
/// Applies the next operation; returns 0 if there is none.
int sd_walk_step(sd_walk *walk);
/// The number of operations that are not safe at this moment, oldest first.
size_t sd_walk_pending(const sd_walk *walk);
int sd_walk_kind(const sd_walk *walk, size_t index);
uint32_t sd_walk_object(const sd_walk *walk, size_t index);
/// Returns the disk after a power cut at this moment, with one of SD_DROPPED… for each operation that is not safe.
sd_disk *sd_walk_image(const sd_walk *walk, const uint8_t *choices, uint64_t seed);
/// Returns the disk at this moment if only the process dies: nothing is lost, and the boot id is the same.
sd_disk *sd_walk_killed(const sd_walk *walk);
/// Names, contents, modes, links and boot id in one number: equal for indistinguishable disks.
uint64_t sd_digest(sd_disk *disk);
