// transport_virtual.h - the neighbours of a ring on a virtual cluster.

#ifndef HOROVOD_RING_TRANSPORT_VIRTUAL_H
#define HOROVOD_RING_TRANSPORT_VIRTUAL_H

#include "horovod_ring/transport.h"
#include "virtual/line.h"

// Of a cluster_virtual().
extern const struct transport_ops transport_virtual;

// The next wait() waits for these lines as well, which stay the caller's.
void transport_virtual_also(struct transport *t,
                            struct virtual_line *const *lines, int n);

// After wait() failed: the rank that did not come; -1: it is not that.
int transport_virtual_missing(const struct transport *t);

#endif
