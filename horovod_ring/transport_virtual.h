// transport_virtual.h - the neighbours of a ring on a virtual cluster.

#ifndef HOROVOD_RING_TRANSPORT_VIRTUAL_H
#define HOROVOD_RING_TRANSPORT_VIRTUAL_H

#include "horovod_ring/transport.h"
#include "virtual/line.h"

// For the ranks of a cluster_virtual().
extern const struct transport_ops transport_virtual;

// The next wait() also waits for these n lines. The caller owns them.
void transport_virtual_also(struct transport *t,
                            struct virtual_line *const *lines, int n);

// After wait() has failed: the rank that did not answer, or -1 if that was not
// the reason.
int transport_virtual_missing(const struct transport *t);

#endif
