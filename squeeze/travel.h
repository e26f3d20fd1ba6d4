// travel.h - what the parts of the strategy share: squeezed.c, which follows
// a step, and messages.c, sums.c and decoupled.c, the ways in which units
// travel.

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
    size_t own_at; // where its part begins in own_kept and own_fresh
    uint64_t ticket;
    // messages.c, decoupled.c
    size_t bytes;   // of a message
    char *messages; // one of each worker, by rank
    char *given;    // those that this worker gives to each, if it sends twice
    // sums.c
    struct power_matrix matrix;
    float *p;
    struct demo_grid grid; // decoupled.c
};

struct squeezed {
    const struct squeeze_ops *ops;
    const struct squeeze_way *way;
    struct unit *units;
    int nunits;
    int next;   // the unit that fills up next
    bool plain; // this step's units travel whole
    struct residuals residuals;
    // What the way itself keeps: of the last update, and of this step. NULL:
    // nothing.
    float *own_kept, *own_fresh;
    size_t nown;
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

// The messages of all workers. They travel as words of 4 bytes, which a carrier
// moves and does not look at.
struct group_vector travel_words(const struct sync *s, const struct unit *u,
                                 char *messages);

// Sends this worker's message of u->messages to all.
int travel_gather(struct sync *s, struct unit *u);

// The message that worker `rank` has sent.
char *travel_message(const struct unit *u, int rank);

// A message has been refused: names its sender and the unit. Returns -1.
int travel_refuse(const struct sync *s, const struct unit *u, int rank);

// Whether the caller waits for this unit's exchange next.
bool travel_is_last(const struct squeezed *q, const struct unit *u);
