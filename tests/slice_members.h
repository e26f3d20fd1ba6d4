// slice_members.h - the slices of a model in one process. Each is a model with
// a thread of its own, and they exchange numbers at a barrier.

#pragma once

#include "tests/tiny_model.h"

#include <pthread.h>

// Most slices, and most numbers of a sum.
enum { MEMBERS = 4, MEMBER_SUM = 64 * 35 };

struct world {
    pthread_barrier_t barrier;
    int n;
    void *at[MEMBERS]; // the buffer that each member exchanges now
};

struct member {
    struct world *world;
    int rank, joins, gathers, norms; // counted
    struct model_slices slices;
    float sum[MEMBER_SUM];
    struct bench b;
    float loss, eval;
    pthread_t thread;
};

// Runs `body` as every slice of the model at the same time, with tp_sequence=
// `sequence`. The caller calls end_slices().
struct member *run_slices(const struct bench *whole, int slices, int sequence,
                          void *(*body)(void *));
void end_slices(struct member *all);

// Assembles the whole model's vector from those of all slices. The caller frees
// it.
float *assembled(struct member *all, bool grads);
