// Files, names, the log, and the calls in which a fault can occur.

#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *sd_allocate(size_t count, size_t size) {
  void *memory = calloc(count ? count : 1, size);
  if (!memory) abort();
  return memory;
}

static void *grown(void *memory, size_t count, size_t size) {
  memory = realloc(memory, count * size);
  if (!memory) abort();
  return memory;
}

// MARK: Content, shared until one owner writes

static content *content_make(void) {
  content *made = sd_allocate(1, sizeof *made);
  made->references = 1;
  return made;
}

static void content_release(content *held) {
  if (!held || --held->references > 0) return;
  free(held->bytes);
  free(held);
}

static content *writable(inode *file, int64_t capacity) {
  content *now = file->content;
  if (now->references > 1 || now->capacity < capacity) {
    int64_t room = now->capacity > 0 ? now->capacity : 4096;
    while (room < capacity) room *= 2;
    content *made = content_make();
    made->capacity = room;
    made->size = now->size;
    made->bytes = sd_allocate(1, (size_t)room);
    if (now->size) memcpy(made->bytes, now->bytes, (size_t)now->size);
    content_release(now);
    file->content = made;
  }
  file->content->has_digest = 0;
  return file->content;
}

// MARK: Disks

inode *sd_inode(sd_disk *disk, uint32_t number) {
  if (number == 0 || number > disk->inode_count) abort();
  return &disk->inodes[number - 1];
}

uint32_t sd_new_inode(sd_disk *disk, int is_directory, uint32_t mode) {
  if (disk->inode_count == disk->inode_capacity) {
    disk->inode_capacity = disk->inode_capacity ? disk->inode_capacity * 2 : 32;
    disk->inodes = grown(disk->inodes, disk->inode_capacity, sizeof *disk->inodes);
  }
  inode *made = &disk->inodes[disk->inode_count++];
  memset(made, 0, sizeof *made);
  made->is_directory = is_directory;
  made->mode = mode;
  made->content = content_make();
  return disk->inode_count;
}

sd_disk *sd_make(uint32_t device) {
  sd_disk *disk = sd_allocate(1, sizeof *disk);
  disk->device = device;
  disk->boot = 1;
  sd_new_inode(disk, 1, 0755);
  return disk;
}

sd_disk *sd_clone(const sd_disk *disk) {
  sd_disk *made = sd_allocate(1, sizeof *made);
  made->device = disk->device;
  made->boot = disk->boot;
  made->clock = disk->clock;
  made->inode_count = made->inode_capacity = disk->inode_count;
  made->inodes = sd_allocate(disk->inode_count, sizeof *made->inodes);
  for (uint32_t i = 0; i < disk->inode_count; i++) {
    made->inodes[i] = disk->inodes[i];
    memset(&made->inodes[i].use, 0, sizeof made->inodes[i].use);
    made->inodes[i].content->references++;
  }
  made->name_count = made->name_capacity = disk->name_count;
  made->names = sd_allocate(disk->name_count, sizeof *made->names);
  for (uint32_t i = 0; i < disk->name_count; i++) {
    made->names[i] = disk->names[i];
    made->names[i].text = strdup(disk->names[i].text);
  }
  return made;
}

sd_disk *sd_copy(const sd_disk *disk) { return sd_clone(disk); }

void sd_settle(sd_disk *disk) {
  for (int64_t i = 0; i < disk->log_count; i++) {
    free(disk->log[i].name);
    free(disk->log[i].name2);
    free(disk->log[i].bytes);
  }
  free(disk->log);
  disk->log = NULL;
  disk->log_count = disk->log_capacity = 0;
  if (disk->base) sd_free(disk->base);
  disk->base = NULL;
}

void sd_free(sd_disk *disk) {
  if (disk->open_files) abort();
  sd_settle(disk);
  for (uint32_t i = 0; i < disk->inode_count; i++) content_release(disk->inodes[i].content);
  for (uint32_t i = 0; i < disk->name_count; i++) free(disk->names[i].text);
  free(disk->inodes);
  free(disk->names);
  free(disk);
}

