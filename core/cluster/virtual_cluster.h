// virtual_cluster.h - the control plane for ranks of a virtual cluster. Its
// messages take no time and are not counted.

#pragma once

#include "cluster/cluster.h"

struct virtual_rank;

// The control plane of rank r among the first `world` ranks of its virtual
// cluster. It needs no close. r is borrowed.
struct cluster cluster_virtual(struct virtual_rank *r, int world,
                               double timeout_s);

// The rank r of such a cluster.
struct virtual_rank *cluster_virtual_rank(const struct cluster *c);
