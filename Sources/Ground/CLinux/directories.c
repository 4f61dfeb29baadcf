// Directories that stand for their path. While a store is worked on, the path of its directory means the directory that
// was opened when the work began, in every call of this process that opens files by path: the calls of DurableFiles and
// those of the VFS below SQLite. So a path cannot be resolved a second time, to another directory.

#define _GNU_SOURCE
#include "directories.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clinux.h"

typedef struct pinned {
  char *path;
  size_t length;
  int descriptor;  // a duplicate of its own
  dev_t device;
  ino_t inode;
  int count;
  struct pinned *next;
} pinned;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pinned *directories;

int clinux_pin_directory(const char *path, int descriptor) {
  struct stat status;
  if (fstat(descriptor, &status) != 0) return -1;
  int code = 0;
  pthread_mutex_lock(&lock);
  pinned *found = directories;
  while (found && strcmp(found->path, path) != 0) found = found->next;
  if (found && found->device == status.st_dev && found->inode == status.st_ino) {
    found->count++;
  } else if (found) {
    code = EBUSY;
  } else {
    pinned *made = calloc(1, sizeof *made);
    if (made) {
      *made = (pinned){strdup(path), strcmp(path, "/") == 0 ? 0 : strlen(path),
                       fcntl(descriptor, F_DUPFD_CLOEXEC, 3), status.st_dev, status.st_ino, 1, directories};
    }
    if (made && made->path && made->descriptor >= 0) {
      directories = made;
    } else {
      code = made && made->path ? errno : ENOMEM;
      if (made && made->descriptor >= 0) close(made->descriptor);
      if (made) free(made->path);
      free(made);
    }
  }
  pthread_mutex_unlock(&lock);
  errno = code;
  return code ? -1 : 0;
}

void clinux_unpin_directory(const char *path) {
  pthread_mutex_lock(&lock);
  for (pinned **link = &directories; *link; link = &(*link)->next) {
    pinned *found = *link;
    if (strcmp(found->path, path) != 0) continue;
    if (--found->count == 0) {
      *link = found->next;
      close(found->descriptor);
      free(found->path);
      free(found);
    }
    break;
  }
  pthread_mutex_unlock(&lock);
}

// A descriptor of the pinned directory that is nearest above the path or the path's own, with the rest of the path; -1
// where there is none. A duplicate: the pin may end on another thread.
static int nearest(const char *path, const char **rest) {
  int descriptor = -1;
  pthread_mutex_lock(&lock);
  const pinned *best = NULL;
  for (const pinned *next = directories; next; next = next->next) {
    if (strncmp(path, next->path, next->length) != 0) continue;
    if (path[next->length] != '/' && path[next->length] != 0) continue;
    if (!best || next->length > best->length) best = next;
  }
  if (best) {
    *rest = path + best->length;
    descriptor = fcntl(best->descriptor, F_DUPFD_CLOEXEC, 3);
    if (descriptor < 0) descriptor = -2;
  }
  pthread_mutex_unlock(&lock);
  return descriptor;
}

// The root directory, opened once for the whole process; -1 where that failed.
static int root_descriptor = -1;
static void open_root(void) { root_descriptor = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC); }

static int root(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, open_root);
  if (root_descriptor < 0) errno = EMFILE;
  return root_descriptor;
}

int clinux_open_directory(const char *path, int flags) {
  if (path[0] != '/') {
    errno = EINVAL;
    return -1;
  }
  const char *rest = path;
  int pinned = nearest(path, &rest);
  int base = pinned == -1 ? root() : pinned;
  if (base < 0) return -1;
  rest += strspn(rest, "/");
  int opened = clinux_openat_beneath(base, *rest ? rest : ".", flags | O_DIRECTORY, 0);
  int kept = errno;
  if (pinned >= 0) close(pinned);
  errno = kept;
  return opened;
}

int clinux_open_parent(const char *path, const char **name) {
  const char *slash = strrchr(path, '/');
  if (path[0] != '/' || !slash) {
    errno = EINVAL;
    return -1;
  }
  *name = slash + 1;
  char parent[PATH_MAX];
  size_t length = (size_t)(slash - path);
  if (length >= sizeof parent) {
    errno = ENAMETOOLONG;
    return -1;
  }
  memcpy(parent, path, length);
  parent[length] = 0;
  return clinux_open_directory(length ? parent : "/", O_PATH);
}

int clinux_is_pinned(const char *path) {
  const char *rest = path;
  int descriptor = path[0] == '/' ? nearest(path, &rest) : -1;
  if (descriptor >= 0) close(descriptor);
  return descriptor != -1;
}

int clinux_open_pinned_parent(const char *path, const char **name) {
  if (clinux_is_pinned(path)) return clinux_open_parent(path, name);
  *name = path;
  return AT_FDCWD;
}

int clinux_open_file(int directory, const char *name, int flags) { return openat(directory, name, flags); }

int64_t clinux_file_bytes(const char *path) {
  const char *name = NULL;
  int parent = clinux_open_pinned_parent(path, &name);
  if (parent == -1) return 0;
  struct stat status;
  int code = fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW);
  if (parent != AT_FDCWD) close(parent);
  return code == 0 ? status.st_size : 0;
}
