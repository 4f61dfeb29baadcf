// Directories that stand for their path while a store in them is worked on (directories.c).
#ifndef CLINUX_DIRECTORIES_H
#define CLINUX_DIRECTORIES_H

#include <stdint.h>

/// From now on `path`, which is absolute and canonical, means the directory of the descriptor, in every call below;
/// once for each call of `clinux_unpin_directory`. 0, or -1 with errno: EBUSY while the path means another directory.
int clinux_pin_directory(const char *path, int descriptor);
void clinux_unpin_directory(const char *path);

/// Opens the directory at an absolute path without following a symbolic link in any component: below the nearest pinned
/// directory above it, else below "/". Returns a descriptor or -1 with errno.
int clinux_open_directory(const char *path, int flags);

/// Opens the directory of the file at an absolute path as `clinux_open_directory` does, with O_PATH; `name` is the
/// file's name in it, empty if the path ends with a slash. Returns a descriptor or -1 with errno.
int clinux_open_parent(const char *path, const char **name);

/// Whether a path is that of a pinned directory or lies below one.
int clinux_is_pinned(const char *path);

/// `clinux_open_parent` for a path at or below a pinned directory; for every other path AT_FDCWD and the path itself,
/// to be resolved as the caller's user typed it. Returns a descriptor to close, AT_FDCWD, or -1 with errno.
int clinux_open_pinned_parent(const char *path, const char **name);

/// Bytes of the file at a path, by lstat(2); 0 where there is none.
int64_t clinux_file_bytes(const char *path);

/// openat(2) without a mode: it is variadic.
int clinux_open_file(int directory, const char *name, int flags);

#endif
