// Power cuts: the log is read once, divided into operations that are safe and those that are not; any choice among the
// latter makes an image.

#include "internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
  const operation *op;
  // Its sync failed: later ones do not make it safe.
  int is_lost;
  // It is safe, but must be applied after an earlier operation that may be missing.
  int is_safe;
} pending;

struct sd_walk {
  const sd_disk *disk;
  sd_disk *safe;  // the part that every image has
  sd_disk *now;   // the state after a kill of the process
  int64_t next;
  pending *open;
  size_t count, capacity;
};

sd_walk *sd_walk_make(const sd_disk *disk) {
  sd_walk *walk = sd_allocate(1, sizeof *walk);
  walk->disk = disk;
  walk->safe = sd_clone(disk->base ? disk->base : disk);
  walk->now = sd_clone(walk->safe);
  return walk;
}

void sd_walk_free(sd_walk *walk) {
  sd_free(walk->safe);
  sd_free(walk->now);
  free(walk->open);
  free(walk);
}

static int is_name(const operation *op) {
  return op->kind == OP_ADD || op->kind == OP_REMOVE || op->kind == OP_RENAME;
}

static int concerns(const operation *op, const operation *sync) {
  if (sync->kind == OP_SYNC_DIRECTORY || sync->kind == OP_FAILED_DIRECTORY)
    return is_name(op) && (op->directory == sync->directory || (op->kind == OP_RENAME && op->other == sync->directory));
  return !is_name(op) && op->inode == sync->inode;
}

static int is_in(const operation *op, uint32_t directory) {
  return op->directory == directory || (op->kind == OP_RENAME && op->other == directory);
}

// Whether both change the same file, or names of the same directory. Then their order is kept: the later one wins.
static int meets(const operation *earlier, const operation *later) {
  if (is_name(earlier) != is_name(later)) return 0;
  if (!is_name(earlier)) return earlier->inode == later->inode;
  return is_in(later, earlier->directory) || (earlier->kind == OP_RENAME && is_in(later, earlier->other));
}

// A new file or directory exists from its creation on, but cannot be found before its name exists.
static void know_inode(sd_disk *disk, const operation *op) {
  while (op->kind == OP_ADD && disk->inode_count < op->inode) {
    sd_new_inode(disk, (op->offset >> 20) & 1, (uint32_t)op->offset & 07777);
    sd_inode(disk, disk->inode_count)->modified = op->tick;
  }
}

int sd_walk_step(sd_walk *walk) {
  if (walk->next >= walk->disk->log_count) return 0;
  const operation *op = &walk->disk->log[walk->next++];
  switch (op->kind) {
  case OP_SYNC_FILE:
  case OP_SYNC_DIRECTORY: {
    size_t left = 0;
    for (size_t i = 0; i < walk->count; i++) {
      pending each = walk->open[i];
      if (concerns(each.op, op) && !each.is_lost) each.is_safe = 1;
      int waits = !each.is_safe;
      for (size_t k = 0; k < left && !waits; k++) waits = meets(walk->open[k].op, each.op);
      if (waits) walk->open[left++] = each;
      else sd_apply(walk->safe, each.op, SD_KEPT, 0);
    }
    walk->count = left;
    break;
  }
  case OP_FAILED_FILE:
    for (size_t i = 0; i < walk->count; i++)
      if (concerns(walk->open[i].op, op) && !walk->open[i].is_safe) walk->open[i].is_lost = 1;
    break;
  // Names are in a journal: a later sync includes all earlier ones, and after a failed journal no later one succeeds
  // (ext4 aborts, xfs shuts down), which sticky faults simulate.
  case OP_FAILED_DIRECTORY: break;
  default:
    know_inode(walk->safe, op);
    know_inode(walk->now, op);
    sd_apply(walk->now, op, SD_KEPT, 0);
    if (walk->count == walk->capacity) {
      walk->capacity = walk->capacity ? walk->capacity * 2 : 64;
      walk->open = realloc(walk->open, walk->capacity * sizeof *walk->open);
      if (!walk->open) abort();
    }
    walk->open[walk->count++] = (pending){op, 0, 0};
  }
  return 1;
}

size_t sd_walk_pending(const sd_walk *walk) { return walk->count; }

int sd_walk_kind(const sd_walk *walk, size_t index) {
  return is_name(walk->open[index].op) ? SD_IS_NAME : SD_IS_CONTENT;
}

uint32_t sd_walk_object(const sd_walk *walk, size_t index) {
  const operation *op = walk->open[index].op;
  return is_name(op) ? op->directory : op->inode;
}

sd_disk *sd_walk_image(const sd_walk *walk, const uint8_t *choices, uint64_t seed) {
  sd_disk *image = sd_clone(walk->safe);
  image->boot++;
  image->clock = walk->disk->clock;
  for (size_t i = 0; i < walk->count; i++) {
    int choice = walk->open[i].is_safe ? SD_KEPT : choices[i];
    if (choice == SD_DROPPED) continue;
    sd_apply(image, walk->open[i].op, choice, seed + i * 0x9e3779b97f4a7c15u);
  }
  return image;
}

sd_disk *sd_walk_killed(const sd_walk *walk) {
  sd_disk *image = sd_clone(walk->now);
  image->clock = walk->disk->clock;
  return image;
}

// MARK: Comparing images

static uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9fb21c651e98df25u;
  return hash ^ hash >> 29;
}

static uint64_t bytes_digest(const uint8_t *bytes, size_t length) {
  uint64_t hash = 0xcbf29ce484222325u ^ length;
  size_t at = 0;
  for (; at + 8 <= length; at += 8) {
    uint64_t word;
    memcpy(&word, bytes + at, 8);
    hash = mix(hash, word);
  }
  for (; at < length; at++) hash = mix(hash, bytes[at]);
  return hash;
}

static uint64_t tree_digest(sd_disk *disk, uint32_t directory, int depth) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < disk->name_count && depth < 16; i++) {
    const name *found = &disk->names[i];
    if (found->directory != directory) continue;
    inode *file = sd_inode(disk, found->inode);
    // By number, because hard links are identified by it.
    uint64_t hash = mix(bytes_digest((const uint8_t *)found->text, strlen(found->text)), found->inode);
    hash = mix(hash, file->mode);
    if (file->is_directory) {
      hash = mix(hash, tree_digest(disk, found->inode, depth + 1));
    } else {
      content *held = file->content;
      if (!held->has_digest) {
        held->digest = bytes_digest(held->bytes, (size_t)held->size);
        held->has_digest = 1;
      }
      hash = mix(hash, held->digest);
    }
    sum += hash;  // in any order
  }
  return sum;
}

uint64_t sd_digest(sd_disk *disk) { return mix(tree_digest(disk, 1, 0), disk->boot); }
