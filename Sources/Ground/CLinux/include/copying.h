// Calls that copy a file's content without holes, and name a file below a directory that was checked: glibc declares
// them under _GNU_SOURCE only, or they are variadic.
#ifndef CLINUX_COPYING_H
#define CLINUX_COPYING_H

#include <stdint.h>
#include <sys/types.h>

/// lseek(2) with SEEK_DATA: the start of the next data, or -1 with errno; ENXIO when only a hole follows.
int64_t clinux_next_data(int descriptor, int64_t from);

/// lseek(2) with SEEK_HOLE: the end of the data, at most the end of the file, or -1 with errno.
int64_t clinux_next_hole(int descriptor, int64_t from);

/// ioctl(2) with FICLONE: lets `to` share all blocks of `from`. 0, or -1 with errno where the file system cannot.
int clinux_share_blocks(int from, int to);

/// copy_file_range(2) at the same offset in both files; the descriptors' own offsets do not change.
ssize_t clinux_copy_range(int from, int to, int64_t offset, size_t length);

/// sync_file_range(2): writes this part of a file to the disk and waits for it. It promises less than fsync(2), but the
/// fsync has less left to do, and takes less time.
int clinux_write_out(int descriptor, int64_t offset, int64_t length);

/// fchownat(2) on the file that an O_PATH descriptor names, whatever its name refers to by now.
int clinux_change_owner(int descriptor, uid_t owner, gid_t group);

/// llistxattr(2) and lgetxattr(2) of a name in a directory that is open as `directory`. The file is not
/// opened: closing any descriptor of a database would drop this process's locks on it. A symbolic link is not followed.
ssize_t clinux_listxattr_at(int directory, const char *file, char *list, size_t size);
ssize_t clinux_getxattr_at(int directory, const char *file, const char *name, void *value, size_t size);

#endif
