// message_parts.h - a range of the gradients that travels in parts: worker j
// gets part j from all workers, and adds the parts up. This is a reduce_scatter
// of messages.
//
//     given              taken
//     0: [0 | 1 | 2]     0: [0 of 0 | 0 of 1 | 0 of 2] -> sum of part 0
//     1: [0 | 1 | 2] ->  1: [1 of 0 | 1 of 1 | 1 of 2] -> sum of part 1
//     2: [0 | 1 | 2]     2: [2 of 0 | 2 of 1 | 2 of 2] -> sum of part 2
//              all_to_all

#pragma once

#include "group/group.h"
#include "squeeze/squeeze.h"
#include "sync/sync.h"

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

// The part of worker `rank`, counted from the start of the range.
struct group_chunk message_parts_chunk(const struct sync *s,
                                       const struct message_parts *p, int rank);

// Writes the messages of x, which is the range, to `given`. Leaves in x what
// they lack, and clears in `speed` what they send. NULL: there are no
// velocities.
void message_parts_encode(const struct sync *s, const struct message_parts *p,
                          float *x, float *speed);

// sum += this worker's part of all workers, in the order of ranks. 0, or -1
// after fail() that names the sender of a malformed message.
int message_parts_add(const struct sync *s, const struct message_parts *p,
                      float *sum);
