// blocks.h - buffers for the blocks with which a model computes now.
//
// With shard=2 the gradient of a block is complete in memory only while the
// model uses it; with shard=3 the same is true of its weights. Gradients have
// four buffers, and so have weights: one for the first and one for the last
// block, which a step needs both at its start and at its end, and two that all
// other blocks use in turn:
//
//     forward   take 0  1  2  3  4      weights of the next block arrive while
//     buffer         A  C  B  C  D      a block is used
//     backward  take 4  3  2  1  0      blocks 3 and 2 are still there
//     buffer         D  C  B  C  A
//
// So a step gathers each of the blocks between the first and the last once in
// forward, and all but the last two of them again in backward. Further
// micro-batches gather the blocks that are not there any more (law_gathers() of
// sync/law.h).
//
// A unit (shards.h) is exchanged as a whole. It goes from the block's start to
// its end, both moved up to multiples of RULE_BLOCK, so that the norm has the
// same bits as with every other backend. The elements of a block that come
// before its unit are the block's head. They travel as the end of the unit of
// the block before. In backward, the gradient of a block's head is copied into
// the buffer of the block before, which backward computes next. The weights of
// a head arrive with the block before. They are saved, and later copied in
// front of the rest of their own block.

#pragma once

#include "squeeze/scatter.h"
#include "zero/shards.h"

enum { BLOCK_BUFFERS = 4 };

struct block {
    size_t off, end, stop; // the block is [off, end), its unit [head, stop)
    size_t head;           // the head is [off, head)
    int unit;              // number of the unit; -1: the block is only a head
    int buffer;
};

struct weight_buffer {
    char *at;
    int holds; // number of the block in it; -1: none
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
    struct scatter *scatter; // of compressed gradients, by unit
    struct block *all;       // in the order of the vector
    int n;
    struct weight_buffer weights[BLOCK_BUFFERS];
    struct grad_buffer grads[BLOCK_BUFFERS];
    char *heads;          // of weights: RULE_BLOCK elements for each block
    float *head;          // the head of the gradient that was completed last
    float *params;        // with shard=3 this worker's chunks of all units; or
    struct offload *file; // they are in this file
    float *sums;          // this worker's chunks of the summed gradient
    bool *summed;         // by unit: sums has numbers of this step
    const struct shards *shards;
    int newest; // the block taken last
    bool backward;
};

// Allocates buffers and shards for the job's buckets, which are blocks. Borrows
// `shards`, and `scatter` for their units. Returns 0, or -1 after fail();
// blocks_close() accepts what blocks_open() left half-way.
int blocks_open(struct blocks *k, struct sync *s, const struct shards *shards,
                struct scatter *scatter);
void blocks_close(struct blocks *k);

// Shares the buffers with the members of the sync's group. All workers call it.
// Returns 0, or -1 after fail().
int blocks_share(const struct blocks *k);

// Functions of struct sync_ops; b counts from the start of the vector.
int blocks_take(struct blocks *k, int b, bool backward, struct sync_place *out);
int blocks_give(struct blocks *k, int b);
int blocks_ready(struct blocks *k, int b);

// With shard=3: finds elements [at, at + *n) of this worker's chunks, as
// offload_take() does. Returns 0, or -1 after fail().
int blocks_params(const struct blocks *k, size_t at, bool changes, size_t *n,
                  float **own);

// Waits until all sums are in k->sums. Returns 0, or -1 after fail().
int blocks_settle(struct blocks *k);

// The step is over: forget the sums and, if parameters were updated, the
// weights in the buffers.
void blocks_forget(struct blocks *k, bool updated);
