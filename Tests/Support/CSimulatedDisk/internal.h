// Declarations that the disk, its images and the VFS share.
#pragma once

#include "simulated_disk.h"

#include <pthread.h>

/// Content of a file, shared by all images with the same content.
typedef struct {
  int64_t references;
  int64_t size;
  int64_t capacity;
  uint64_t digest;
  int has_digest;
  uint8_t *bytes;
} content;

struct sd_file;

/// Locks and shared memory of a file while SQLite has it open.
typedef struct {
  int open;
  int shared;
  struct sd_file *reserved, *pending, *exclusive;
  void **regions;
  int region_count;
  int shm_users;
  uint32_t shm_shared[8];
  struct sd_file *shm_exclusive[8];
} usage;

typedef struct {
  int is_directory;
  uint32_t mode;
  int64_t modified;
  content *content;
  usage use;
} inode;

typedef struct {
  char *text;
  uint32_t directory;
  uint32_t inode;
} name;

enum {
  OP_WRITE, OP_TRUNCATE, OP_MODE, OP_ADD, OP_REMOVE, OP_RENAME, OP_SYNC_FILE, OP_SYNC_DIRECTORY,
  OP_FAILED_FILE, OP_FAILED_DIRECTORY
};

/// One change or sync.
typedef struct {
  int kind;
  uint32_t inode;             // of a file operation; the target of a name
  uint32_t directory, other;  // of a name; `other` is the destination of a rename
  char *name, *name2;
  int64_t offset;             // or size, or mode
  int64_t tick;               // the disk's clock
  uint32_t length;
  uint8_t *bytes;
} operation;

struct sd_disk {
  uint32_t device, boot;
  inode *inodes;  // number n is at n - 1; 1 is the root
  uint32_t inode_count, inode_capacity;
  name *names;
  uint32_t name_count, name_capacity;
  int64_t clock;

  // The log, and the state of the disk when it began.
  operation *log;
  int64_t log_count, log_capacity;
  struct sd_disk *base;

  // Faults.
  int64_t fail_at, calls, skip_at, syncs, lost_locks;
  int is_sticky, fail_code, fail_kinds;
  char last_fault[256], lost_lock[256];
  int open_files;
};

void *sd_allocate(size_t count, size_t size);
inode *sd_inode(sd_disk *disk, uint32_t number);
/// Returns the inode of a path, or 0 with errno if it does not exist; sets directory and last name also for a missing
/// file.
uint32_t sd_find(sd_disk *disk, const char *path, uint32_t *directory, const char **last);
uint32_t sd_new_inode(sd_disk *disk, int is_directory, uint32_t mode);
/// Counts a call and returns the errno with which it must fail, or 0.
int sd_enter(sd_disk *disk, int kind, const char *what, const char *path);
/// Writes the operation into the log and applies it.
void sd_log(sd_disk *disk, operation op);
/// Applies an operation; `choice` is one of SD_KEPT, SD_ZEROED, SD_TORN.
void sd_apply(sd_disk *disk, const operation *op, int choice, uint64_t seed);
/// Returns a disk with the files, names and clock of another one, sharing its contents.
sd_disk *sd_clone(const sd_disk *disk);
/// Syncs by inode: files and directories.
int sd_sync(sd_disk *disk, uint32_t number, int is_directory, const char *path);
/// Returns the mounted disk that contains a path; NULL for all other paths.
sd_disk *sd_disk_of(const char *path);
void sd_register_vfs(void);
