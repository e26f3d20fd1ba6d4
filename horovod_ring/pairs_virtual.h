// pairs_virtual.h - messages between pairs of members of a virtual cluster.

#ifndef HOROVOD_RING_PAIRS_VIRTUAL_H
#define HOROVOD_RING_PAIRS_VIRTUAL_H

#include "horovod_ring/pairs.h"

struct virtual_line;

extern const struct pairs_ops pairs_virtual;

// The lines on which something is under way, and those by which members that
// take part in it would tell of a failure, into *lines, which stay the pairs';
// those last. Returns how many, or -1 after fail().
int pairs_virtual_watch(struct pairs *p, struct virtual_line *const **lines);

#endif
