// openmpi.h - mpirun's options and messages, which differ between Open MPI 4
// (openmpi_4.c, Debian 12) and Open MPI 5 (openmpi_5.c, Debian 13).

#pragma once

#include <stdbool.h>

// The rank that mpirun named first, and how it ended.
struct openmpi_failure {
    int rank; // the rank + 1; 0: none yet
    int code, signal;
};

struct openmpi {
    // Options of mpirun, separated by blanks.
    const char *one_host; // ranks of one host, with shared memory
    const char *emulated; // emulated hosts: %agent reaches them, %subnet is
                          // their network
    const char *reach;    // hosts that %agent reaches instead of ssh
    const char *scratch;  // its files, on one host: in %files and %memory
    const char *tag_end;  // text between the tag of a line and the line
    bool blank_ends;      // an empty line ends a paragraph of mpirun's own
    // Reads a line of mpirun's own; keeps what it says about a failure.
    void (*note)(struct openmpi_failure *f, const char *text);
};

extern const struct openmpi openmpi_4, openmpi_5;

// The version of this build.
extern const struct openmpi *const openmpi_here;
