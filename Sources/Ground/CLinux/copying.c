#define _GNU_SOURCE
#include "copying.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>
#include <unistd.h>

int64_t clinux_next_data(int descriptor, int64_t from) { return lseek(descriptor, (off_t)from, SEEK_DATA); }

int64_t clinux_next_hole(int descriptor, int64_t from) { return lseek(descriptor, (off_t)from, SEEK_HOLE); }

int clinux_share_blocks(int from, int to) { return ioctl(to, FICLONE, from); }

ssize_t clinux_copy_range(int from, int to, int64_t offset, size_t length) {
  off_t in = (off_t)offset, out = (off_t)offset;
  return copy_file_range(from, &in, to, &out, length, 0);
}

int clinux_write_out(int descriptor, int64_t offset, int64_t length) {
  return sync_file_range(
      descriptor, (off_t)offset, (off_t)length,
      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
}

int clinux_change_owner(int descriptor, uid_t owner, gid_t group) {
  return fchownat(descriptor, "", owner, group, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW);
}

// There is no lgetxattrat(2) before Linux 6.13. /proc leads to the very directory that the descriptor names.
static int path_in(int directory, const char *file, char *path, size_t size) {
  int length = snprintf(path, size, "/proc/self/fd/%d/%s", directory, file);
  if (length > 0 && (size_t)length < size) return 0;
  errno = ENAMETOOLONG;
  return -1;
}

ssize_t clinux_listxattr_at(int directory, const char *file, char *list, size_t size) {
  char path[512];
  return path_in(directory, file, path, sizeof path) != 0 ? -1 : llistxattr(path, list, size);
}

ssize_t clinux_getxattr_at(int directory, const char *file, const char *name, void *value, size_t size) {
  char path[512];
  return path_in(directory, file, path, sizeof path) != 0 ? -1 : lgetxattr(path, name, value, size);
}
