// openmpi.c - selects the version of Open MPI that CMake found for this build.

#include "lockstep/openmpi.h"

const struct openmpi *const openmpi_here = &OPENMPI;
