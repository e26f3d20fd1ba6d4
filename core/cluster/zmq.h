// zmq.h - the control plane without MPI: every worker exchanges messages with a
// rendezvous server.

#pragma once

#include "cluster/cluster.h"

extern const struct cluster_ops cluster_zmq;
