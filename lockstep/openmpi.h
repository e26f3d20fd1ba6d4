// openmpi.h - mpirun's words, which have changed from Open MPI 4 to 5. What
// differs is in openmpi_4.c (Debian 12) and openmpi_5.c (Debian 13).

#ifndef LOCKSTEP_OPENMPI_H
#define LOCKSTEP_OPENMPI_H

#include <stdbool.h>

// Which rank mpirun named first, and how that one ended.
struct openmpi_failure {
    int rank; // + 1; 0: none yet
    int code, signal;
};

struct openmpi {
    // Words of its command, with blanks between them: for ranks of one host,
    // which exchange by shared memory; for ranks of emulated hosts, which are
    // reached through %agent and talk over %subnet; for hosts that something
    // else than ssh reaches.
    const char *one_host, *emulated, *reach;
    const char *tag_end; // between the tag of a line and the line
    bool blank_ends;     // an empty line ends a paragraph of its own
    // A line of its own: keep what it says of a failure.
    void (*note)(struct openmpi_failure *f, const char *text);
};

extern const struct openmpi openmpi_4, openmpi_5;

// The one that this was built with.
extern const struct openmpi *const openmpi_here;

#endif
