// meet.h - members of a group find each other over TCP.

#pragma once

#include "horovod_ring/streams.h"

// Every member listens on iface=, publishes its address to all others through
// the cluster, connects the links that it calls and accepts the others, within
// the cluster's deadline. Both ends of a connection prove that they know the
// acceptor's key, which travels through the cluster only, and the job's secret,
// if it has one. An unauthenticated peer is refused and cannot delay the
// others. fd[link], zero before, becomes 1 + the link's socket; the caller
// closes them, after a failure too. All members call it. Returns 0, or -1 after
// fail().
int meet(const struct streams *p, struct cluster *c, const char *iface,
         int *fd);
