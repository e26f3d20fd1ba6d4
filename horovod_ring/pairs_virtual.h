// pairs_virtual.h - messages between pairs of members of a virtual cluster.

#ifndef HOROVOD_RING_PAIRS_VIRTUAL_H
#define HOROVOD_RING_PAIRS_VIRTUAL_H

#include "horovod_ring/pairs.h"

struct virtual_line;

extern const struct pairs_ops pairs_virtual;

// *lines: first the lines on which a message is under way. Then, for each
// member to which this one only sends, the line from that member: on it the
// member would report a failure. The pairs own the array. Returns how many
// lines there are, or -1 after fail().
int pairs_virtual_watch(struct pairs *p, struct virtual_line *const **lines);

#endif
