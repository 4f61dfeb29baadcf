// Bounds of one input that libFuzzer cannot measure: -timeout counts wall time, which a busy machine stretches, and
// -rss_limit_mb counts the whole process with libFuzzer's own tables and corpus. Here it is the processor time and the
// live heap of the parser itself. malloc is replaced for that, in this program only; AddressSanitizer has its own.

#define _GNU_SOURCE
#include "FuzzBounds.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif

#ifdef WITH_ASAN
// AddressSanitizer takes two to three times as long.
#define SECONDS 3
#else
#define SECONDS 1
#endif
// HOPD_FUZZ_SECONDS=60 raises the bound, to measure how slow an input really is.
static int seconds = SECONDS;
#define HEAP_BYTES ((long)64 << 20)

#define PLAIN __attribute__((no_sanitize("coverage")))

static atomic_long live, peak;
static atomic_bool counting;
static long base, highest;
static double started, slowest;
static unsigned long inputs;

static PLAIN double processor_time(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

// Calls only functions that are allowed in a signal handler and an allocator.
static PLAIN _Noreturn void finding(const char *message) {
    atomic_store(&counting, 0);
    ssize_t ignored = write(STDERR_FILENO, message, strlen(message));
    (void)ignored;
    abort();
}

static PLAIN void out_of_time(int number) {
    (void)number;
    if (atomic_load(&counting))
        finding("\nfuzz bounds: too slow: more than a second of processor time for one input\n");
}

static PLAIN void report(void) {
    fprintf(stderr, "fuzz bounds: %lu inputs; at most %.1f MiB of heap and %.3f s of processor time for one input\n",
            inputs, (double)highest / 1048576, slowest);
}

PLAIN void fuzz_bounds_begin(void) {
    static int ready;
    if (!ready) {
        ready = 1;
        const char *more = getenv("HOPD_FUZZ_SECONDS");
        if (more != NULL && atoi(more) > 0) seconds = atoi(more);
        struct sigaction action = {.sa_handler = out_of_time, .sa_flags = SA_RESTART};
        sigaction(SIGPROF, &action, NULL);
        atexit(report);
    }
    base = atomic_load(&live);
    atomic_store(&peak, base);
    started = processor_time();
    atomic_store(&counting, 1);
    struct itimerval limit = {.it_value = {.tv_sec = seconds}};
    setitimer(ITIMER_PROF, &limit, NULL);
}

PLAIN void fuzz_bounds_end(void) {
    atomic_store(&counting, 0);
    struct itimerval none = {0};
    setitimer(ITIMER_PROF, &none, NULL);
    double taken = processor_time() - started;
    long heap = atomic_load(&peak) - base;
    if (taken > slowest) slowest = taken;
    if (heap > highest) highest = heap;
    inputs++;
}

#ifndef WITH_ASAN

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

static PLAIN void *taken(void *pointer) {
    if (pointer == NULL) return pointer;
    long now = atomic_fetch_add(&live, (long)malloc_usable_size(pointer)) + (long)malloc_usable_size(pointer);
    if (atomic_load_explicit(&counting, memory_order_relaxed) && now > atomic_load(&peak)) {
        atomic_store(&peak, now);
        if (now - base > HEAP_BYTES) finding("\nfuzz bounds: too large: more than 64 MiB of heap for one input\n");
    }
    return pointer;
}

static PLAIN void given(void *pointer) {
    if (pointer != NULL) atomic_fetch_sub(&live, (long)malloc_usable_size(pointer));
}

PLAIN void *malloc(size_t size) { return taken(__libc_malloc(size)); }
PLAIN void *calloc(size_t count, size_t size) { return taken(__libc_calloc(count, size)); }
PLAIN void *memalign(size_t alignment, size_t size) { return taken(__libc_memalign(alignment, size)); }
PLAIN void *aligned_alloc(size_t alignment, size_t size) { return taken(__libc_memalign(alignment, size)); }

PLAIN void *realloc(void *pointer, size_t size) {
    long before = pointer == NULL ? 0 : (long)malloc_usable_size(pointer);
    void *grown = __libc_realloc(pointer, size);
    if (grown != NULL || size == 0) atomic_fetch_sub(&live, before);
    return taken(grown);
}

PLAIN int posix_memalign(void **result, size_t alignment, size_t size) {
    void *pointer = __libc_memalign(alignment, size);
    if (pointer == NULL) return ENOMEM;
    *result = taken(pointer);
    return 0;
}

PLAIN void free(void *pointer) {
    given(pointer);
    __libc_free(pointer);
}

#endif

static char file_path[] = "/dev/shm/fuzz-file-XXXXXX";

static PLAIN void remove_file(void) { unlink(file_path); }

PLAIN const char *fuzz_file(const void *data, size_t size) {
    static int descriptor = -1;
    if (descriptor < 0) {
        descriptor = mkstemp(file_path);
        atexit(remove_file);
    }
    if (ftruncate(descriptor, 0) != 0 || pwrite(descriptor, data, size, 0) != (ssize_t)size) {
        perror("fuzz bounds: the file of the input");
        abort();
    }
    return file_path;
}
