// ways.h - exchanges that can be explained. Each runs the code of training, or
// a textbook's algorithm, on a virtual cluster.

#pragma once

#include "explain/story.h"
#include "group/group.h"

struct backend;

// Each way_..() fills in a story. The caller has set the story's workers, link,
// and n of the first vector. 0, or -1 after fail(), also if a sum was wrong.

// One step of the strategy of backend `b`, by sync.h, over our ring.
int way_strategy(struct story *s, const struct backend *b);

// One exchange of parameter servers and their clients.
int way_servers(struct story *s, const struct backend *b, int servers,
                bool worker_updates);

// One verb of group.h over our ring, from or to worker 0.
int way_verb(struct story *s, enum group_verb verb);

// The collective `name` by a textbook's algorithm. A message of a chain has
// `piece` elements.
enum way_algorithm {
    WAY_OWN, // our ring
    WAY_LINEAR,
    WAY_TREE,
    WAY_CHAIN,
    WAY_HALVING, // it and doubling: only all_reduce
    WAY_DOUBLING
};
extern const char *const way_algorithms[]; // their names, NULL-terminated
int way_textbook(struct story *s, const char *name,
                 enum way_algorithm algorithm, size_t piece);

// The number of a rank, 2^rank, in all elements of its vector.
static inline float way_number(int rank)
{
    return (float)(1u << rank);
}
