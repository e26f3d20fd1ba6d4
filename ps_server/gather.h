// gather.h - the slices of one row in one round, added in order.
//
// Slices are added in rank order (with backup= in the order that server 0
// gave), whatever the order of arrival, so that reruns give the same bits. A
// slice that arrives early stays in its message. The first slice stands for the
// sum until the second arrives, so that a sum of two takes one pass over both
// and no copy.

#pragma once

#include "base/half.h"
#include "ps_wire/buffer.h"
#include "ps_wire/wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct message;
struct store;

struct gather {
    struct buffer *sum;    // fp32; NULL while it is not needed
    int added;             // how many have been added
    double squares;        // of the complete sum, if it is kept
    struct message **held; // by order: early slices, and the first one
    uint8_t *here;         // by order: 0 until the slice has arrived
    int come;              // how many have arrived
    enum ps_what what;     // which vector they are of, as the first one says
};

// Allocates for `world` workers. Returns 0, or -1 after fail().
int gather_open(struct gather *g, int world);
void gather_close(struct gather *g, int world);

// Starts an empty sum; messages that are held are given back.
void gather_clear(struct gather *g, int world);

// Takes message *p, the slice at place `order`. Its data are n numbers.
void gather_take(struct gather *g, int order, struct message *p);

// Adds the slices that are due; `need` slices of n numbers make the row
// complete. With the last one, *out becomes the sum in the wire's format, and
// the caller must give it back with buffer_unref(). If servers update, the fp32
// sum and its squares are kept for that, and *out is not written. Returns 0, or
// -1 after fail().
int gather_add(struct gather *g, const struct store *store, int need, size_t n,
               struct buffer **out);

// For slices that somebody else adds: the slice that is due next, or NULL if it
// has not come; and gives it back once it is added.
const struct message *gather_due(const struct gather *g, int need);
void gather_pass(struct gather *g);
