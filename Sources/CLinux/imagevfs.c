// The VFS of databases in memory whose content is exchanged as a whole: the store of one small migration, then that of
// the next, below a connection that keeps its compiled statements. SQLite is made to treat an exchange as the commit of
// another program: it happens only while SQLite holds no lock on the database, and the new content has a change counter
// that the file never had before. With its next lock SQLite compares the counter and drops every page of the old
// content (sqlite.org/fileformat.html, "File change counter"). The schema is read again if the schema cookie differs;
// the caller chooses it.
//
// SQLite's own memdb takes other content only by sqlite3_deserialize, which opens the database again and makes every
// statement of the connection compile again.

#define _GNU_SOURCE
#include "clinux.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

typedef struct image_file {
  sqlite3_file base;
  unsigned char *bytes;
  sqlite3_int64 count;
  sqlite3_int64 capacity;
  int lock;          // SQLite's present lock
  uint32_t counter;  // the highest change counter that an exchange has given
  uint32_t cookie;   // the schema cookie that the last exchange has given
} image_file;

// The header of a database (sqlite.org/fileformat.html, "The Database Header").
enum {
  HEADER = 100,
  PAGE_SIZE = 16,
  WRITE_VERSION = 18,
  READ_VERSION = 19,
  CHANGE_COUNTER = 24,
  SCHEMA_COOKIE = 40,
  VERSION_VALID_FOR = 92,
};
// A counter has 32 bits, and SQLite itself counts commits. From here on a new connection is needed.
static const uint32_t last_counter = 0x7fffffff;

// The content that the next open of this thread begins with.
static __thread const unsigned char *next;
static __thread sqlite3_int64 next_count;

static uint32_t number_at(const unsigned char *bytes) {
  return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}
static void set_number(unsigned char *bytes, uint32_t number) {
  for (int place = 0; place < 4; place++) bytes[place] = (unsigned char)(number >> (24 - 8 * place));
}

static int reserve(image_file *own, sqlite3_int64 count) {
  if (count <= own->capacity) return SQLITE_OK;
  // The next store of the same kind is a little larger or smaller.
  sqlite3_int64 capacity = count + count / 4 + (16 << 10);
  unsigned char *bytes = sqlite3_realloc64(own->bytes, (sqlite3_uint64)capacity);
  if (!bytes) return SQLITE_IOERR_NOMEM;
  own->bytes = bytes;
  own->capacity = capacity;
  return SQLITE_OK;
}

static int file_close(sqlite3_file *file) {
  image_file *own = (image_file *)file;
  sqlite3_free(own->bytes);
  own->bytes = NULL;
  return SQLITE_OK;
}

static int file_read(sqlite3_file *file, void *bytes, int size, sqlite3_int64 offset) {
  image_file *own = (image_file *)file;
  sqlite3_int64 rest = own->count - offset;
  if (rest >= size) {
    memcpy(bytes, own->bytes + offset, (size_t)size);
    return SQLITE_OK;
  }
  memset(bytes, 0, (size_t)size);
  if (rest > 0) memcpy(bytes, own->bytes + offset, (size_t)rest);
  return SQLITE_IOERR_SHORT_READ;
}

