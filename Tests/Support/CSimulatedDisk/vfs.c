// SQLite on a simulated disk: a VFS that does the same as SQLite's own for Linux, in the same order and with the same
// syncs (os_unix.c of 3.40: the directory is synced with the first sync of a new journal or log, and after a deletion
// on request). It is the default one; it passes all other paths to the real one unchanged.

#include "internal.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct sd_file {
  sqlite3_file base;
  sd_disk *disk;
  uint32_t inode;
  int lock;
  int must_sync_directory;
  int deletes_on_close;
  int uses_shm;
  char *path;
} sd_file;

static sqlite3_vfs *real;
static sqlite3_vfs vfs;
static sqlite3_io_methods methods;

// MARK: Mounts

#define MOUNTS 4096
static sd_disk *mounts[MOUNTS];
static pthread_mutex_t mounts_lock = PTHREAD_MUTEX_INITIALIZER;
static const char prefix[] = "/simulated-disk-";

sd_disk *sd_disk_of(const char *path) {
  if (!path || strncmp(path, prefix, sizeof prefix - 1) != 0) return NULL;
  unsigned long number = strtoul(path + sizeof prefix - 1, NULL, 10);
  if (number >= MOUNTS) return NULL;
  pthread_mutex_lock(&mounts_lock);
  sd_disk *disk = mounts[number];
  pthread_mutex_unlock(&mounts_lock);
  return disk;
}

int sd_mount(sd_disk *disk) {
  sd_register_vfs();
  if (disk->device >= MOUNTS) return -1;
  pthread_mutex_lock(&mounts_lock);
  int is_free = mounts[disk->device] == NULL;
  if (is_free) mounts[disk->device] = disk;
  pthread_mutex_unlock(&mounts_lock);
  return is_free ? 0 : -1;
}

int sd_unmount(sd_disk *disk) {
  pthread_mutex_lock(&mounts_lock);
  if (disk->device < MOUNTS && mounts[disk->device] == disk) mounts[disk->device] = NULL;
  pthread_mutex_unlock(&mounts_lock);
  return disk->open_files;
}

// MARK: Files

static usage *use_of(sd_file *file) { return &sd_inode(file->disk, file->inode)->use; }

static char *directory_of(const char *path) {
  char *copy = strdup(path);
  char *slash = strrchr(copy, '/');
  if (slash) *slash = 0;
  return copy;
}

static int sync_directory(sd_disk *disk, const char *path) {
  char *directory = directory_of(path);
  int code = sd_sync_directory(disk, directory);
  free(directory);
  return code;
}

static int unlock_to(sqlite3_file *base, int level);
static int shm_unmap(sqlite3_file *base, int deletes);

static int file_close(sqlite3_file *base) {
  sd_file *file = (sd_file *)base;
  if (file->uses_shm) shm_unmap(base, 0);
  unlock_to(base, SQLITE_LOCK_NONE);
  use_of(file)->open--;
  file->disk->open_files--;
  if (file->deletes_on_close) (void)sd_unlink(file->disk, file->path);
  free(file->path);
  file->base.pMethods = NULL;
  return SQLITE_OK;
}

static int file_read(sqlite3_file *base, void *buffer, int count, sqlite3_int64 offset) {
  sd_file *file = (sd_file *)base;
  if (sd_enter(file->disk, SD_READS, "read", file->path)) return SQLITE_IOERR_READ;
  content *held = sd_inode(file->disk, file->inode)->content;
  sqlite3_int64 there = held->size - offset;
  if (there < 0) there = 0;
  if (there > count) there = count;
  if (there) memcpy(buffer, held->bytes + offset, (size_t)there);
  if (there == count) return SQLITE_OK;
  memset((char *)buffer + there, 0, (size_t)(count - there));
  return SQLITE_IOERR_SHORT_READ;
}

static int file_write(sqlite3_file *base, const void *bytes, int count, sqlite3_int64 offset) {
  sd_file *file = (sd_file *)base;
  int code = sd_enter(file->disk, SD_CHANGES, "write", file->path);
  if (code) return code == ENOSPC ? SQLITE_FULL : SQLITE_IOERR_WRITE;
  sd_log(file->disk, (operation){.kind = OP_WRITE, .inode = file->inode, .offset = offset, .length = (uint32_t)count,
                                 .bytes = (uint8_t *)bytes});
  return SQLITE_OK;
}

static int file_truncate(sqlite3_file *base, sqlite3_int64 size) {
  sd_file *file = (sd_file *)base;
  if (sd_enter(file->disk, SD_CHANGES, "truncate", file->path)) return SQLITE_IOERR_TRUNCATE;
  sd_log(file->disk, (operation){.kind = OP_TRUNCATE, .inode = file->inode, .offset = size});
  return SQLITE_OK;
}

static int file_sync(sqlite3_file *base, int flags) {
  (void)flags;
  sd_file *file = (sd_file *)base;
  if (sd_sync(file->disk, file->inode, 0, file->path)) return SQLITE_IOERR_FSYNC;
  if (file->must_sync_directory) {
    // SQLite syncs the directory once and ignores the result.
    (void)sync_directory(file->disk, file->path);
    file->must_sync_directory = 0;
  }
  return SQLITE_OK;
}

