#include <expat.h>
#include <malloc.h>
#include <stdlib.h>

// Expat with a budget. Expat keeps every different name of a document, so a document of a few megabytes can make it
// take a hundred; it has no limit of its own, but it ends with XML_ERROR_NO_MEMORY where its allocator gives nothing.
// Its allocators get no argument of ours, and one document is read within one call on one thread, so the rest of the
// budget belongs to the thread. The functions are here because Swift cannot make thread-local variables.

static inline size_t *hopd_expat_left(void) {
    static _Thread_local size_t left;
    return &left;
}

static inline void *hopd_expat_charge(void *block) {
    if (block == NULL) return NULL;
    size_t size = malloc_usable_size(block);
    if (size > *hopd_expat_left()) {
        free(block);
        return NULL;
    }
    *hopd_expat_left() -= size;
    return block;
}

static inline void *hopd_expat_malloc(size_t size) {
    return size > *hopd_expat_left() ? NULL : hopd_expat_charge(malloc(size));
}

static inline void hopd_expat_free(void *block) {
    if (block != NULL) *hopd_expat_left() += malloc_usable_size(block);
    free(block);
}

static inline void *hopd_expat_realloc(void *block, size_t size) {
    if (block == NULL) return hopd_expat_malloc(size);
    size_t before = malloc_usable_size(block);
    // What is there already counts; only what is added is new.
    if (size > before && size - before > *hopd_expat_left()) return NULL;
    void *grown = realloc(block, size);
    if (grown == NULL) return NULL;
    size_t after = malloc_usable_size(grown), whole = *hopd_expat_left() + before;
    *hopd_expat_left() = whole > after ? whole - after : 0;
    return grown;
}

/// A parser that takes at most `budget` bytes. One at a time in a thread, used and freed in the thread that made it.
static inline XML_Parser hopd_expat_create(size_t budget) {
    const XML_Memory_Handling_Suite suite = {hopd_expat_malloc, hopd_expat_realloc, hopd_expat_free};
    *hopd_expat_left() = budget;
    return XML_ParserCreate_MM(NULL, &suite, NULL);
}
