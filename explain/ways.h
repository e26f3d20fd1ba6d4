// ways.h - exchanges that can be told: each runs the product's own code on a
// virtual cluster.

#ifndef EXPLAIN_WAYS_H
#define EXPLAIN_WAYS_H

#include "explain/story.h"
#include "textbook/schedule.h"

struct backend;

// Each fills in a story whose question is set: workers, link, n of its first
// vector. 0, or -1 after fail(): a sum was wrong, too.

// One step of a backend of replicas over our ring: its strategy, by sync.h.
int way_strategy(struct story *s, const struct backend *b);

// One round of the parameter servers and their clients.
int way_servers(struct story *s, const struct backend *b, int servers,
                bool worker_updates);

// One verb of group.h over our ring, from or to worker 0.
int way_verb(struct story *s, enum group_verb verb);

// A collective as textbooks teach it.
int way_textbook(struct story *s, enum schedule_op op,
                 enum schedule_algorithm algorithm, size_t piece);

// The moves of a schedule on one rank; what they sum to, into s->law.
int way_moves(struct virtual_rank *r, const struct schedule *s, float *own,
              float *landing);
void way_moves_law(struct story *s, const struct schedule *schedule);

// An all-reduce as textbooks teach it; the first three as enum
// schedule_algorithm.
enum way_allreduce {
    WAY_LINEAR,
    WAY_TREE,
    WAY_CHAIN,
    WAY_HALVING,
    WAY_DOUBLING
};
int way_allreduce(struct story *s, enum way_allreduce algorithm, size_t piece);

// A rank's number, of which sums are made.
static inline float way_number(int rank)
{
    return (float)(1u << rank);
}

#endif
