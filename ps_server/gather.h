// gather.h - the slices of one row in one round, added in order.
//
// Slices are added in rank order (with backup= in the order that server 0
// gave), whatever the order of arrival, so that reruns give the same bits. An
// early one is kept as the message it came in. The first stands for the sum
// until the second is there: a sum of two is one pass over both, and no copy.

#ifndef PS_SERVER_GATHER_H
#define PS_SERVER_GATHER_H

#include "base/half.h"
#include "ps_wire/buffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct message;
struct thread_pool;

struct gather {
    struct buffer *sum;    // fp32; NULL while it is not needed
    int added;             // how many have been added
    double squares;        // of the complete sum, where asked for
    struct message **held; // by order: early ones, and the first
    uint8_t *here;         // by order: 0: not yet
};

// What is the same for all rows.
struct gather_rule {
    struct thread_pool *threads;
    struct buffers *sums; // of fp32 slices
    struct buffers *half; // where a sum is answered in the wire's format
    enum dtype wire;
    bool keep; // the fp32 sum and its squares, for the update
};

// Room for the slices of `world` workers. 0, or -1 after fail().
int gather_open(struct gather *g, int world);
void gather_close(struct gather *g, int world);

// Nothing has come yet; what is held is given back.
void gather_clear(struct gather *g, int world);

// Take the slice with this place in the order: its data are n numbers.
void gather_take(struct gather *g, int order, struct message *p);

// Add what is due; `need` slices make the row complete. With the last one, *out
// is the sum in the wire's format, of which the caller takes a reference, or
// NULL where it is kept. 0, or -1 after fail().
int gather_add(struct gather *g, const struct gather_rule *rule, int need,
               size_t n, struct buffer **out);

#endif
