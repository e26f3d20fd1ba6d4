// ways.h - exchanges that can be explained. Each runs the code of training, or
// a textbook's algorithm, on a virtual cluster.

#pragma once

#include "explain/story.h"
#include "textbook/schedule.h"

struct backend;

// Each way_..() that takes a story fills it in. The caller has set the story's
// workers, link, and n of the first vector. 0, or -1 after fail(), also if a
// sum was wrong.

// One step of the strategy of backend `b`, by sync.h, over our ring.
int way_strategy(struct story *s, const struct backend *b);

// One exchange of parameter servers and their clients.
int way_servers(struct story *s, const struct backend *b, int servers,
                bool worker_updates);

// One verb of group.h over our ring, from or to worker 0.
int way_verb(struct story *s, enum group_verb verb);

// A collective by a textbook's algorithm. A message of a chain has `piece`
// elements.
int way_textbook(struct story *s, enum schedule_op op,
                 enum schedule_algorithm algorithm, size_t piece);

// way_moves() makes the sends and receives of a schedule on one rank. `own` and
// `landing` (receive buffer) have n elements each. 0, or -1 after fail().
// way_moves_law() adds the schedule's bytes of every rank to s->law.
int way_moves(struct virtual_rank *r, const struct schedule *s, float *own,
              float *landing);
void way_moves_law(struct story *s, const struct schedule *schedule);

// An all-reduce by a textbook's algorithm. The first three values are those of
// enum schedule_algorithm.
enum way_allreduce {
    WAY_LINEAR,
    WAY_TREE,
    WAY_CHAIN,
    WAY_HALVING,
    WAY_DOUBLING
};
int way_allreduce(struct story *s, enum way_allreduce algorithm, size_t piece);

// The number of a rank, 2^rank, in all elements of its vector.
static inline float way_number(int rank)
{
    return (float)(1u << rank);
}
