// overlap.h - lab 5: the functions that overlap.c defines, and those that it
// may call.

#ifndef LABS_OVERLAP_H
#define LABS_OVERLAP_H

#include "labs/lab.h"

enum { MOST_BUCKETS = 128 };

struct bucket {
    size_t off, n; // of the gradients
};

// A layer of the model. Backward meets the last layer first. It takes `seconds`
// for this layer. Then the layer's n gradients are complete. In the vector they
// lie before those of the layers that backward has met earlier.
struct layer {
    size_t n;
    double seconds;
};

// One step of a worker. Two threads share it: thread 0 computes, and thread 1
// communicates.
struct step {
    float *v; // gradients
    size_t n;
    const struct bucket *buckets; // what bucket_cut() made
    int count;

    // Thread 0: hand bucket b over to thread 1 (returns at once); wait until
    // thread 1 has called done().
    int (*post)(struct lab *l, struct step *s, int b);
    int (*join)(struct lab *l, struct step *s);

    // Thread 1. take: waits for the next bucket that is handed over. Then: sums
    // bucket b over all workers, and gives all of them the sum. Then: tells
    // thread 0 that all is summed. All workers must sum their buckets in the
    // same order. A sum takes 2(w-1)(a + S/wB) for S bytes.
    int (*take)(struct lab *l, struct step *s, int *b);
    int (*sum)(struct lab *l, struct step *s, int b);
    int (*done)(struct lab *l, struct step *s);

    // Yours, for use by thread 0. They are false and 0 when a step begins.
    bool ready[MOST_BUCKETS];
    int next;

    void *judge; // not yours
};

// Fill out[] with buckets that tile [0, n) from the end. The first has `first`
// elements and the others have `size`; only the last may have fewer. Return how
// many they are, or -1 if that is more than max.
int bucket_cut(struct bucket *out, int max, size_t n, size_t first,
               size_t size);

// Choose `first` and `size` for this network (l->workers, alpha_s, bytes_per_s)
// and these layers. Little of the exchange should be left when backward ends.
void bucket_sizes(const struct lab *l, const struct layer *layers, int count,
                  size_t *first, size_t *size);

// Thread 0: the gradients of bucket b are complete. Must not wait. Workers
// report their buckets in orders of their own.
int lab_ready(struct lab *l, struct step *s, int b);

// Thread 0, after backward: returns when all buckets are summed.
int lab_exchange(struct lab *l, struct step *s);

// Thread 1, from the beginning of a step to its end.
int lab_communicate(struct lab *l, struct step *s);

#endif