uint32_t sd_device(const sd_disk *disk) { return disk->device; }
uint32_t sd_boot(const sd_disk *disk) { return disk->boot; }

// MARK: Names

static int64_t name_index(const sd_disk *disk, uint32_t directory, const char *text, size_t length) {
  for (uint32_t i = 0; i < disk->name_count; i++) {
    const name *found = &disk->names[i];
    if (found->directory == directory && strncmp(found->text, text, length) == 0 && found->text[length] == 0) return i;
  }
  return -1;
}

static void name_remove(sd_disk *disk, uint32_t directory, const char *text) {
  int64_t index = name_index(disk, directory, text, strlen(text));
  if (index < 0) return;
  free(disk->names[index].text);
  disk->names[index] = disk->names[--disk->name_count];
}

static void name_set(sd_disk *disk, uint32_t directory, const char *text, uint32_t number) {
  int64_t index = name_index(disk, directory, text, strlen(text));
  if (index >= 0) {
    disk->names[index].inode = number;
    return;
  }
  if (disk->name_count == disk->name_capacity) {
    disk->name_capacity = disk->name_capacity ? disk->name_capacity * 2 : 32;
    disk->names = grown(disk->names, disk->name_capacity, sizeof *disk->names);
  }
  disk->names[disk->name_count++] = (name){strdup(text), directory, number};
}

uint32_t sd_find(sd_disk *disk, const char *path, uint32_t *directory, const char **last) {
  // Skip the mount point, which is the root.
  const char *rest = path[0] == '/' ? strchr(path + 1, '/') : NULL;
  uint32_t at = 1;
  if (directory) *directory = 0;
  if (last) *last = "";
  while (rest && *rest) {
    while (*rest == '/') rest++;
    if (!*rest) break;
    size_t length = strcspn(rest, "/");
    if (length > 255) {
      errno = ENAMETOOLONG;
      return 0;
    }
    if (!sd_inode(disk, at)->is_directory) {
      errno = ENOTDIR;
      return 0;
    }
    int is_last = rest[length + strspn(rest + length, "/")] == 0;
    if (is_last && directory) *directory = at;
    if (is_last && last) *last = rest;
    int64_t index = name_index(disk, at, rest, length);
    if (index < 0) {
      errno = ENOENT;
      return 0;
    }
    at = disk->names[index].inode;
    rest += length;
  }
  return at;
}

// Whether a path leads to the directory. If the directory's own name was lost, the names in it are lost too, as with
// any journal.
static int is_found(const sd_disk *disk, uint32_t directory, int depth) {
  if (directory == 1) return 1;
  for (uint32_t i = 0; i < disk->name_count && depth < 16; i++)
    if (disk->names[i].inode == directory) return is_found(disk, disk->names[i].directory, depth + 1);
  return 0;
}

static uint32_t link_count(const sd_disk *disk, uint32_t number) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < disk->name_count; i++)
    count += disk->names[i].inode == number && is_found(disk, disk->names[i].directory, 0);
  return count;
}

// MARK: Operations

void sd_apply(sd_disk *disk, const operation *op, int choice, uint64_t seed) {
  switch (op->kind) {
  case OP_WRITE: {
    inode *file = sd_inode(disk, op->inode);
    int64_t end = op->offset + op->length;
    int64_t old = file->content->size;
    content *into = writable(file, end);
    if (end > old && choice != SD_TORN) into->size = end;
    for (int64_t at = op->offset; at < end;) {
      // Sectors of the file, not of the write: a disk writes aligned blocks of 512 bytes.
      int64_t stop = (at / 512 + 1) * 512;
      if (stop > end) stop = end;
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      if (choice == SD_KEPT || (choice == SD_TORN && seed >> 63)) {
        memcpy(into->bytes + at, op->bytes + (at - op->offset), (size_t)(stop - at));
        if (stop > into->size) into->size = stop;
      }
      at = stop;
    }
    file->modified = op->tick;
    break;
  }
  case OP_TRUNCATE: {
    inode *file = sd_inode(disk, op->inode);
    content *into = writable(file, op->offset);
    if (op->offset < into->size) memset(into->bytes + op->offset, 0, (size_t)(into->size - op->offset));
    into->size = op->offset;
    file->modified = op->tick;
    break;
  }
  case OP_MODE: sd_inode(disk, op->inode)->mode = (uint32_t)op->offset; break;
  case OP_ADD: name_set(disk, op->directory, op->name, op->inode); break;
  case OP_REMOVE: name_remove(disk, op->directory, op->name); break;
  case OP_RENAME:
    name_remove(disk, op->directory, op->name);
    name_set(disk, op->other, op->name2, op->inode);
    break;
  default: break;
  }
}

