// The commit, in a file of its own: another one compiles nothing else again.
#include "clinux.h"

#ifndef HOPD_COMMIT
#define HOPD_COMMIT ""
#endif

const char *clinux_commit(void) { return HOPD_COMMIT; }
