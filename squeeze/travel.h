// travel.h - what the parts of the strategy share: squeezed.c, which follows
// a step, and messages.c and sums.c, the ways in which units travel.

#pragma once

#include "squeeze/cosines.h"
#include "squeeze/power.h"
#include "squeeze/residuals.h"
#include "squeeze/squeeze.h"
#include "squeeze/squeezed.h"
#include "sync/sync.h"

struct span_lane;

struct unit {
    size_t off, n;
    size_t own_at; // where its part begins in residuals.own_kept
    uint64_t ticket;
    // messages.c
    size_t bytes;   // of a message
    char *messages; // one of each worker, by rank
    char *given;    // those that this worker gives to each, if it sends twice
    // sums.c
    struct power_matrix matrix;
    float *p;
    struct demo_grid grid; // squeeze_decoupled
};

struct squeezed {
    const struct squeeze_ops *ops;
    const struct squeeze_way *way;
    struct unit *units;
    int nunits;
    int next;   // the unit that fills up next
    bool plain; // this step's units travel whole
    struct residuals residuals;
    void *buffers; // of the way: memory of all units; and `part`
    float *part;   // as long as the largest unit
    void *scratch;
    struct span_lane *lane;
};

// A way in which units travel. Functions return 0, or -1 after fail().
struct squeeze_way {
    // Where the elements that this worker keeps of a unit, apart from the
    // residual of its gradients, are in the vector. Empty: it keeps none.
    struct bucket (*own)(const struct sync *s, const struct unit *u);
    const char *own_name; // of their slot; NULL: it never keeps any
    bool all_alike;       // they are equal on all workers: worker 0 saves them
    int (*open)(struct sync *s); // allocates `buffers`
    // The unit's gradients are complete: sends the first message.
    int (*send)(struct sync *s, struct unit *u);
    // The first messages are here: sends the second. NULL: there is none.
    int (*send_again)(struct sync *s, struct unit *u);
    // The last messages are here: leaves the sum in the gradients.
    int (*take)(struct sync *s, struct unit *u);
};

extern const struct squeeze_way squeeze_gathered, squeeze_twice, squeeze_summed,
    squeeze_decoupled;

// x = gradients + residual (residuals_add()).
float *travel_x(struct sync *s, const struct unit *u);

// Posts the sum of a vector of a unit over all workers.
int travel_sum(struct sync *s, struct unit *u, float *v, size_t n);

// Allocates the messages of all units, each of u->bytes: one block, because all
// may be under way at once.
int travel_open(struct sync *s);

// A message of elements [off, off + n) has been refused: names its sender.
// Returns -1.
int travel_refuse(const struct sync *s, size_t off, size_t n, int rank);

// Whether the caller waits for this unit's exchange next.
bool travel_is_last(const struct squeezed *q, const struct unit *u);