void sd_log(sd_disk *disk, operation op) {
  if (!disk->base) {
    disk->base = sd_clone(disk);
  }
  if (disk->log_count == disk->log_capacity) {
    disk->log_capacity = disk->log_capacity ? disk->log_capacity * 2 : 256;
    disk->log = grown(disk->log, (size_t)disk->log_capacity, sizeof *disk->log);
  }
  if (op.name) op.name = strdup(op.name);
  if (op.name2) op.name2 = strdup(op.name2);
  if (op.bytes) {
    uint8_t *copy = sd_allocate(1, op.length);
    memcpy(copy, op.bytes, op.length);
    op.bytes = copy;
  }
  op.tick = ++disk->clock;
  disk->log[disk->log_count++] = op;
  sd_apply(disk, &op, SD_KEPT, 0);
}

int64_t sd_moment(const sd_disk *disk) { return disk->log_count; }

const char *sd_operation(const sd_disk *disk, int64_t index, char *buffer, size_t capacity) {
  static const char *const words[] = {"write",     "truncate",       "mode",       "add",
                                      "remove",    "rename",         "sync",       "sync directory",
                                      "sync fails", "sync of directory fails"};
  if (index < 0 || index >= disk->log_count) {
    snprintf(buffer, capacity, "the end");
    return buffer;
  }
  const operation *op = &disk->log[index];
  const char *called = op->name ? op->name : "";
  // The file's current name is the most useful one.
  uint32_t subject = op->kind == OP_SYNC_DIRECTORY || op->kind == OP_FAILED_DIRECTORY ? op->directory : op->inode;
  for (uint32_t i = 0; !op->name && i < disk->name_count; i++)
    if (disk->names[i].inode == subject) called = disk->names[i].text;
  snprintf(buffer, capacity, "%s %s%s%s #%u %lld+%u", words[op->kind], called, op->name2 ? " to " : "",
           op->name2 ? op->name2 : "", subject, (long long)op->offset, op->length);
  return buffer;
}

// MARK: Faults

static const char *short_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

int sd_enter(sd_disk *disk, int kind, const char *what, const char *path) {
  if (!(disk->fail_kinds & kind)) return 0;
  int64_t number = ++disk->calls;
  if (!disk->fail_at || number < disk->fail_at || (number > disk->fail_at && !disk->is_sticky)) return 0;
  if (number == disk->fail_at) snprintf(disk->last_fault, sizeof disk->last_fault, "%s %s", what, short_name(path));
  return disk->fail_code;
}

void sd_fail_at(sd_disk *disk, int64_t number, int is_sticky, int code, int kinds) {
  disk->fail_at = number;
  disk->is_sticky = is_sticky;
  disk->fail_code = code;
  disk->fail_kinds = kinds;
  disk->calls = 0;
}

void sd_skip_sync(sd_disk *disk, int64_t number) {
  disk->skip_at = number;
  disk->syncs = 0;
}

int64_t sd_calls(const sd_disk *disk) { return disk->calls; }
int64_t sd_syncs(const sd_disk *disk) { return disk->syncs; }
const char *sd_last_fault(const sd_disk *disk) { return disk->last_fault; }
int64_t sd_lost_locks(const sd_disk *disk) { return disk->lost_locks; }
const char *sd_lost_lock(const sd_disk *disk) { return disk->lost_lock; }

/// Opening and closing a descriptor of a file would drop any locks that SQLite has on it.
static void touch(sd_disk *disk, uint32_t number, const char *what, const char *path) {
  usage *use = &sd_inode(disk, number)->use;
  if (!use->shared && !use->exclusive) return;
  disk->lost_locks++;
  snprintf(disk->lost_lock, sizeof disk->lost_lock, "%s %s", what, short_name(path));
}

