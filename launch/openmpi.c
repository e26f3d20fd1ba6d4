// openmpi.c - selects the version of Open MPI that CMake found for this build.

#include "launch/openmpi.h"

const struct openmpi *const openmpi_here = &OPENMPI;
