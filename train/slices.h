// slices.h - finds a worker's slice of the tensors, and sums over all slices.
//
//     slice 0   ln | qkv att proj  \        | fc gelu out \        ..
//                                    join                   join
//     slice 1   ln | qkv att proj  /        | fc gelu out /        ..
//
// With mesh=tpT each of T workers has some heads of every layer, some of the
// hidden numbers of the MLP, and some words (model/part.h). All read the same
// tokens. In forward and in backward, what the slices compute of a residual
// branch is summed over all slices: a join. After a join all slices have the
// same numbers to the bit. So tensors that are whole on every slice (LayerNorm,
// the positions, biases of the residual stream) have the same gradient
// everywhere, and stay the same without any messages. This requires the same
// number of threads and the same instructions on all slices.
//
// Replicas may break this equality: a ring adds the replicas' elements in an
// order that depends on their place in the vector, and that place differs
// between slices of unequal length. If that can make a difference, slice 0
// sends its values of the whole tensors to the others after each update
// (slices_align).
//
// On GPUs a join goes from GPU to GPU by NCCL, if each worker has its own;
// else through host memory.
//
// Joins of a micro-batch of N rows, in a model of L layers:
//
//     forward    1 of the embeddings, 2 for each layer
//     backward   2 for each layer, 1 of the head; with recompute=1 one more for
//                each layer
//
// Each join moves N C floats, by the law of an all-reduce; with tp_wire= they
// travel in 16 bits. In addition, 3
// floats for each row and slice travel for the loss, and 8 bytes for each slice
// and step for the norm.
//
// With tp_sequence=1 each slice has only its rows of the residual stream
// (Korthikanti et al., "Reducing activation recomputation in large transformer
// models", 2022, section 4.2.2). A join is then a reduce-scatter, and the
// LayerNorm after it writes some rows, which an all-gather completes in the
// model's format. Backward gathers the gradient of each branch and, once more,
// the LayerNorm's output:
//
//     forward    2 all-gathers for each layer
//     backward   4 for each layer, 1 of the head's input, 1 of the embeddings'
//                gradient; with recompute=1 two more for each layer
//
// With tp_sequence=2 layers keep the LayerNorms' outputs, and backward gathers
// 2 for each layer instead of 4.
//
// Each slice has a part of the gradients of a LayerNorm: 2 C floats for each
// slice and LayerNorm are gathered, and added by all.

#pragma once

#include "group/group.h"
#include "model/model.h"

struct trainer;

// Replaces t->config, a model or a stage, by this worker's slice of it. Returns
// 0, or -1 after fail().
int slices_plan(struct trainer *t);

// The rows of the residual stream that this worker has of a micro-batch: all,
// or with tp_sequence= its share.
size_t slices_rows(const struct trainer *t);

// What the model needs to join with the other slices; NULL with one slice.
const struct model_slices *slices_job(const struct trainer *t);

// slices_buffer() allocates the buffer of the joins; a GPU's model has its own.
// It returns 0, or -1 after fail(). slices_bytes() says how much memory that
// takes, with the casts of a 16-bit wire; for a GPU, the copy in host memory,
// which slices_open() allocates if NCCL does not do the joins.
size_t slices_bytes(const struct trainer *t);
int slices_buffer(struct trainer *t);

// The carrier of the joins: "shm", "tcp", or "nccl" between GPUs; NULL with one
// slice. And how many slices share memory, or 0. Known after slices_open().
const char *slices_transport(const struct trainer *t);
int slices_sharing(const struct trainer *t);

// Connect to the other slices. All workers call it. Returns 0, or -1 after
// fail().
int slices_open(struct trainer *t);
void slices_close(struct trainer *t);

// Replaces *squares by its sum over the slices, the same bits on each. Returns
// 0, or -1 after fail().
int slices_sum(struct trainer *t, double *squares);

// Call it after each update, on all slices. Replicas may have summed the
// tensors that every slice holds whole in different orders; slice 0 then sends
// its values to the others. Returns 0, or -1 after fail().
int slices_align(struct trainer *t);

// Bytes that this worker has moved between slices since open; 0 with one slice.
struct group_stats slices_moved(const struct trainer *t);