static int file_size(sqlite3_file *base, sqlite3_int64 *size) {
  sd_file *file = (sd_file *)base;
  if (sd_enter(file->disk, SD_READS, "size", file->path)) return SQLITE_IOERR_FSTAT;
  *size = sd_inode(file->disk, file->inode)->content->size;
  return SQLITE_OK;
}

static int file_lock(sqlite3_file *base, int level) {
  sd_file *file = (sd_file *)base;
  usage *use = use_of(file);
  if (file->lock >= level) return SQLITE_OK;
  if (sd_enter(file->disk, SD_READS, "lock", file->path)) return SQLITE_IOERR_LOCK;
  int is_foreign = (use->pending && use->pending != file) || (use->exclusive && use->exclusive != file);
  if (level == SQLITE_LOCK_SHARED) {
    if (is_foreign) return SQLITE_BUSY;
    use->shared++;
    file->lock = SQLITE_LOCK_SHARED;
    return SQLITE_OK;
  }
  if (is_foreign || (use->reserved && use->reserved != file)) return SQLITE_BUSY;
  use->reserved = file;
  if (level == SQLITE_LOCK_RESERVED) {
    file->lock = SQLITE_LOCK_RESERVED;
    return SQLITE_OK;
  }
  use->pending = file;
  file->lock = SQLITE_LOCK_PENDING;
  if (use->shared > 1) return SQLITE_BUSY;
  use->exclusive = file;
  file->lock = SQLITE_LOCK_EXCLUSIVE;
  return SQLITE_OK;
}

static int unlock_to(sqlite3_file *base, int level) {
  sd_file *file = (sd_file *)base;
  usage *use = use_of(file);
  if (file->lock <= level) return SQLITE_OK;
  if (use->reserved == file) use->reserved = NULL;
  if (use->pending == file) use->pending = NULL;
  if (use->exclusive == file) use->exclusive = NULL;
  if (level == SQLITE_LOCK_NONE) use->shared--;
  file->lock = level;
  return SQLITE_OK;
}

static int file_check_reserved(sqlite3_file *base, int *result) {
  usage *use = use_of((sd_file *)base);
  *result = use->reserved || use->pending || use->exclusive;
  return SQLITE_OK;
}

static int file_control(sqlite3_file *base, int op, void *argument) {
  sd_file *file = (sd_file *)base;
  switch (op) {
  case SQLITE_FCNTL_LOCKSTATE: *(int *)argument = file->lock; return SQLITE_OK;
  case SQLITE_FCNTL_HAS_MOVED:
    *(int *)argument = sd_find(file->disk, file->path, NULL, NULL) != file->inode;
    return SQLITE_OK;
  case SQLITE_FCNTL_VFSNAME: *(char **)argument = sqlite3_mprintf("%s", vfs.zName); return SQLITE_OK;
  case SQLITE_FCNTL_SIZE_HINT: return SQLITE_OK;
  default: return SQLITE_NOTFOUND;
  }
}

static int sector_size(sqlite3_file *base) {
  (void)base;
  return 4096;
}

static int characteristics(sqlite3_file *base) {
  (void)base;
  return SQLITE_IOCAP_POWERSAFE_OVERWRITE;  // as on Linux: tears stay within a write
}

// MARK: Shared memory of a log, in the heap; its file is only a name

static char *shm_path(sd_file *file) {
  char *path = sd_allocate(strlen(file->path) + 5, 1);
  strcpy(path, file->path);
  return strcat(path, "-shm");
}

static int shm_map(sqlite3_file *base, int region, int size, int extends, void volatile **result) {
  sd_file *file = (sd_file *)base;
  *result = NULL;
  if (!file->uses_shm) {
    char *path = shm_path(file);
    int code = sd_find(file->disk, path, NULL, NULL) ? 0 : sd_create(file->disk, path, 0644);
    free(path);
    if (code) return SQLITE_CANTOPEN;
    file->uses_shm = 1;
    use_of(file)->shm_users++;
  }
  usage *use = use_of(file);  // not before: a new file may move all inodes
  if (region >= use->region_count) {
    if (!extends) return SQLITE_OK;
    use->regions = realloc(use->regions, (size_t)(region + 1) * sizeof *use->regions);
    if (!use->regions) abort();
    while (use->region_count <= region) use->regions[use->region_count++] = sd_allocate(1, (size_t)size);
  }
  *result = use->regions[region];
  return SQLITE_OK;
}

static int shm_lock(sqlite3_file *base, int offset, int count, int flags) {
  sd_file *file = (sd_file *)base;
  usage *use = use_of(file);
  for (int i = offset; i < offset + count && flags & SQLITE_SHM_LOCK; i++) {
    if (use->shm_exclusive[i] && use->shm_exclusive[i] != file) return SQLITE_BUSY;
    if (flags & SQLITE_SHM_EXCLUSIVE && use->shm_shared[i]) return SQLITE_BUSY;
  }
  for (int i = offset; i < offset + count; i++) {
    if (flags & SQLITE_SHM_EXCLUSIVE) use->shm_exclusive[i] = flags & SQLITE_SHM_LOCK ? file : NULL;
    else if (flags & SQLITE_SHM_LOCK) use->shm_shared[i]++;
    else if (use->shm_shared[i]) use->shm_shared[i]--;
  }
  return SQLITE_OK;
}

