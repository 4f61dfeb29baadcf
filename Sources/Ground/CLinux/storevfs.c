// The VFS under every connection to a database file. SQLite trusts the files beside a database: a rollback journal may
// name any file of the machine, which SQLite then deletes (pager_delsuper), and side files are opened by path, so that
// a user who may rename a directory decides where they are. This VFS is between SQLite and its own VFS for Linux:
//
// - A database has its journal and its log beside it, and no other file. Every other name is refused, super-journals
//   first.
// - The directory is opened once, without following a symbolic link (directories.c). Database, journal and log are
//   opened, looked for and deleted relative to that descriptor, wherever the path leads by then. SQLite's own VFS gets
//   the name /proc/self/fd/N/NAME, and the few calls that take a name (xSetSystemCall) turn it into openat(N, NAME) and
//   the like.
// - Nothing is mapped into memory: a file that another program cuts off would end this process with SIGBUS. So the
//   index of a log is on the heap, and a database with a log opens only in exclusive locking mode. The one exception is
//   hopd's own record, which nobody else may write: its index is shared memory, so that readers do not block the
//   writer.
// - While a schema is read, its objects, its pages and the processor's time are counted: SQLite needs quadratic time
//   for some schemas and eighty times their text in memory for others, and calls no progress handler meanwhile.
//
// A default VFS other than SQLite's own (a simulated disk) keeps its names: only the refusals apply to it.

#define _GNU_SOURCE
#include "clinux.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// The files that SQLite has open of one database: the names it may use, and where they lead.
typedef struct database {
  const char *name;     // as SQLite knows it
  const char *journal;  // these two are the very pointers that SQLite hands over, not copies
  const char *log;
  int directory;        // -1 where the base VFS keeps its names
  const char *base_name;     // the same three for the base VFS
  const char *base_journal;
  const char *base_log;
  char *allocated;      // made by sqlite3_create_filename
  int counts_schema;    // what is read of its schema, in the file and in the log
  int64_t schema_objects;
  int64_t schema_bytes;
  int64_t schema_began;  // processor time of the thread at the first page, in nanoseconds
  struct database *next;
} database;

typedef struct store_file {
  sqlite3_file base;
  sqlite3_file *real;  // of the base VFS, in memory of its own
  database *database;  // of the main file: it owns this
  struct database *counted;  // whose schema is read here: of the main file and of the log, which is closed first
  int descriptor;            // what SQLite's own VFS opened for it; -1 where that is not known
} store_file;

static __thread int refusal;
static pthread_mutex_t databases_lock = PTHREAD_MUTEX_INITIALIZER;
static database *databases;

int clinux_store_vfs_take_refusal(void) {
  int taken = refusal;
  refusal = CLINUX_REFUSED_NOTHING;
  return taken;
}

static sqlite3_vfs *base_of(sqlite3_vfs *self) { return sqlite3_vfs_find(self->pAppData); }

// Whether it is SQLite's own VFS for Linux, or one of its kinds of locking.
static int is_linux(sqlite3_vfs *base) { return strncmp(base->zName, "unix", 4) == 0; }

// MARK: Names below a directory that was opened before

static const char below[] = "/proc/self/fd/";

// The descriptor and the rest of a name that `remember` made; -1 for every other name.
static int directory_of(const char *path, const char **name) {
  if (!path || strncmp(path, below, sizeof below - 1) != 0) return -1;
  char *end = NULL;
  long number = strtol(path + sizeof below - 1, &end, 10);
  if (!end || *end != '/' || !end[1] || strchr(end + 1, '/') || number < 0 || number > INT_MAX) return -1;
  *name = end + 1;
  return (int)number;
}

static int (*plain_open)(const char *, int, int);
static int (*plain_unlink)(const char *);
static int (*plain_access)(const char *, int);
static int (*plain_stat)(const char *, struct stat *);
static int (*plain_open_directory)(const char *, int *);

// The last descriptor that SQLite's own VFS opened in this thread below a checked directory.
static __thread int opened = -1;

