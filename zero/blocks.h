// blocks.h - buffers for the blocks that a model works on now.
//
// With shard=2 a block's gradient, with shard=3 its weights, too, exist as a
// whole only while the model uses them. Each kind has four buffers: of the
// first and of the last block, which a step needs at both of its ends, and two
// that the others take in turn:
//
//     forward   take 0  1  2  3  4      weights of the next block arrive while
//     buffer         A  C  B  C  D      one is used
//     backward  take 4  3  2  1  0      3 and 2 are still there
//     buffer         D  C  B  C  A
//
// So a step of L blocks between the first and the last gathers each once in
// forward, and all but the last two of them again in backward; further micro-
// batches gather what is not there any more (law_gathers() of sync/law.h).
//
// What travels is a unit (shards.h), from the block's start to its end, both
// moved up to multiples of RULE_BLOCK, so that the norm has the bits of every
// other way. What a block has before its unit begins, its head, is the end of
// the unit before: of gradients, each block leaves its head to the next block
// of backward; of weights, heads are kept as they come, and put in front.

#ifndef ZERO_BLOCKS_H
#define ZERO_BLOCKS_H

#include "zero/shards.h"

enum { BLOCK_BUFFERS = 4 };

struct block {
    size_t off, end, stop;   // elements of the vector: its own, and its unit's
    size_t head;             // where the unit begins; end of the head
    const struct unit *unit; // NULL: the head is all there is
    int buffer;
};

struct weight_buffer {
    char *at;
    int holds; // a block; -1: none
    bool taken, arrived;
    uint64_t ticket;
};

struct grad_buffer {
    float *at;
    int sums; // the block whose sum is on its way; -1: none
    uint64_t ticket;
};

struct blocks {
    struct sync *sync;
    struct group *group;
    struct block *all; // from the start of the vector
    int n;
    struct weight_buffer weights[BLOCK_BUFFERS];
    struct grad_buffer grads[BLOCK_BUFFERS];
    void *memory[2]; // of the buffers: weights, gradients
    char *heads;     // RULE_BLOCK weights for each block
    float *head;     // of the gradient that was complete last
    float *params;   // this worker's chunks of all units; NULL unless lent
    float *sums;     // likewise, of gradients
    bool *summed;    // of each unit: sums has something of this step
    const struct shards *shards;
    int newest; // block taken last
    bool backward;
};

// Buffers and shards for the job's buckets, which are blocks. Borrows the
// shards. 0, or -1 after fail(). Close takes what open left half-way.
int blocks_open(struct blocks *k, struct sync *s, const struct shards *shards);
void blocks_close(struct blocks *k);

// The group by which they travel. A call of all workers.
int blocks_join(struct blocks *k, struct group *g);

// sync_ops: take, give; ready, of block b.
int blocks_take(struct blocks *k, int b, bool backward, struct sync_place *out);
int blocks_give(struct blocks *k, int b);
int blocks_ready(struct blocks *k, int b);

// All sums have come and are in k->sums.
int blocks_settle(struct blocks *k);

// The step is over: what is gathered is of earlier parameters, the sums too.
void blocks_forget(struct blocks *k, bool updated);

#endif
