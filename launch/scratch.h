// scratch.h - two folders for the files of one mpirun: one for its sessions,
// one in memory for what its ranks share.
//
// Open MPI's own names are the same for all jobs of a user, so anybody could
// make them first; and a killed mpirun leaves its files. These folders have
// random names, only their user can enter them, and they are removed with the
// job. The launcher holds a lock on each. If it was killed, the lock is free,
// and the next scratch_open() removes the folder.

#pragma once

#include "config/config.h"

enum { SCRATCH_FILES, SCRATCH_MEMORY, SCRATCHES };

struct scratch {
    char path[SCRATCHES][CONFIG_PATH];
    int lock[SCRATCHES];
};

// Makes the folders, in $TMPDIR or /tmp and in /dev/shm. 0, or -1 after fail().
int scratch_open(struct scratch **s);

// Removes the folders with all that they hold. Takes NULL.
void scratch_close(struct scratch **s);