static int file_write(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 offset) {
  image_file *own = (image_file *)file;
  sqlite3_int64 end = offset + size;
  int code = reserve(own, end);
  if (code != SQLITE_OK) return code;
  if (offset > own->count) memset(own->bytes + own->count, 0, (size_t)(offset - own->count));
  memcpy(own->bytes + offset, bytes, (size_t)size);
  if (end > own->count) own->count = end;
  return SQLITE_OK;
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 size) {
  image_file *own = (image_file *)file;
  if (size < own->count) own->count = size;
  return SQLITE_OK;
}
static int file_sync(sqlite3_file *file, int flags) {
  (void)file, (void)flags;
  return SQLITE_OK;
}
static int file_size(sqlite3_file *file, sqlite3_int64 *size) {
  *size = ((image_file *)file)->count;
  return SQLITE_OK;
}
static int file_lock(sqlite3_file *file, int level) {
  image_file *own = (image_file *)file;
  if (level > own->lock) own->lock = level;
  return SQLITE_OK;
}
static int file_unlock(sqlite3_file *file, int level) {
  image_file *own = (image_file *)file;
  if (level < own->lock) own->lock = level;
  return SQLITE_OK;
}
static int file_check_reserved(sqlite3_file *file, int *result) {
  *result = ((image_file *)file)->lock >= SQLITE_LOCK_RESERVED;
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
// As memdb has it.
static int file_characteristics(sqlite3_file *file) {
  (void)file;
  return SQLITE_IOCAP_ATOMIC | SQLITE_IOCAP_POWERSAFE_OVERWRITE | SQLITE_IOCAP_SAFE_APPEND | SQLITE_IOCAP_SEQUENTIAL;
}

static const sqlite3_io_methods methods = {
    1,         file_close, file_read, file_write,          file_truncate, file_sync,
    file_size, file_lock,  file_unlock, file_check_reserved, file_control, file_sector_size,
    file_characteristics, NULL, NULL, NULL, NULL, NULL, NULL,
};

// Copies content in and gives it a counter of its own. The size in the header counts only if two counters in it agree;
// that stays as it is.
static int take(image_file *own, const unsigned char *bytes, sqlite3_int64 count, uint32_t cookie) {
  uint32_t before = own->count >= HEADER ? number_at(own->bytes + CHANGE_COUNTER) : 0;
  uint32_t counter = before > own->counter ? before : own->counter;
  if (counter >= last_counter) return SQLITE_FULL;
  int code = reserve(own, count);
  if (code != SQLITE_OK) return code;
  memcpy(own->bytes, bytes, (size_t)count);
  own->count = count;
  own->counter = counter + 1;
  own->cookie = cookie;
  int has_size = number_at(bytes + CHANGE_COUNTER) == number_at(bytes + VERSION_VALID_FOR);
  set_number(own->bytes + CHANGE_COUNTER, own->counter);
  set_number(own->bytes + VERSION_VALID_FOR, has_size ? own->counter : 0);
  set_number(own->bytes + SCHEMA_COOKIE, cookie);
  // There is no log here. The caller has made sure that the file's log is empty.
  own->bytes[WRITE_VERSION] = 1;
  own->bytes[READ_VERSION] = 1;
  return SQLITE_OK;
}

static int is_database(const unsigned char *bytes, sqlite3_int64 count) {
  return count >= 512 && memcmp(bytes, "SQLite format 3", 16) == 0;
}

// MARK: The VFS

static int vfs_open(sqlite3_vfs *self, sqlite3_filename name, sqlite3_file *file, int flags, int *out) {
  (void)self;
  image_file *own = (image_file *)file;
  memset(own, 0, sizeof *own);
  if (!(flags & SQLITE_OPEN_MAIN_DB)) {
    // The connection's temporary files are those of every connection.
    sqlite3_vfs *store = sqlite3_vfs_find(CLINUX_STORE_VFS);
    return store && !name ? store->xOpen(store, name, file, flags, out) : SQLITE_CANTOPEN;
  }
  if (!next) return SQLITE_CANTOPEN;
  const unsigned char *bytes = next;
  next = NULL;
  if (!is_database(bytes, next_count)) return SQLITE_CANTOPEN;
  int code = take(own, bytes, next_count, 1);
  if (code != SQLITE_OK) return code;
  own->base.pMethods = &methods;
  if (out) *out = flags;
  return SQLITE_OK;
}
static int vfs_delete(sqlite3_vfs *self, const char *name, int syncs) {
  (void)self, (void)name, (void)syncs;
  return SQLITE_OK;
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
  sqlite3_vfs *store = sqlite3_vfs_find(CLINUX_STORE_VFS);
  return store ? store->xRandomness(store, size, bytes) : 0;
}
static int vfs_sleep(sqlite3_vfs *self, int microseconds) {
  (void)self;
  return microseconds;
}
static int vfs_time(sqlite3_vfs *self, double *time) {
  (void)self;
  sqlite3_vfs *store = sqlite3_vfs_find(CLINUX_STORE_VFS);
  return store ? store->xCurrentTime(store, time) : SQLITE_ERROR;
}

static sqlite3_vfs image_vfs = {
    .iVersion = 1, .szOsFile = sizeof(image_file), .mxPathname = 512, .zName = CLINUX_IMAGE_VFS,
    .xOpen = vfs_open, .xDelete = vfs_delete, .xAccess = vfs_access, .xFullPathname = vfs_full_path,
    .xRandomness = vfs_randomness, .xSleep = vfs_sleep, .xCurrentTime = vfs_time,
};

int clinux_register_image_vfs(void) {
  sqlite3_vfs *store = sqlite3_vfs_find(CLINUX_STORE_VFS);
  if (!store) return SQLITE_ERROR;
  if (store->szOsFile > image_vfs.szOsFile) image_vfs.szOsFile = store->szOsFile;
  return sqlite3_vfs_register(&image_vfs, 0);
}

void clinux_image_vfs_opens(const void *bytes, int64_t count) {
  next = bytes;
  next_count = count;
}

// The file of a schema on this VFS; NULL where it is on another.
static image_file *file_of(sqlite3 *database, const char *schema) {
  sqlite3_file *file = NULL;
  int code = sqlite3_file_control(database, schema, SQLITE_FCNTL_FILE_POINTER, &file);
  return code == SQLITE_OK && file && file->pMethods == &methods ? (image_file *)file : NULL;
}

int clinux_image_exchange(sqlite3 *database, const char *schema, const void *bytes, int64_t count, uint32_t cookie) {
  image_file *own = file_of(database, schema);
  if (!own) return SQLITE_MISUSE;
  if (own->lock != SQLITE_LOCK_NONE) return SQLITE_BUSY;
  // What SQLite reads only when it opens a database must be the same: the size of a page, the bytes that it leaves
  // free, the form of the schema, the encoding, and whether the file can shrink.
  static const struct {
    int start, count;
  } fixed[] = {{PAGE_SIZE, 2}, {20, 4}, {44, 4}, {52, 4}, {56, 4}, {64, 4}};
  if (!is_database(bytes, count) || own->count < HEADER) return SQLITE_MISMATCH;
  // Where SQLite has counted its own changes of the schema, a cookie of the caller may be one of its numbers.
  if (number_at(own->bytes + SCHEMA_COOKIE) != own->cookie) return SQLITE_MISMATCH;
  for (size_t index = 0; index < sizeof fixed / sizeof *fixed; index++) {
    const unsigned char *wanted = (const unsigned char *)bytes + fixed[index].start;
    // Two sizes of a page are told apart; a last root page is only present or absent.
    if (fixed[index].start == 52) {
      if (!number_at(wanted) != !number_at(own->bytes + 52)) return SQLITE_MISMATCH;
    } else if (memcmp(own->bytes + fixed[index].start, wanted, (size_t)fixed[index].count) != 0) {
      return SQLITE_MISMATCH;
    }
  }
  return take(own, bytes, count, cookie);
}

const void *clinux_image_bytes(sqlite3 *database, const char *schema, int64_t *count) {
  image_file *own = file_of(database, schema);
  if (!own || own->lock != SQLITE_LOCK_NONE) return NULL;
  *count = own->count;
  return own->bytes;
}
