// zmq.h - the control plane without MPI: every worker exchanges messages with a
// rendezvous server.

#ifndef CLUSTER_ZMQ_H
#define CLUSTER_ZMQ_H

#include "cluster/cluster.h"

extern const struct cluster_ops cluster_zmq;

#endif
