// openmpi.c - which Open MPI this was built with: CMake says.

#include "lockstep/openmpi.h"

const struct openmpi *const openmpi_here = &OPENMPI;
