// The VFS of a connection that reads a database through the file of another connection of the same process. It opens no
// file of its own: closing a second descriptor would end every POSIX lock that the process has on the file, and while
// one is open no lease is granted (tools/README.md, "SQLite and files"). Reading is SQLite's own pread on the first
// descriptor, which several threads may do at once. As nothing writes to the file meanwhile, pages that follow one
// another are read together: for a page alone the call costs more than the page.

#define _GNU_SOURCE
#include "clinux.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

// Pages that are read together, in bytes.
enum { AHEAD = 64 << 10 };

typedef struct reader_file {
  sqlite3_file base;
  sqlite3_file *real;      // of the other connection
  sqlite3_int64 size;      // of the file
  sqlite3_int64 expected;  // where the next page begins, if pages are read in order
  char *ahead;             // bytes of the file, NULL where there is no memory for them
  sqlite3_int64 start;     // of these bytes in the file
  int count;               // how many there are
} reader_file;

// The file that the next open of this thread reads.
static __thread sqlite3_file *next;

static sqlite3_file *real_of(sqlite3_file *file) { return ((reader_file *)file)->real; }

static int file_close(sqlite3_file *file) {
  reader_file *own = (reader_file *)file;
  sqlite3_free(own->ahead);
  own->ahead = NULL;
  return SQLITE_OK;
}

static int is_ahead(const reader_file *own, int size, sqlite3_int64 offset) {
  return offset >= own->start && offset + size <= own->start + own->count;
}

// Reads a page; where it follows the one before, also those behind it.
static int file_read(sqlite3_file *file, void *bytes, int size, sqlite3_int64 offset) {
  reader_file *own = (reader_file *)file;
  sqlite3_file *real = own->real;
  if (!is_ahead(own, size, offset)) {
    sqlite3_int64 rest = own->size - offset;
    int follows = offset >= own->expected && offset < own->expected + AHEAD;
    own->expected = offset + size;
    if (!own->ahead || !follows || rest < 2 * (sqlite3_int64)size) {
      return real->pMethods->xRead(real, bytes, size, offset);
    }
    int count = rest < AHEAD ? (int)rest : AHEAD;
    own->count = 0;
    // What cannot be read together is read alone, so that an error is that of its own page.
    if (count < size || real->pMethods->xRead(real, own->ahead, count, offset) != SQLITE_OK) {
      return real->pMethods->xRead(real, bytes, size, offset);
    }
    own->start = offset;
    own->count = count;
  }
  own->expected = offset + size;
  memcpy(bytes, own->ahead + (offset - own->start), (size_t)size);
  return SQLITE_OK;
}
static int file_write(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 offset) {
  (void)file, (void)bytes, (void)size, (void)offset;
  return SQLITE_READONLY;
}
static int file_truncate(sqlite3_file *file, sqlite3_int64 size) {
  (void)file, (void)size;
  return SQLITE_READONLY;
}
static int file_sync(sqlite3_file *file, int flags) {
  (void)file, (void)flags;
  return SQLITE_OK;
}
static int file_size(sqlite3_file *file, sqlite3_int64 *size) {
  sqlite3_file *real = real_of(file);
  return real->pMethods->xFileSize(real, size);
}
// The other connection has the lock, or the caller makes sure that no other program writes.
static int file_lock(sqlite3_file *file, int level) {
  (void)file, (void)level;
  return SQLITE_OK;
}
static int file_check_reserved(sqlite3_file *file, int *result) {
  (void)file;
  *result = 0;
  return SQLITE_OK;
}
static int file_control(sqlite3_file *file, int operation, void *argument) {
  (void)file, (void)operation, (void)argument;
  return SQLITE_NOTFOUND;
}
static int file_sector_size(sqlite3_file *file) {
  (void)file;
  return 4096;
}
static int file_characteristics(sqlite3_file *file) {
  (void)file;
  return SQLITE_IOCAP_IMMUTABLE;
}

static const sqlite3_io_methods methods = {
    1,         file_close, file_read, file_write,          file_truncate, file_sync,
    file_size, file_lock,  file_lock, file_check_reserved, file_control,  file_sector_size,
    file_characteristics, NULL, NULL, NULL, NULL, NULL, NULL,
};

static int vfs_open(sqlite3_vfs *self, sqlite3_filename name, sqlite3_file *file, int flags, int *out) {
  reader_file *own = (reader_file *)file;
  (void)self, (void)name;
  memset(own, 0, sizeof *own);
  // A check that sorts on the disk would need a temporary file: there is none.
  if (!next || !(flags & SQLITE_OPEN_MAIN_DB) || !(flags & SQLITE_OPEN_READONLY)) return SQLITE_CANTOPEN;
  own->real = next;
  next = NULL;
  if (own->real->pMethods->xFileSize(own->real, &own->size) != SQLITE_OK) return SQLITE_IOERR_FSTAT;
  own->ahead = sqlite3_malloc(AHEAD);
  own->base.pMethods = &methods;
  if (out) *out = flags;
  return SQLITE_OK;
}
static int vfs_delete(sqlite3_vfs *self, const char *name, int syncs) {
  (void)self, (void)name, (void)syncs;
  return SQLITE_READONLY;
}
static int vfs_access(sqlite3_vfs *self, const char *name, int flags, int *result) {
  (void)self, (void)name, (void)flags;
  *result = 0;
  return SQLITE_OK;
}
static int vfs_full_path(sqlite3_vfs *self, const char *name, int capacity, char *result) {
  (void)self;
  int written = snprintf(result, (size_t)capacity, "%s", name);
  return written < 0 || written >= capacity ? SQLITE_CANTOPEN : SQLITE_OK;
}
static int vfs_randomness(sqlite3_vfs *self, int size, char *bytes) {
  (void)self;
  memset(bytes, 0, (size_t)size);
  return size;
}
static int vfs_sleep(sqlite3_vfs *self, int microseconds) {
  (void)self;
  return microseconds;
}
static int vfs_time(sqlite3_vfs *self, double *time) {
  (void)self;
  *time = 0;
  return SQLITE_OK;
}

static sqlite3_vfs reader_vfs = {
    .iVersion = 1, .szOsFile = sizeof(reader_file), .mxPathname = 512, .zName = CLINUX_READER_VFS,
    .xOpen = vfs_open, .xDelete = vfs_delete, .xAccess = vfs_access, .xFullPathname = vfs_full_path,
    .xRandomness = vfs_randomness, .xSleep = vfs_sleep, .xCurrentTime = vfs_time,
};

int clinux_register_reader_vfs(void) { return sqlite3_vfs_register(&reader_vfs, 0); }

void clinux_reader_vfs_reads(void *file) { next = file; }