static int call_open(const char *path, int flags, int mode) {
  const char *name = NULL;
  int directory = directory_of(path, &name);
  if (directory < 0) return plain_open(path, flags, mode);
  return opened = openat(directory, name, flags | O_NOFOLLOW, mode);
}
static int call_unlink(const char *path) {
  const char *name = NULL;
  int directory = directory_of(path, &name);
  return directory < 0 ? plain_unlink(path) : unlinkat(directory, name, 0);
}
static int call_access(const char *path, int mode) {
  const char *name = NULL;
  int directory = directory_of(path, &name);
  return directory < 0 ? plain_access(path, mode) : faccessat(directory, name, mode, 0);
}
static int call_stat(const char *path, struct stat *found) {
  const char *name = NULL;
  int directory = directory_of(path, &name);
  return directory < 0 ? plain_stat(path, found) : fstatat(directory, name, found, AT_SYMLINK_NOFOLLOW);
}
static int call_open_directory(const char *path, int *descriptor) {
  const char *name = NULL;
  int directory = directory_of(path, &name);
  if (directory < 0) return plain_open_directory(path, descriptor);
  *descriptor = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return *descriptor < 0 ? SQLITE_CANTOPEN : SQLITE_OK;
}

// All kinds of SQLite's VFS for Linux share one table of calls. Names of other files pass through unchanged.
static int take_over_calls(void) {
  sqlite3_vfs *base = sqlite3_vfs_find("unix");
  if (!base || base->iVersion < 3) return SQLITE_ERROR;
  plain_open = (int (*)(const char *, int, int))base->xGetSystemCall(base, "open");
  plain_unlink = (int (*)(const char *))base->xGetSystemCall(base, "unlink");
  plain_access = (int (*)(const char *, int))base->xGetSystemCall(base, "access");
  plain_stat = (int (*)(const char *, struct stat *))base->xGetSystemCall(base, "stat");
  plain_open_directory = (int (*)(const char *, int *))base->xGetSystemCall(base, "openDirectory");
  if (!plain_open || !plain_unlink || !plain_access || !plain_stat || !plain_open_directory) return SQLITE_ERROR;
  const struct {
    const char *name;
    sqlite3_syscall_ptr call;
  } calls[] = {
      {"open", (sqlite3_syscall_ptr)call_open},     {"unlink", (sqlite3_syscall_ptr)call_unlink},
      {"access", (sqlite3_syscall_ptr)call_access}, {"stat", (sqlite3_syscall_ptr)call_stat},
      {"openDirectory", (sqlite3_syscall_ptr)call_open_directory},
  };
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    int code = base->xSetSystemCall(base, calls[i].name, calls[i].call);
    if (code != SQLITE_OK) return code;
  }
  return SQLITE_OK;
}

// MARK: Which database a name belongs to

// The database whose journal or log this very pointer is. By pointer, as two connections may have opened the same path
// while it led to two directories.
static database *owner_of(const char *name, const char **translated) {
  pthread_mutex_lock(&databases_lock);
  database *found = databases;
  while (found && found->journal != name && found->log != name) found = found->next;
  if (found) *translated = found->journal == name ? found->base_journal : found->base_log;
  pthread_mutex_unlock(&databases_lock);
  return found;
}

static void forget(database *gone) {
  if (!gone) return;
  pthread_mutex_lock(&databases_lock);
  for (database **link = &databases; *link; link = &(*link)->next) {
    if (*link == gone) {
      *link = gone->next;
      break;
    }
  }
  pthread_mutex_unlock(&databases_lock);
  if (gone->directory >= 0) close(gone->directory);
  sqlite3_free_filename(gone->allocated);
  free(gone);
}

// The parameters of a URI, which SQLite's own VFS looks up by the name it gets: name, value, name, value, …
static int parameters_of(const char *name, const char *pairs[], int capacity) {
  int count = 0;
  for (int index = 0; count + 2 <= capacity; index++) {
    const char *key = sqlite3_uri_key(name, index);
    if (!key) break;
    pairs[count++] = key;
    pairs[count++] = sqlite3_uri_parameter(name, key);
  }
  return count / 2;
}

