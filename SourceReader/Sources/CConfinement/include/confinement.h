#ifndef CONFINEMENT_H
#define CONFINEMENT_H

// Leaves the process only what parsing needs: reading and writing its open files, memory, and its end. Returns 0, or an
// error number.
int confinement_enter(void);

#endif
