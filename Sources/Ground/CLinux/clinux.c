#define _GNU_SOURCE
#include "clinux.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

int clinux_sqlite3_db_config_flag(struct sqlite3 *db, int op, int on) {
  int result = 0;
  return sqlite3_db_config(db, op, on, &result);
}

int clinux_sqlite3_without_statistics(void) { return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }

// Whether SQLite's R-Tree keeps its content in this table. It prepares its writes when the tree is opened, even only to
// read; other statements cannot reach these tables, as DEFENSIVE protects them.
static int is_rtree_content(const char *table) {
  static const char *const suffixes[] = {"_node", "_rowid", "_parent"};
  size_t length = table ? strlen(table) : 0;
  for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
    size_t suffix = strlen(suffixes[i]);
    if (length > suffix && strcmp(table + length - suffix, suffixes[i]) == 0) return 1;
  }
  return 0;
}

static int guard(void *context, int action, const char *one, const char *two, const char *schema, const char *inner) {
  (void)inner;
  int reads_only = ((uintptr_t)context & 1) != 0;
  const int *attaches = (const int *)((uintptr_t)context & ~(uintptr_t)1);
  int is_temporary = schema && strcmp(schema, "temp") == 0;
  switch (action) {
  case SQLITE_ATTACH:
  case SQLITE_DETACH: return *attaches ? SQLITE_OK : SQLITE_DENY;
  case SQLITE_FUNCTION:
    return two && (sqlite3_stricmp(two, "load_extension") == 0 || sqlite3_stricmp(two, "fts3_tokenizer") == 0)
               ? SQLITE_DENY
               : SQLITE_OK;
  case SQLITE_SELECT:
  case SQLITE_READ:
  case SQLITE_RECURSIVE:
  case SQLITE_TRANSACTION:
  case SQLITE_SAVEPOINT:
  case SQLITE_PRAGMA:
  case SQLITE_CREATE_TEMP_INDEX:
  case SQLITE_CREATE_TEMP_TABLE:
  case SQLITE_CREATE_TEMP_VIEW:
  case SQLITE_DROP_TEMP_INDEX:
  case SQLITE_DROP_TEMP_TABLE:
  case SQLITE_DROP_TEMP_VIEW: return SQLITE_OK;
  case SQLITE_INSERT:
  case SQLITE_UPDATE:
  case SQLITE_DELETE:
    // A virtual table of SQLite's own, as pragma_table_info, declares its columns in the form of an update of the
    // schema; DEFENSIVE and the file's open mode prevent a real write.
    return !reads_only || is_temporary || (action == SQLITE_UPDATE && one && strcmp(one, "sqlite_master") == 0)
                   || is_rtree_content(one)
               ? SQLITE_OK
               : SQLITE_DENY;
  default: return reads_only && !is_temporary ? SQLITE_DENY : SQLITE_OK;
  }
}

int clinux_sqlite3_guard(struct sqlite3 *db, int reads_only, const int *attaches) {
  return sqlite3_set_authorizer(db, guard, (void *)((uintptr_t)attaches | (reads_only ? 1u : 0u)));
}

// The same without openat2, name by name with O_NOFOLLOW. systemd's RestrictSUIDSGID= makes openat2 fail with ENOSYS,
// because a seccomp filter cannot inspect its argument (tried with systemd 252).
static int open_step_by_step(int directory, const char *path, int flags, unsigned mode) {
  if (path[0] == '/' || path[0] == 0) {
    errno = path[0] ? EXDEV : ENOENT;
    return -1;
  }
  int parent = directory;
  for (;;) {
    const char *slash = strchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : strlen(path);
    const char *rest = slash ? slash + strspn(slash, "/") : path + length;
    char name[256];
    int result = -1;
    if (length >= sizeof name) {
      errno = ENAMETOOLONG;
    } else if (length == 2 && path[0] == '.' && path[1] == '.') {
      errno = EXDEV;
    } else {
      memcpy(name, path, length);
      name[length] = 0;
      // A symbolic link in the middle fails with ENOTDIR under O_DIRECTORY, one at the end with ELOOP: neither is
      // followed.
      result = *rest ? openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                     : openat(parent, name, flags | O_NOFOLLOW | O_CLOEXEC, (mode_t)mode);
    }
    if (parent != directory) {
      int kept = errno;
      close(parent);
      errno = kept;
    }
    if (result < 0 || !*rest) return result;
    parent = result;
    path = rest;
  }
}

int clinux_openat_beneath(int directory, const char *path, int flags, unsigned mode) {
  struct open_how how;
  memset(&how, 0, sizeof how);
  how.flags = (uint64_t)(flags | O_CLOEXEC);
  how.mode = (flags & (O_CREAT | O_TMPFILE)) ? mode : 0;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  int opened = (int)syscall(SYS_openat2, directory, path, &how, sizeof how);
  if (opened >= 0 || errno != ENOSYS) return opened;
  return open_step_by_step(directory, path, flags, mode);
}

int clinux_renameat2(int fromDirectory, const char *from, int toDirectory, const char *to, unsigned flags) {
  return renameat2(fromDirectory, from, toDirectory, to, flags);
}

int clinux_o_path(void) { return O_PATH; }

int clinux_reserve(int descriptor, int64_t bytes) {
  return fallocate(descriptor, FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes);
}

int clinux_start_write_back(int descriptor) {
  return sync_file_range(descriptor, 0, 0, SYNC_FILE_RANGE_WRITE);
}

