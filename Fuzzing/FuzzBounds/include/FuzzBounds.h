// What a parser may take for one input, whatever the input: the promise that fuzzing checks.
#ifndef FUZZ_BOUNDS_H
#define FUZZ_BOUNDS_H

#include <stddef.h>

/// Begins to count: processor time and heap of one input. Ends the process with a message and SIGABRT, which libFuzzer
/// takes for a finding, where either goes beyond its bound. Under AddressSanitizer only time is counted, and loosely.
void fuzz_bounds_begin(void);

/// Ends counting; the peaks of the run are printed when the process ends.
void fuzz_bounds_end(void);

#endif
