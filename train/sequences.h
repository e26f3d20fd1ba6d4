// sequences.h - the workers that divide the sequences of one replica
// (mesh=cpN, or cpN,upM).
//
// All of them read the same batch. Each keeps the tokens of its own pieces
// (base/zigzag.h), and computes all of the model for them. Only attention needs
// other workers' tokens: model/pieces.c says what it exchanges, and this module
// makes the exchanges. A worker's gradients and its loss are shares of the
// whole: the gradients are summed with those of the replicas, by the same
// exchange; the loss by sequences_sum().
//
// docs/sequence.md has the law. In addition 8 bytes from each worker to each
// other of its groups travel for the loss of a step.

#pragma once

#include "config/mesh.h"
#include "group/group.h"
#include "model/model.h"

struct trainer;

// Refuses sequences of fewer tokens than workers, and finds this worker's
// pieces. Returns 0, or -1 after fail().
int sequences_plan(struct trainer *t);

// How many tokens of each sequence this worker has.
int sequences_tokens(const struct trainer *t);

// What the model needs for attention; NULL if sequences are whole.
const struct model_pieces *sequences_job(const struct trainer *t);

// Moves this worker's tokens of a batch (B, T) to its start.
void sequences_pick(const struct trainer *t, int32_t *x);

// The bytes of the buffers in host memory through which a GPU's vectors travel,
// for a model of *job; on a CPU 0. If NCCL moves all of them, there are none.
size_t sequences_bytes(const struct trainer *t, const struct model_job *job);

// Connect to the workers that have the other pieces, for a model of *job. All
// workers call it. Returns 0, or -1 after fail().
int sequences_open(struct trainer *t, const struct model_job *job);
void sequences_close(struct trainer *t);

// The carrier of keys and values, or with `heads` that of heads; NULL if none
// travel. And how many of these workers share memory, or 0. Known after
// sequences_open().
const char *sequences_transport(const struct trainer *t, bool heads);
int sequences_sharing(const struct trainer *t);

// Replaces *loss by its sum over these workers, the same bits on each. Returns
// 0, or -1 after fail().
int sequences_sum(struct trainer *t, double *loss);

// Bytes that this worker has moved between these workers since open: along an
// axis, MESH_CP or MESH_UP.
struct group_stats sequences_moved(const struct trainer *t,
                                   enum mesh_axis axis);
