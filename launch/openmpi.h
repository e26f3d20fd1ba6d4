// openmpi.h - mpirun's options and messages, which differ between Open MPI 4
// (Debian 12) and Open MPI 5 (Debian 13).

#pragma once

#include <stdbool.h>

struct openmpi {
    // Options of mpirun, separated by blanks.
    const char *one_host; // ranks of one host, with shared memory
    const char *emulated; // emulated hosts: %agent reaches them, %subnet is
                          // their network
    const char *reach;    // hosts that %agent reaches instead of ssh
    const char *scratch;  // its files, on one host: in %files and %memory
    const char *tag_end;  // text between the tag of a line and the line
    bool blank_ends;      // an empty line ends a paragraph of mpirun's own
};

extern const struct openmpi openmpi_4, openmpi_5;

// The version that CMake found for this build.
extern const struct openmpi *const openmpi_here;