static void shm_barrier(sqlite3_file *base) {
  (void)base;
  __sync_synchronize();
}

static int shm_unmap(sqlite3_file *base, int deletes) {
  sd_file *file = (sd_file *)base;
  usage *use = use_of(file);
  if (!file->uses_shm) return SQLITE_OK;
  file->uses_shm = 0;
  if (--use->shm_users > 0) return SQLITE_OK;
  for (int i = 0; i < use->region_count; i++) free(use->regions[i]);
  free(use->regions);
  use->regions = NULL;
  use->region_count = 0;
  memset(use->shm_shared, 0, sizeof use->shm_shared);
  memset(use->shm_exclusive, 0, sizeof use->shm_exclusive);
  if (deletes) {
    char *path = shm_path(file);
    (void)sd_unlink(file->disk, path);
    free(path);
  }
  return SQLITE_OK;
}

// MARK: The VFS

static int vfs_open(sqlite3_vfs *self, const char *path, sqlite3_file *base, int flags, int *out) {
  (void)self;
  sd_disk *disk = sd_disk_of(path);
  if (!disk) return real->xOpen(real, path, base, flags, out);
  sd_file *file = (sd_file *)base;
  memset(file, 0, sizeof *file);
  int is_new = 0;
  uint32_t number = sd_find(disk, path, NULL, NULL);
  if (sd_enter(disk, SD_READS, "open", path)) return SQLITE_CANTOPEN;
  if (!number) {
    if (!(flags & SQLITE_OPEN_CREATE)) return SQLITE_CANTOPEN;
    if (sd_create(disk, path, 0644)) return SQLITE_CANTOPEN;
    number = sd_find(disk, path, NULL, NULL);
    is_new = 1;
  } else if (flags & SQLITE_OPEN_EXCLUSIVE || sd_inode(disk, number)->is_directory) {
    return SQLITE_CANTOPEN;
  }
  file->disk = disk;
  file->inode = number;
  file->path = strdup(path);
  file->deletes_on_close = (flags & SQLITE_OPEN_DELETEONCLOSE) != 0;
  file->must_sync_directory =
      is_new && flags & (SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL | SQLITE_OPEN_WAL);
  file->base.pMethods = &methods;
  sd_inode(disk, number)->use.open++;
  disk->open_files++;
  if (out) *out = flags;
  return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *self, const char *path, int syncs) {
  (void)self;
  sd_disk *disk = sd_disk_of(path);
  if (!disk) return real->xDelete(real, path, syncs);
  int code = sd_unlink(disk, path);
  if (code == ENOENT) return SQLITE_IOERR_DELETE_NOENT;
  if (code) return SQLITE_IOERR_DELETE;
  return syncs && sync_directory(disk, path) ? SQLITE_IOERR_DIR_FSYNC : SQLITE_OK;
}

static int vfs_access(sqlite3_vfs *self, const char *path, int flags, int *result) {
  (void)self;
  sd_disk *disk = sd_disk_of(path);
  if (!disk) return real->xAccess(real, path, flags, result);
  if (sd_enter(disk, SD_READS, "access", path)) return SQLITE_IOERR_ACCESS;
  uint32_t number = sd_find(disk, path, NULL, NULL);
  *result = number != 0;
  // An empty journal counts as none.
  if (number && flags == SQLITE_ACCESS_EXISTS) {
    inode *found = sd_inode(disk, number);
    *result = found->is_directory || found->content->size > 0;
  }
  return SQLITE_OK;
}

static int vfs_full_path(sqlite3_vfs *self, const char *path, int capacity, char *result) {
  (void)self;
  if (!sd_disk_of(path)) return real->xFullPathname(real, path, capacity, result);
  sqlite3_snprintf(capacity, result, "%s", path);
  return SQLITE_OK;
}

static void register_once(void) {
  real = sqlite3_vfs_find(NULL);
  if (!real) abort();
  vfs = *real;
  vfs.pNext = NULL;
  vfs.zName = "simulated-disk";
  if (vfs.szOsFile < (int)sizeof(sd_file)) vfs.szOsFile = (int)sizeof(sd_file);
  vfs.xOpen = vfs_open;
  vfs.xDelete = vfs_delete;
  vfs.xAccess = vfs_access;
  vfs.xFullPathname = vfs_full_path;
  methods = (sqlite3_io_methods){2,        file_close,     file_read,           file_write,   file_truncate,
                                 file_sync, file_size,      file_lock,           unlock_to,    file_check_reserved,
                                 file_control, sector_size, characteristics,     shm_map,      shm_lock,
                                 shm_barrier, shm_unmap,    NULL,                NULL};
  if (sqlite3_vfs_register(&vfs, 1) != SQLITE_OK) abort();
}

void sd_register_vfs(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, register_once);
}