int clinux_take_lease(int descriptor) {
  // SIGIO, which is the default, would end the process; SIGURG is ignored by default.
  if (fcntl(descriptor, F_SETSIG, SIGURG) != 0) return -1;
  if (fcntl(descriptor, F_SETLEASE, F_WRLCK) == 0) return 0;
  // Elsewhere EAGAIN means that the file is open; an NFS client returns it wherever the server gave it no delegation
  // (nfs4_add_lease in fs/nfs/nfs4proc.c).
  int code = errno;
  struct statfs system;
  if (code == EAGAIN && fstatfs(descriptor, &system) == 0 && system.f_type == NFS_SUPER_MAGIC) code = ENOLCK;
  errno = code;
  return -1;
}

int clinux_lease_is_whole(int descriptor) {
  int lease = fcntl(descriptor, F_GETLEASE);
  if (lease == -1) return -1;
  return lease == F_WRLCK;
}

int clinux_drop_lease(int descriptor) { return fcntl(descriptor, F_SETLEASE, F_UNLCK); }

ssize_t clinux_flistxattr(int descriptor, char *list, size_t size) { return flistxattr(descriptor, list, size); }

ssize_t clinux_fgetxattr(int descriptor, const char *name, void *value, size_t size) {
  return fgetxattr(descriptor, name, value, size);
}

int clinux_fsetxattr(int descriptor, const char *name, const void *value, size_t size) {
  return fsetxattr(descriptor, name, value, size, 0);
}

int clinux_fremovexattr(int descriptor, const char *name) { return fremovexattr(descriptor, name); }

int clinux_status_at(int directory, const char *name, struct clinux_file_status *status) {
  struct statx found;
  if (statx(directory, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH, STATX_BASIC_STATS, &found) != 0) {
    return -1;
  }
  status->device = makedev(found.stx_dev_major, found.stx_dev_minor);
  status->inode = found.stx_ino;
  status->size = (int64_t)found.stx_size;
  status->allocated = (int64_t)found.stx_blocks * 512;
  status->links = found.stx_nlink;
  status->owner = found.stx_uid;
  status->group = found.stx_gid;
  status->mode = found.stx_mode;
  status->modified_seconds = found.stx_mtime.tv_sec;
  status->modified_nanoseconds = found.stx_mtime.tv_nsec;
  status->is_mount_root = (found.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
  return 0;
}

int clinux_status_beneath(int directory, const char *path, struct clinux_file_status *status) {
  int opened = clinux_openat_beneath(directory, path, O_PATH | O_NOFOLLOW, 0);
  if (opened < 0) return -1;
  int result = clinux_status_at(opened, "", status);
  int kept = errno;
  close(opened);
  errno = kept;
  return result;
}

int64_t clinux_peak_resident_bytes(void) {
  int descriptor = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return -1;
  char text[4096];
  ssize_t length = read(descriptor, text, sizeof text - 1);
  close(descriptor);
  if (length <= 0) return -1;
  text[length] = 0;
  const char *line = strstr(text, "\nVmHWM:");
  long long kibibytes;
  if (!line || sscanf(line, "\nVmHWM: %lld kB", &kibibytes) != 1) return -1;
  return (int64_t)kibibytes * 1024;
}

void clinux_limit_heaps(int count) { mallopt(M_ARENA_MAX, count); }

void clinux_give_back_memory(void) { malloc_trim(0); }

const char *clinux_error_name(int code) {
  const char *name = strerrorname_np(code);
  return name ? name : "errno";
}

int clinux_eventfd(void) { return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); }

int clinux_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC); }

ssize_t clinux_write_no_signal(int descriptor, const void *bytes, size_t length) {
  sigset_t pipe_signal, before, pending;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  // A SIGPIPE that was pending before is not this call's and stays pending.
  sigemptyset(&pending);
  sigpending(&pending);
  int was_pending = sigismember(&pending, SIGPIPE);
  int error = pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
  if (error) {
    errno = error;
    return -1;
  }
  ssize_t written = write(descriptor, bytes, length);
  int code = errno;
  if (written < 0 && code == EPIPE && !was_pending) {
    struct timespec now = {0, 0};
    while (sigtimedwait(&pipe_signal, NULL, &now) < 0 && errno == EINTR) {}
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  errno = code;
  return written;
}

int clinux_limit_process(pid_t process, uint64_t data_bytes) {
  struct rlimit data = {data_bytes, data_bytes};
  struct rlimit core = {0, 0};
  if (prlimit(process, RLIMIT_DATA, &data, NULL) < 0) return -1;
  return prlimit(process, RLIMIT_CORE, &core, NULL);
}

int clinux_peek_end(pid_t process, int *status, int *signal) {
  siginfo_t info = {0};
  while (waitid(P_PID, (id_t)process, &info, WEXITED | WNOHANG | WNOWAIT) < 0) {
    if (errno != EINTR) return -1;
  }
  if (info.si_pid == 0) return 0;
  *status = info.si_code == CLD_EXITED ? info.si_status : -1;
  *signal = info.si_code == CLD_EXITED ? 0 : info.si_status;
  return 1;
}

int clinux_accept(int listener) { return accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC); }

int clinux_peer(int descriptor, pid_t *process, uid_t *user) {
  struct ucred found;
  socklen_t length = sizeof found;
  if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &found, &length) != 0) return -1;
  *process = found.pid;
  *user = found.uid;
  return 0;
}
