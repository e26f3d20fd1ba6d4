// meet.h - members of a group find each other over TCP.

#pragma once

#include "horovod_ring/streams.h"

// Every member listens on iface=, publishes its address to all others through
// the cluster, connects to its right neighbour (STREAMS_RING) or to all lower
// members (STREAMS_ALL) and accepts the others, within the cluster's deadline.
// Both ends of a connection prove that they know the acceptor's key, which
// travels through the cluster only, and the job's secret, if it has one. An
// unauthenticated peer is refused and cannot delay the others. called[rank],
// accepted[rank]: sockets, or -1; the caller closes them, after a failure too.
// `name` begins errors. All members call it. Returns 0, or -1 after fail().
int meet(struct cluster *c, const char *name, const char *iface,
         enum streams_who who, int *called, int *accepted);