// MARK: Calls

#define ENTER(kind, what)                                   \
  do {                                                      \
    int code = sd_enter(disk, kind, what, path);            \
    if (code) return code;                                  \
  } while (0)

int sd_stat(sd_disk *disk, const char *path, sd_status *status) {
  ENTER(SD_READS, "status");
  uint32_t number = sd_find(disk, path, NULL, NULL);
  if (!number) return errno;
  inode *found = sd_inode(disk, number);
  *status = (sd_status){number, found->is_directory, found->content->size, link_count(disk, number), found->mode,
                        found->modified, found->use.open > 0};
  return 0;
}

int sd_list(sd_disk *disk, const char *path, char *buffer, size_t capacity, size_t *length) {
  ENTER(SD_READS, "list");
  uint32_t number = sd_find(disk, path, NULL, NULL);
  if (!number) return errno;
  if (!sd_inode(disk, number)->is_directory) return ENOTDIR;
  *length = 0;
  for (uint32_t i = 0; i < disk->name_count; i++) {
    if (disk->names[i].directory != number) continue;
    size_t size = strlen(disk->names[i].text) + 1;
    if (*length + size > capacity) return ERANGE;
    memcpy(buffer + *length, disk->names[i].text, size);
    *length += size;
  }
  return 0;
}

int sd_read(sd_disk *disk, const char *path, void *buffer, size_t capacity, size_t *length) {
  ENTER(SD_READS, "read");
  uint32_t number = sd_find(disk, path, NULL, NULL);
  if (!number) return errno;
  inode *file = sd_inode(disk, number);
  if (file->is_directory) return EISDIR;
  touch(disk, number, "read", path);
  *length = (size_t)file->content->size;
  size_t count = *length < capacity ? *length : capacity;
  if (count) memcpy(buffer, file->content->bytes, count);
  return 0;
}

static int add(sd_disk *disk, const char *path, int is_directory, uint32_t mode) {
  uint32_t directory;
  const char *last;
  if (sd_find(disk, path, &directory, &last)) return EEXIST;
  if (!directory) return errno;
  if (errno != ENOENT) return errno;
  uint32_t number;
  // The log's base must have the inode as well: it is made there first, and cannot be reached without its name.
  if (!disk->base) disk->base = sd_clone(disk);
  number = sd_new_inode(disk, is_directory, mode);
  sd_log(disk, (operation){.kind = OP_ADD, .inode = number, .directory = directory, .name = (char *)last,
                           .offset = (int64_t)mode | (is_directory ? 1 << 20 : 0)});
  sd_inode(disk, number)->modified = disk->clock;
  return 0;
}

int sd_create(sd_disk *disk, const char *path, uint32_t mode) {
  ENTER(SD_CHANGES, "create");
  return add(disk, path, 0, mode);
}

int sd_make_directory(sd_disk *disk, const char *path, uint32_t mode) {
  ENTER(SD_CHANGES, "mkdir");
  return add(disk, path, 1, mode);
}

int sd_write(sd_disk *disk, const char *path, const void *bytes, size_t length, int64_t offset) {
  ENTER(SD_CHANGES, "write");
  uint32_t number = sd_find(disk, path, NULL, NULL);
  if (!number) return errno;
  touch(disk, number, "write", path);
  sd_log(disk, (operation){.kind = OP_WRITE, .inode = number, .offset = offset, .length = (uint32_t)length,
                           .bytes = (uint8_t *)bytes});
  return 0;
}

int sd_truncate(sd_disk *disk, const char *path, int64_t size) {
  ENTER(SD_CHANGES, "truncate");
  uint32_t number = sd_find(disk, path, NULL, NULL);
  if (!number) return errno;
  touch(disk, number, "truncate", path);
  sd_log(disk, (operation){.kind = OP_TRUNCATE, .inode = number, .offset = size});
  return 0;
}

