// group_simulated.h - carriers of simulated ranks.

#pragma once

#include "group/group.h"

// Our ring, whose law is that of ring_tcp; and SimGrid's MPI.
extern const struct group_ops ring_simulated, library_simulated;
