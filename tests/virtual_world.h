// virtual_world.h - a world of test workers that are the ranks of a virtual
// cluster: they run in one process, with simulated time.

#ifndef TESTS_VIRTUAL_WORLD_H
#define TESTS_VIRTUAL_WORLD_H

#include "tests/forked.h"

// The same as forked_run(), but on a virtual cluster. `launched` must be NULL.
world_runner virtual_world;

#endif
