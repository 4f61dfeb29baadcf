// CLinux: Linux calls and SQLite entry points that Swift cannot reach by itself.
//
// Each function is here for one of four reasons, named beside it: the C function is variadic (Swift does not import
// those), glibc declares it only under _GNU_SOURCE (Swift's Glibc module is built without it), SQLite calls it once per
// value, where what Swift makes of each call would cost more than the call, or it is a text that the build gives, which
// only a C compiler takes.
#ifndef CLINUX_H
#define CLINUX_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "copying.h"
#include "directories.h"

struct sqlite3;

/// The commit of the sources: a text of the build, empty if it gives none.
const char *clinux_commit(void);

/// sqlite3_db_config(db, op, onoff, &result) is variadic.
int clinux_sqlite3_db_config_flag(struct sqlite3 *db, int op, int on);

/// Turns off SQLite's memory statistics, for which it takes a lock with every allocation. Must be the first call of
/// SQLite, else SQLITE_MISUSE and it counts; 0, or SQLite's code. sqlite3_config is variadic.
int clinux_sqlite3_without_statistics(void);

/// Watches every statement that a connection prepares: nothing is attached or detached unless `*attaches` is not 0, no
/// function that loads code is called, and with `reads_only` nothing but temporary tables and views is made, changed or
/// dropped. In C, as SQLite calls it for every column of every statement. 0, or SQLite's code. `attaches` outlives the
/// connection.
int clinux_sqlite3_guard(struct sqlite3 *db, int reads_only, const int *attaches);

/// openat2(2) has no glibc wrapper: opens `path` below `directory` without following symbolic links and without
/// leaving the directory. Returns a descriptor or -1 with errno.
int clinux_openat_beneath(int directory, const char *path, int flags, unsigned mode);

/// renameat2(2) is _GNU_SOURCE only. `flags` may be CLINUX_RENAME_NOREPLACE or CLINUX_RENAME_EXCHANGE.
int clinux_renameat2(int fromDirectory, const char *from, int toDirectory, const char *to, unsigned flags);
enum { CLINUX_RENAME_NOREPLACE = 1, CLINUX_RENAME_EXCHANGE = 2 };

/// O_PATH is _GNU_SOURCE only: a descriptor that names a file and does not open it.
int clinux_o_path(void);

/// fallocate(2) is _GNU_SOURCE only: reserves disk space for the first `bytes` bytes; the file's size does not change.
int clinux_reserve(int descriptor, int64_t bytes);

/// sync_file_range(2) is _GNU_SOURCE only: begins to write the dirty pages of a file, and waits for none of them.
int clinux_start_write_back(int descriptor);

/// F_SETLEASE is _GNU_SOURCE only: takes a write lease; -1 with errno where that fails (EAGAIN: in use). Granted only
/// while no other descriptor of the file exists anywhere; from then on a process that opens the file waits until the
/// lease is released (or /proc/sys/fs/lease-break-time has passed). The signal of a break is one that is ignored.
int clinux_take_lease(int descriptor);
/// 1 while no process has tried to open the file since the lease was taken, 0 when one has, -1 with errno.
int clinux_lease_is_whole(int descriptor);
/// Releases a lease.
int clinux_drop_lease(int descriptor);

/// Extended attributes are not in Swift's Glibc module.
ssize_t clinux_flistxattr(int descriptor, char *list, size_t size);
ssize_t clinux_fgetxattr(int descriptor, const char *name, void *value, size_t size);
int clinux_fsetxattr(int descriptor, const char *name, const void *value, size_t size);

int clinux_fremovexattr(int descriptor, const char *name);

/// accept4(2) is _GNU_SOURCE only: the next connection, not blocking and closed on exec, or -1 with errno.
int clinux_accept(int listener);

/// SO_PEERCRED's struct ucred is _GNU_SOURCE only: process and user at the other end of a Unix socket. 0, or -1 with
/// errno.
int clinux_peer(int descriptor, pid_t *process, uid_t *user);

/// The result of statx(2); statx and its STATX_ATTR_MOUNT_ROOT are _GNU_SOURCE only.
struct clinux_file_status {
  uint64_t device;
  uint64_t inode;
  int64_t size;
  uint64_t links;
  uint32_t owner;
  uint32_t group;
  /// Type and permission bits as in st_mode.
  uint32_t mode;
  /// Bytes on the disk, including those reserved beyond the end.
  int64_t allocated;
  int64_t modified_seconds;
  uint32_t modified_nanoseconds;
  int is_mount_root;
};
/// Status of `name` in `directory`, symbolic links not followed; of the descriptor itself if the name is empty. 0, or
/// -1 with errno.
int clinux_status_at(int directory, const char *name, struct clinux_file_status *status);

/// Status of the file at `path` below `directory`, found as by clinux_openat_beneath; of a symbolic link itself if the
/// last name is one. 0, or -1 with errno.
int clinux_status_beneath(int directory, const char *path, struct clinux_file_status *status);