static database *remember(sqlite3_vfs *base, const char *name) {
  database *made = calloc(1, sizeof *made);
  if (!made) return NULL;
  made->name = name;
  made->journal = sqlite3_filename_journal(name);
  made->log = sqlite3_filename_wal(name);
  made->directory = -1;
  made->base_name = name;
  made->base_journal = made->journal;
  made->base_log = made->log;
  if (is_linux(base)) {
    const char *file_name = NULL;
    made->directory = clinux_open_parent(name, &file_name);
    if (made->directory >= 0 && !*file_name) {
      close(made->directory);
      made->directory = -1;
      errno = EINVAL;
    }
    if (made->directory < 0) {
      refusal = errno == ELOOP || errno == ENOTDIR ? CLINUX_REFUSED_DIRECTORY : CLINUX_REFUSED_NOTHING;
      free(made);
      return NULL;
    }
    size_t length = strlen(file_name) + 32;
    char *here = malloc(length), *journal = malloc(length + 8), *log = malloc(length + 8);
    const char *pairs[16];
    int count = parameters_of(name, pairs, 16);
    if (here && journal && log) {
      snprintf(here, length, "%s%d/%s", below, made->directory, file_name);
      snprintf(journal, length + 8, "%s-journal", here);
      snprintf(log, length + 8, "%s-wal", here);
      made->allocated = (char *)sqlite3_create_filename(here, journal, log, count, pairs);
    }
    free(here);
    free(journal);
    free(log);
    if (!made->allocated) {
      close(made->directory);
      free(made);
      return NULL;
    }
    made->base_name = made->allocated;
    made->base_journal = sqlite3_filename_journal(made->allocated);
    made->base_log = sqlite3_filename_wal(made->allocated);
  }
  pthread_mutex_lock(&databases_lock);
  made->next = databases;
  databases = made;
  pthread_mutex_unlock(&databases_lock);
  return made;
}

// MARK: Files

#define REAL(file) (((store_file *)(file))->real)
#define CALL(file, method, ...) REAL(file)->pMethods->method(REAL(file), ##__VA_ARGS__)

static int file_close(sqlite3_file *file) {
  store_file *own = (store_file *)file;
  int code = own->real->pMethods ? CALL(file, xClose) : SQLITE_OK;
  sqlite3_free(own->real);
  own->real = NULL;
  forget(own->database);
  own->database = NULL;
  return code;
}

