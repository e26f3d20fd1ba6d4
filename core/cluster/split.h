// split.h - some ranks of a job as a cluster of their own: an axis of a mesh.
//
//     job    rank   0 1 2 3 4 5        all give a colour, here 0 1 0 1 0 1
//     parts         0   1   2          colour 0
//                     0   1   2        colour 1
//
// An exchange of a part costs two exchanges of the job, in which all ranks of
// the job take part. So all parts must make equally many exchanges, at the same
// points of the program. The number of bytes may differ between parts.

#pragma once

#include "cluster/cluster.h"

// Opens a cluster of those ranks of `of` that give the same colour, in the same
// order. All ranks of `of` must call it. `of` must outlive the part. 0, or -1
// after fail().
int cluster_split(struct cluster **out, struct cluster *of, int colour);

// The cluster that c is a part of, directly or not; c itself if it is no part.
struct cluster *cluster_whole(struct cluster *c);