/// Peak resident set of this program in bytes, or -1. From /proc (VmHWM): the value of getrusage(2) includes the
/// program that forked this one, which may have been larger.
int64_t clinux_peak_resident_bytes(void);

/// malloc_trim(3) is an extension of glibc: returns free heap memory to the kernel.
void clinux_give_back_memory(void);

/// mallopt(3) is an extension of glibc: the maximum number of heaps that threads use; each keeps free memory of its
/// own.
void clinux_limit_heaps(int count);

/// The name of an errno; Swift reads errno itself directly after a call through this shim.
const char *clinux_error_name(int code);

/// <sys/eventfd.h> is not in Swift's Glibc module: a nonblocking, close-on-exec event descriptor, or -1 with errno.
int clinux_eventfd(void);

/// pipe2(2) is _GNU_SOURCE only: both ends close on exec, the reading end first. 0, or -1 with errno.
int clinux_pipe(int ends[2]);

/// Writes to a pipe whose reader may have closed it: EPIPE without SIGPIPE, whatever the process does about that signal
/// (sigtimedwait and sigset_t macros are awkward in Swift). Bytes written, or -1 with errno.
ssize_t clinux_write_no_signal(int descriptor, const void *bytes, size_t length);

/// prlimit(2) is _GNU_SOURCE only: another process's private memory in bytes (RLIMIT_DATA), and no core files.
/// 0, or -1 with errno.
int clinux_limit_process(pid_t process, uint64_t data_bytes);

/// How a child ended, without reaping it (siginfo_t's fields are macros): 1 with its exit status or its signal, 0 while
/// it runs, -1 with errno (ECHILD: reaped).
int clinux_peek_end(pid_t process, int *status, int *signal);

/// The VFS under every connection to a database file (storevfs.c lists its refusals), and the same without locks.
/// sqlite3_vfs is a structure of function pointers, which SQLite calls for every page.
#define CLINUX_STORE_VFS "hopd"
#define CLINUX_STORE_VFS_WITHOUT_LOCKS "hopd-without-locks"
// The same with a log's index in shared memory, for hopd's own record.
#define CLINUX_STORE_VFS_SHARED "hopd-shared"

/// Registers both. 0, or SQLite's code.
int clinux_register_store_vfs(void);

/// The VFS's refusal on this thread since the last call.
enum {
  CLINUX_REFUSED_NOTHING = 0,
  /// A rollback journal names a super-journal, or a transaction over several databases would make one.
  CLINUX_REFUSED_SUPER_JOURNAL = 1,
  /// A name that is no side file of an open database.
  CLINUX_REFUSED_NAME = 2,
  /// A directory of the path is a symbolic link by now.
  CLINUX_REFUSED_DIRECTORY = 3,
  /// The schema has more objects, is larger, or takes longer to read than any of Core Data's.
  CLINUX_REFUSED_SCHEMA = 4,
};
int clinux_store_vfs_take_refusal(void);

/// The file that a connection on the store VFS reads a schema from, as the VFS below has it; NULL where there is none.
/// It lives as long as the connection.
void *clinux_store_vfs_file(struct sqlite3 *database, const char *schema);

/// The descriptor of that file, for copies by the kernel; -1 where it is not known, as on a simulated disk, or where
/// SQLite took one that it had kept. It is SQLite's: closing it would end the locks of the process on the file.
int clinux_store_vfs_descriptor(struct sqlite3 *database, const char *schema);

/// Cuts that file off after so many bytes. 0, or SQLite's code.
int clinux_store_vfs_cut(struct sqlite3 *database, const char *schema, int64_t size);

/// Bytes of the write-ahead log of a schema in WAL mode; -1 where that is not known.
int64_t clinux_store_vfs_log_bytes(struct sqlite3 *database, const char *schema);

/// The VFS of connections that read through a file of another connection (readervfs.c), and its registration.
#define CLINUX_READER_VFS "hopd-reader"
int clinux_register_reader_vfs(void);

/// The next connection that this thread opens on the reader VFS reads that file, of clinux_store_vfs_file.
void clinux_reader_vfs_reads(void *file);

/// The data read of a database from its opening until CLINUX_FCNTL_SCHEMA_IS_READ are its schema, and bounded: so many
/// objects, bytes of pages, seconds of the processor. A model of a thousand entities with five indexes each has 6,000
/// objects in 2 MiB, read in 0.1 s.
enum { CLINUX_SCHEMA_OBJECTS = 10000, CLINUX_SCHEMA_BYTES = 4 << 20, CLINUX_SCHEMA_SECONDS = 1 };

/// File controls of the VFS, outside the range that SQLite reserves for its own.
enum {
  /// No argument: the schema was read.
  CLINUX_FCNTL_SCHEMA_IS_READ = 0x686f7001,
  /// struct clinux_store_identity: the file that is open, and its directory.
  CLINUX_FCNTL_IDENTITY = 0x686f7002,
};
struct clinux_store_identity {
  uint64_t device;
  uint64_t inode;
  uint64_t directory_device;
  uint64_t directory_inode;
};

#endif
