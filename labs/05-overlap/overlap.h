// overlap.h - lab 5: the functions that overlap.c defines, and those that it
// may call.

#ifndef LABS_OVERLAP_H
#define LABS_OVERLAP_H

#include "labs/lab.h"

enum { MOST_BUCKETS = 128 };

struct bucket {
    size_t off, n; // gradients off .. off+n-1
};

// A layer of the model. Backward computes the last layer first. It takes
// `seconds` for this layer; then the layer's n gradients are complete. They are
// in the vector before those of the layers that backward computed earlier.
struct layer {
    size_t n;
    double seconds;
};

// One step of a worker. Two threads share it: thread 0 computes, and thread 1
// communicates.
struct step {
    size_t n;                     // gradients
    const struct bucket *buckets; // as bucket_cut() made them
    int count;

    // Called by thread 0. post: passes bucket b to thread 1, and returns at
    // once. join: waits until thread 1 has called done(). Both return 0 or -1.
    int (*post)(struct lab *l, struct step *s, int b);
    int (*join)(struct lab *l, struct step *s);

    // Called by thread 1. take: waits for the next posted bucket, and writes
    // its number to *b. sum: sums bucket b over all workers, on all of them;
    // they must call it for their buckets in the same order. For S bytes it
    // takes 2(w-1)(a + S/wB) seconds. done: tells thread 0 that all buckets are
    // summed. All three return 0 or -1.
    int (*take)(struct lab *l, struct step *s, int *b);
    int (*sum)(struct lab *l, struct step *s, int b);
    int (*done)(struct lab *l, struct step *s);

    // For your use on thread 0. They are false and 0 when a step begins.
    bool ready[MOST_BUCKETS];
    int next;
};

// Fill out[] with buckets that tile [0, n) from the end. The first has
// `first` elements and the others have `size`. n may be less than `first`; else
// only the last may have fewer.
// Return their number, or -1 if that is more than max.
int bucket_cut(struct bucket *out, int max, size_t n, size_t first,
               size_t size);

// Choose `first` and `size` for this network (l->workers, alpha_s, bytes_per_s)
// and these layers. Little of the exchange should be left when backward ends.
void bucket_sizes(const struct lab *l, const struct layer *layers, int count,
                  size_t *first, size_t *size);

// Called on thread 0 when the gradients of bucket b are complete. It must not
// wait. Different workers call it for their buckets in different orders.
// Returns 0 or -1, as the next two do.
int lab_ready(struct lab *l, struct step *s, int b);

// Called on thread 0 after backward. Returns when all buckets are summed.
int lab_exchange(struct lab *l, struct step *s);

// Runs on thread 1, from the beginning of a step to its end.
int lab_communicate(struct lab *l, struct step *s);

#endif
