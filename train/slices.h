// slices.h - a worker's slice of the tensors: what it sums with the others.
//
//     slice 0   ln | qkv att proj  \        | fc gelu out \        ..
//                                    join                   join
//     slice 1   ln | qkv att proj  /        | fc gelu out /        ..
//
// With mesh=tpT each of T workers has some heads of every layer, some of the
// numbers between the MLP's products, and some words (model/part.h). All read
// the same tokens. What each computes of a residual branch is summed over the
// slices, forward and backward: a join, after which all have the same numbers
// to the bit. So what is whole on every slice (LayerNorm, the positions, biases
// of the residual stream) has the same gradient everywhere, and stays the same
// with no traffic of its own. That takes the same number of threads and the
// same instructions on all of them.
//
// Replicas are another matter: a ring adds an element in an order that depends
// on its place in the vector, and slices of unequal length have it at other
// places. Where that could make a difference slice 0 gives the others what is
// whole, after each update (slices_align).
//
// Joins of a micro-batch of N rows, in a model of L layers:
//
//     forward    1 of the embeddings, 2 a layer
//     backward   2 a layer, 1 of the head;  with recompute=1 one more a layer
//
// Each moves N C floats, by the law of an all-reduce; besides, 3 floats a row
// and slice for the loss, and 8 bytes a slice and step for the norm.

#ifndef TRAIN_SLICES_H
#define TRAIN_SLICES_H

#include "group/group.h"
#include "model/model.h"

struct trainer;

// Which slice this is, of t->config, which is a model or a stage. 0, or -1
// after fail().
int slices_plan(struct trainer *t);

// What the model needs for it; NULL where tensors are whole.
const struct model_slices *slices_job(const struct trainer *t);

// Bytes that slices_room() takes, for sums.
size_t slices_bytes(const struct trainer *t);
int slices_room(struct trainer *t);

// Meet the other slices. A call of all workers. 0, or -1 after fail().
int slices_open(struct trainer *t);
void slices_close(struct trainer *t);

// *squares := the sum over the slices, the same bits on each. 0, or -1 after
// fail().
int slices_sum(struct trainer *t, double *squares);

// Behind an update: the others take what is whole on every slice from slice 0,
// where replicas may have added it in other orders. A call of all slices. 0, or
// -1 after fail().
int slices_align(struct trainer *t);

// What has moved between slices since open; all 0 with one.
struct group_stats slices_moved(const struct trainer *t);

#endif