static int64_t processor_time(void) {
  struct timespec now = {0, 0};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// Entries of the schema on a page: the cells of a leaf of its table. Page 1 begins with the header of the file, in the
// log too.
static int64_t schema_entries(const unsigned char *page, int size) {
  int start = memcmp(page, "SQLite format 3", 16) == 0 ? 100 : 0;
  if (size < start + 8 || page[start] != 0x0d) return 0;
  return (int64_t)page[start + 3] << 8 | page[start + 4];
}

static int file_read(sqlite3_file *file, void *buffer, int size, sqlite3_int64 offset) {
  store_file *own = (store_file *)file;
  int code = CALL(file, xRead, buffer, size, offset);
  // Whole pages only; frames that are read to recover a log are 24 bytes longer, and their cost grows with the log
  // only.
  database *counted = own->counted;
  if (counted && counted->counts_schema && code == SQLITE_OK && size >= 512 && (size & (size - 1)) == 0) {
    if (!counted->schema_began) counted->schema_began = processor_time();
    counted->schema_objects += schema_entries(buffer, size);
    counted->schema_bytes += size;
    if (counted->schema_objects > CLINUX_SCHEMA_OBJECTS || counted->schema_bytes > CLINUX_SCHEMA_BYTES
        || processor_time() - counted->schema_began > (int64_t)CLINUX_SCHEMA_SECONDS * 1000000000) {
      refusal = CLINUX_REFUSED_SCHEMA;
      return SQLITE_IOERR_READ;
    }
  }
  return code;
}

static int file_write(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 offset) {
  return CALL(file, xWrite, bytes, size, offset);
}
static int file_truncate(sqlite3_file *file, sqlite3_int64 size) { return CALL(file, xTruncate, size); }
static int file_sync(sqlite3_file *file, int flags) { return CALL(file, xSync, flags); }
static int file_size(sqlite3_file *file, sqlite3_int64 *size) { return CALL(file, xFileSize, size); }
static int file_lock(sqlite3_file *file, int level) { return CALL(file, xLock, level); }
static int file_unlock(sqlite3_file *file, int level) { return CALL(file, xUnlock, level); }
static int file_check_reserved(sqlite3_file *file, int *result) { return CALL(file, xCheckReservedLock, result); }
static int file_sector_size(sqlite3_file *file) { return CALL(file, xSectorSize); }
static int file_characteristics(sqlite3_file *file) { return CALL(file, xDeviceCharacteristics); }

static int file_control(sqlite3_file *file, int operation, void *argument) {
  store_file *own = (store_file *)file;
  if (operation == CLINUX_FCNTL_SCHEMA_IS_READ) {
    if (own->database) own->database->counts_schema = 0;
    return SQLITE_OK;
  }
  if (operation == CLINUX_FCNTL_IDENTITY) {
    struct stat here, folder;
    if (!own->database || own->database->directory < 0) return SQLITE_NOTFOUND;
    // The descriptor of the file is SQLite's; its name below the checked directory is what SQLite opened. A second
    // descriptor would drop SQLite's locks when it is closed.
    if (call_stat(own->database->base_name, &here) != 0 || fstat(own->database->directory, &folder) != 0) {
      return SQLITE_IOERR_FSTAT;
    }
    struct clinux_store_identity *identity = argument;
    identity->device = here.st_dev;
    identity->inode = here.st_ino;
    identity->directory_device = folder.st_dev;
    identity->directory_inode = folder.st_ino;
    return SQLITE_OK;
  }
  return CALL(file, xFileControl, operation, argument);
}

// Version 1: no shared memory and no pages mapped.
static const sqlite3_io_methods methods = {
    1,         file_close,  file_read,           file_write,   file_truncate,    file_sync,
    file_size, file_lock,   file_unlock,         file_check_reserved, file_control, file_sector_size,
    file_characteristics, NULL, NULL, NULL, NULL, NULL, NULL,
};

// Version 2, for hopd's own record: the index of its log is in shared memory.
static int file_shm_map(sqlite3_file *file, int region, int size, int extends, void volatile **result) {
  *result = NULL;
  return REAL(file)->pMethods->iVersion < 2 ? SQLITE_CANTOPEN : CALL(file, xShmMap, region, size, extends, result);
}
static int file_shm_lock(sqlite3_file *file, int offset, int count, int flags) {
  return CALL(file, xShmLock, offset, count, flags);
}
static void file_shm_barrier(sqlite3_file *file) { CALL(file, xShmBarrier); }
static int file_shm_unmap(sqlite3_file *file, int deletes) { return CALL(file, xShmUnmap, deletes); }

static const sqlite3_io_methods shared_methods = {
    2,         file_close,  file_read,           file_write,   file_truncate,    file_sync,
    file_size, file_lock,   file_unlock,         file_check_reserved, file_control, file_sector_size,
    file_characteristics, file_shm_map, file_shm_lock, file_shm_barrier, file_shm_unmap, NULL, NULL,
};

// MARK: The VFS

static sqlite3_vfs store_vfs_shared;

void *clinux_store_vfs_file(sqlite3 *db, const char *schema) {
  sqlite3_file *file = NULL;
  if (sqlite3_file_control(db, schema, SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK || !file) return NULL;
  if (file->pMethods != &methods) return NULL;
  return ((store_file *)file)->real;
}

int clinux_store_vfs_descriptor(sqlite3 *db, const char *schema) {
  sqlite3_file *file = NULL;
  if (sqlite3_file_control(db, schema, SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK || !file) return -1;
  if (file->pMethods != &methods) return -1;
  return ((store_file *)file)->descriptor;
}

int clinux_store_vfs_cut(sqlite3 *db, const char *schema, int64_t size) {
  sqlite3_file *file = NULL;
  int code = sqlite3_file_control(db, schema, SQLITE_FCNTL_FILE_POINTER, &file);
  if (code != SQLITE_OK) return code;
  return file && file->pMethods ? file->pMethods->xTruncate(file, size) : SQLITE_MISUSE;
}

int64_t clinux_store_vfs_log_bytes(sqlite3 *db, const char *schema) {
  sqlite3_file *file = NULL;
  if (sqlite3_file_control(db, schema, SQLITE_FCNTL_JOURNAL_POINTER, &file) != SQLITE_OK || !file) return -1;
  sqlite3_int64 size = -1;
  return file->pMethods && file->pMethods->xFileSize(file, &size) == SQLITE_OK ? size : -1;
}

// Whether the name of a side file refers to a regular file, or to nothing. A pipe would block its reader.
static int is_plain_or_missing(sqlite3_vfs *base, const char *name) {
  struct stat found;
  if (!is_linux(base) || call_stat(name, &found) != 0) return 1;
  return S_ISREG(found.st_mode);
}

static int vfs_open(sqlite3_vfs *self, sqlite3_filename name, sqlite3_file *file, int flags, int *out) {
  sqlite3_vfs *base = base_of(self);
  store_file *own = (store_file *)file;
  memset(own, 0, sizeof *own);
  if (!base) return SQLITE_CANTOPEN;
  const char *base_name = name;
  struct database *database = NULL, *owner = NULL;
  if (flags & SQLITE_OPEN_SUPER_JOURNAL) {
    refusal = CLINUX_REFUSED_SUPER_JOURNAL;
    return SQLITE_CANTOPEN;
  }
  if (name && flags & SQLITE_OPEN_MAIN_DB) {
    database = remember(base, name);
    if (!database) return SQLITE_CANTOPEN;
    base_name = database->base_name;
  } else if (name && !(owner = owner_of(name, &base_name))) {
    // Temporary files have no name; every other name belongs to an open database.
    refusal = CLINUX_REFUSED_NAME;
    return SQLITE_CANTOPEN;
  }
  if (!database && name && !is_plain_or_missing(base, base_name)) {
    refusal = CLINUX_REFUSED_NAME;
    return SQLITE_CANTOPEN;
  }
  own->real = sqlite3_malloc(base->szOsFile);
  if (!own->real) {
    forget(database);
    return SQLITE_NOMEM;
  }
  memset(own->real, 0, (size_t)base->szOsFile);
  opened = -1;
  int code = base->xOpen(base, base_name, own->real, name ? flags | SQLITE_OPEN_NOFOLLOW : flags, out);
  if (code != SQLITE_OK) {
    if (own->real->pMethods) own->real->pMethods->xClose(own->real);
    sqlite3_free(own->real);
    own->real = NULL;
    forget(database);
    return code;
  }
  own->database = database;
  own->descriptor = database ? opened : -1;
  if (database) database->counts_schema = 1;
  own->counted = database ? database : flags & SQLITE_OPEN_WAL ? owner : NULL;
  own->base.pMethods = self == &store_vfs_shared ? &shared_methods : &methods;
  return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *self, const char *name, int syncs) {
  sqlite3_vfs *base = base_of(self);
  const char *base_name = NULL;
  database *owner = base && name ? owner_of(name, &base_name) : NULL;
  if (!owner) {
    refusal = CLINUX_REFUSED_SUPER_JOURNAL;
    return SQLITE_IOERR_DELETE;
  }
  return base->xDelete(base, base_name, syncs);
}

static int vfs_access(sqlite3_vfs *self, const char *name, int flags, int *result) {
  sqlite3_vfs *base = base_of(self);
  const char *base_name = NULL;
  *result = 0;
  if (!base || !name || !owner_of(name, &base_name)) {
    // SQLite looks for the super-journal that a journal names, before it plays the journal back. "Not there" would mean
    // that the transaction was committed.
    refusal = CLINUX_REFUSED_SUPER_JOURNAL;
    return SQLITE_IOERR_ACCESS;
  }
  return base->xAccess(base, base_name, flags, result);
}

// The path of the directory without symbolic links; the last component is not resolved, and not followed when it is
// opened. A path below a pinned directory has none, and is not resolved again.
static int vfs_full_path(sqlite3_vfs *self, const char *name, int capacity, char *result) {
  sqlite3_vfs *base = base_of(self);
  if (!base || !name) return SQLITE_CANTOPEN;
  if (!is_linux(base)) return base->xFullPathname(base, name, capacity, result);
  const char *slash = strrchr(name, '/');
  const char *file_name = slash ? slash + 1 : name;
  char directory[PATH_MAX], resolved[PATH_MAX];
  size_t length = slash ? (size_t)(slash - name) : 0;
  if (length >= sizeof directory || !*file_name) return SQLITE_CANTOPEN;
  memcpy(directory, slash ? name : ".", slash ? length : 1);
  directory[slash ? length : 1] = 0;
  if (slash == name) strcpy(directory, "/");
  if (clinux_is_pinned(name)) {
    strcpy(resolved, directory);
  } else if (!realpath(directory, resolved)) {
    return SQLITE_CANTOPEN;
  }
  int written = snprintf(result, (size_t)capacity, "%s/%s", strcmp(resolved, "/") == 0 ? "" : resolved, file_name);
  return written < 0 || written >= capacity ? SQLITE_CANTOPEN : SQLITE_OK;
}

static int vfs_randomness(sqlite3_vfs *self, int size, char *bytes) {
  sqlite3_vfs *base = base_of(self);
  return base ? base->xRandomness(base, size, bytes) : 0;
}
static int vfs_sleep(sqlite3_vfs *self, int microseconds) {
  sqlite3_vfs *base = base_of(self);
  return base ? base->xSleep(base, microseconds) : 0;
}
static int vfs_time(sqlite3_vfs *self, double *time) {
  sqlite3_vfs *base = base_of(self);
  return base ? base->xCurrentTime(base, time) : SQLITE_ERROR;
}
static int vfs_last_error(sqlite3_vfs *self, int size, char *text) {
  sqlite3_vfs *base = base_of(self);
  return base && base->xGetLastError ? base->xGetLastError(base, size, text) : 0;
}
static int vfs_time_64(sqlite3_vfs *self, sqlite3_int64 *time) {
  sqlite3_vfs *base = base_of(self);
  return base && base->iVersion >= 2 && base->xCurrentTimeInt64 ? base->xCurrentTimeInt64(base, time) : SQLITE_ERROR;
}

// No loading of libraries: xDlOpen and its like stay empty.
#define STORE_VFS(title, base)                                                                          \
  {                                                                                                     \
    .iVersion = 2, .szOsFile = sizeof(store_file), .mxPathname = PATH_MAX, .zName = title,              \
    .pAppData = base, .xOpen = vfs_open, .xDelete = vfs_delete, .xAccess = vfs_access,                  \
    .xFullPathname = vfs_full_path, .xRandomness = vfs_randomness, .xSleep = vfs_sleep,                 \
    .xCurrentTime = vfs_time, .xGetLastError = vfs_last_error, .xCurrentTimeInt64 = vfs_time_64,        \
  }

static sqlite3_vfs store_vfs = STORE_VFS(CLINUX_STORE_VFS, NULL);
static sqlite3_vfs store_vfs_without_locks = STORE_VFS(CLINUX_STORE_VFS_WITHOUT_LOCKS, "unix-none");
static sqlite3_vfs store_vfs_shared = STORE_VFS(CLINUX_STORE_VFS_SHARED, NULL);

int clinux_register_store_vfs(void) {
  int code = sqlite3_initialize();
  if (code == SQLITE_OK) code = take_over_calls();
  if (code == SQLITE_OK) code = sqlite3_vfs_register(&store_vfs, 0);
  if (code == SQLITE_OK) code = sqlite3_vfs_register(&store_vfs_without_locks, 0);
  return code == SQLITE_OK ? sqlite3_vfs_register(&store_vfs_shared, 0) : code;
}
