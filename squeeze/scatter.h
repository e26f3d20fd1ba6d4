// scatter.h - sums of compressed gradients of which each worker gets only its
// own part, for strategies in which it updates only that (zero/zero.c).
//
//     ready    x = gradients + residual; a message of each part to its owner
//     step     the owner adds up the messages of its part, and updates with it
//
// With shard=2 and 3 a range travels in every micro-batch, and is taken before
// the next one needs its memory (zero/blocks.c).
//
// The sum itself is not compressed, as it is where all workers need it
// (messages.c). So a worker has a residual of its gradients, and the sum has
// none. With w workers each sends and receives (w-1) m bytes for a range, where
// m is the message of its largest part. Messages of every compressor that adds
// can travel so, those that are gathered elsewhere, too.

#pragma once

#include "group/group.h"
#include "squeeze/residuals.h"
#include "squeeze/squeeze.h"
#include "sync/sync.h"

struct span_lane;

// One range, of which worker j gets part j from all workers, and adds the parts
// up. This is a reduce_scatter of messages.
//
//     given              taken
//     0: [0 | 1 | 2]     0: [0 of 0 | 0 of 1 | 0 of 2] -> sum of part 0
//     1: [0 | 1 | 2] ->  1: [1 of 0 | 1 of 1 | 1 of 2] -> sum of part 1
//     2: [0 | 1 | 2]     2: [2 of 0 | 2 of 1 | 2 of 2] -> sum of part 2
//              all_to_all
struct message_parts {
    const struct squeeze_ops *ops;
    void *scratch;
    size_t off, n;       // the range
    size_t before;       // elements that have travelled in this step, all
                         // earlier micro-batches; random choices go on behind
    size_t grain;        // parts are whole grains
    size_t bytes;        // of a message: that of the largest part
    char *given, *taken; // the messages to each worker and of each, by rank
};

// Writes the messages of x, which is the range, to `given`. Leaves in x what
// they lack, and clears in `speed` what they send. NULL: there are no
// velocities.
void message_parts_encode(const struct sync *s, const struct message_parts *p,
                          float *x, float *speed);

// sum += this worker's part of all workers, in the order of ranks. 0, or -1
// after fail() that names the sender of a malformed message.
int message_parts_add(const struct sync *s, const struct message_parts *p,
                      float *sum);

struct scatter {
    const struct squeeze_ops *ops; // NULL: squeeze=none
    bool whole;                    // this step's gradients travel whole
    struct message_parts *ranges;
    int n;
    size_t *words; // of a message of each range, for each worker
    char *messages;
    void *scratch;
    struct residuals residuals; // zeroed: there are none
    struct span_lane *lane;
};

// Prepares for n ranges of the gradients, whose parts are whole multiples of
// RULE_BLOCK. With squeeze=none it does nothing. 0, or -1 after fail(); call
// scatter_close() in both cases.
int scatter_open(struct scatter *c, const struct sync *s,
                 const struct bucket *ranges, int n);
void scatter_close(struct scatter *c);

// A step, or a micro-batch of it, begins: says whether its gradients travel
// whole.
void scatter_begin(struct scatter *c, const struct sync *s);

// Range i of the gradients is complete, in `grads`, which may be changed: posts
// the messages. 0, or -1 after fail(). last: the caller waits for this ticket
// next.
int scatter_send(struct scatter *c, struct sync *s, int i, float *grads,
                 bool last, uint64_t *ticket);

// The ticket of range i is complete: `sum` becomes the sum of this worker's
// part. 0, or -1 after fail().
int scatter_take(const struct scatter *c, const struct sync *s, int i,
                 float *sum);

// The step is over. It was an update, whose residuals are kept, or was skipped.
void scatter_updated(struct scatter *c, bool skipped);

// The law: the bytes of the messages of all ranges that a worker sends to each
// other worker, and receives from it: in a step, or with shard=2 and 3 in each
// of its micro-batches.
size_t scatter_bytes(const struct sync_settings *s, int world,
                     const struct bucket *ranges, int n);

// Bytes of memory for messages and scratch.
size_t scatter_memory(const struct sync_settings *s, int world,
                      const struct bucket *ranges, int n);
