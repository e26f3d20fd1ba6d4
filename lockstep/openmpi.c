// openmpi.c - the version of Open MPI of this build, as CMake found it.

#include "lockstep/openmpi.h"

const struct openmpi *const openmpi_here = &OPENMPI;
