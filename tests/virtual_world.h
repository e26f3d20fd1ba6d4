// virtual_world.h - a world of test workers that are the ranks of a virtual
// cluster: they run in one process, with simulated time.

#pragma once

#include "tests/forked.h"

// The same as forked_run(), but on a virtual cluster. `launched` must be NULL.
world_runner virtual_world;
