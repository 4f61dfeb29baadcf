// The bounds that a parser must keep for every input: the promise that fuzzing checks.
#ifndef FUZZ_BOUNDS_H
#define FUZZ_BOUNDS_H

#include <stddef.h>

/// Begins to count the processor time and heap of one input. Beyond a bound it ends the process with a message and
/// SIGABRT, which libFuzzer reports as a finding. Under AddressSanitizer only time is counted, with a looser bound.
void fuzz_bounds_begin(void);

/// Ends counting; the peaks of the run are printed when the process ends.
void fuzz_bounds_end(void);

/// Writes an input into a file for parsers that open one, and returns its path; the file is removed at the end.
const char *fuzz_file(const void *data, size_t size);

#endif
