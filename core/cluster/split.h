// split.h - some ranks of a job as a cluster of their own: an axis of a mesh.
//
//     job    rank   0 1 2 3 4 5        all give a colour, here 0 1 0 1 0 1
//     parts         0   1   2          colour 0
//                     0   1   2        colour 1
//
// An exchange of a part is two of the job, in which all parts take part: so all
// parts exchange equally often, at the same moments. They need not exchange
// equally much.

#ifndef CLUSTER_SPLIT_H
#define CLUSTER_SPLIT_H

#include "cluster/cluster.h"

// Those of `of` that give the same colour, in the order of its ranks. A call of
// all ranks of `of`, which is borrowed until the part is closed. 0, or -1 after
// fail().
int cluster_split(struct cluster **out, struct cluster *of, int colour);

// The job that a cluster is a part of; a cluster that is no part is its own.
struct cluster *cluster_whole(struct cluster *c);

#endif