int sd_set_mode(sd_disk *disk, const char *path, uint32_t mode) {
  ENTER(SD_CHANGES, "mode");
  uint32_t number = sd_find(disk, path, NULL, NULL);
  if (!number) return errno;
  touch(disk, number, "mode", path);
  sd_log(disk, (operation){.kind = OP_MODE, .inode = number, .offset = mode});
  return 0;
}

int sd_link(sd_disk *disk, const char *existing, const char *path) {
  ENTER(SD_CHANGES, "link");
  uint32_t directory, number = sd_find(disk, existing, NULL, NULL);
  const char *last;
  if (!number) return errno;
  if (sd_inode(disk, number)->is_directory) return EPERM;
  if (sd_find(disk, path, &directory, &last)) return EEXIST;
  if (!directory || errno != ENOENT) return errno;
  sd_log(disk, (operation){.kind = OP_ADD, .inode = number, .directory = directory, .name = (char *)last});
  return 0;
}

int sd_rename(sd_disk *disk, const char *old, const char *path, int replaces) {
  ENTER(SD_CHANGES, "rename to");
  uint32_t from, to, number = sd_find(disk, old, &from, NULL);
  const char *old_last, *last;
  if (!number) return errno;
  sd_find(disk, old, &from, &old_last);
  uint32_t there = sd_find(disk, path, &to, &last);
  if (!to || (!there && errno != ENOENT)) return errno;
  if (there && !replaces) return EEXIST;
  if (there == number) return 0;
  if (there && sd_inode(disk, there)->is_directory) return EISDIR;
  sd_log(disk, (operation){.kind = OP_RENAME, .inode = number, .directory = from, .other = to, .name = (char *)old_last,
                           .name2 = (char *)last});
  return 0;
}

int sd_unlink(sd_disk *disk, const char *path) {
  ENTER(SD_CHANGES, "unlink");
  uint32_t directory;
  const char *last;
  uint32_t number = sd_find(disk, path, &directory, &last);
  if (!number) return errno;
  if (sd_inode(disk, number)->is_directory) return EISDIR;
  sd_log(disk, (operation){.kind = OP_REMOVE, .inode = number, .directory = directory, .name = (char *)last});
  return 0;
}

int sd_remove_directory(sd_disk *disk, const char *path) {
  ENTER(SD_CHANGES, "rmdir");
  uint32_t directory;
  const char *last;
  uint32_t number = sd_find(disk, path, &directory, &last);
  if (!number) return errno;
  if (!sd_inode(disk, number)->is_directory) return ENOTDIR;
  for (uint32_t i = 0; i < disk->name_count; i++)
    if (disk->names[i].directory == number) return ENOTEMPTY;
  sd_log(disk, (operation){.kind = OP_REMOVE, .inode = number, .directory = directory, .name = (char *)last});
  return 0;
}

int sd_sync(sd_disk *disk, uint32_t number, int is_directory, const char *path) {
  int code = sd_enter(disk, SD_SYNCS, is_directory ? "sync directory" : "sync", path);
  operation op = {.kind = is_directory ? OP_SYNC_DIRECTORY : OP_SYNC_FILE, .inode = is_directory ? 0 : number,
                  .directory = is_directory ? number : 0};
  if (code) {
    op.kind = is_directory ? OP_FAILED_DIRECTORY : OP_FAILED_FILE;
    sd_log(disk, op);
    return code;
  }
  if (++disk->syncs == disk->skip_at) {
    snprintf(disk->last_fault, sizeof disk->last_fault, "sync%s %s", is_directory ? " directory" : "",
             short_name(path));
    return 0;
  }
  sd_log(disk, op);
  return 0;
}

int sd_sync_file(sd_disk *disk, const char *path) {
  uint32_t number = sd_find(disk, path, NULL, NULL);
  if (!number) return errno;
  touch(disk, number, "sync", path);
  return sd_sync(disk, number, 0, path);
}

int sd_sync_directory(sd_disk *disk, const char *path) {
  uint32_t number = sd_find(disk, path, NULL, NULL);
  if (!number) return errno;
  if (!sd_inode(disk, number)->is_directory) return ENOTDIR;
  return sd_sync(disk, number, 1, path);
}
