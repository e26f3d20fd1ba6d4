// overlap.h - lab 5: what overlap.c defines, and what it is given.

#ifndef LABS_OVERLAP_H
#define LABS_OVERLAP_H

#include "labs/lab.h"

enum { MOST_BUCKETS = 128 };

struct bucket {
    size_t off, n; // of the gradients
};

// A layer of the model, as backward meets it: the last layer first. Its
// gradients are complete, n of them before those of the layers that came
// earlier, after `seconds` more.
struct layer {
    size_t n;
    double seconds;
};

// One step of a worker. Two threads have it: thread 0 computes and thread 1
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

    // Thread 1: the next bucket that was handed over (waits for it); the sum of
    // bucket b over all workers, into all of them; tell thread 0 that all is
    // summed. All workers must sum their buckets in the same order. A sum takes
    // 2(w-1)(a + S/wB) for S bytes.
    int (*take)(struct lab *l, struct step *s, int *b);
    int (*sum)(struct lab *l, struct step *s, int b);
    int (*done)(struct lab *l, struct step *s);

    // Yours, of thread 0: false and 0 when a step begins.
    bool ready[MOST_BUCKETS];
    int next;

    void *judge; // not yours
};

// Fill out[] with buckets that tile [0, n) from the end: the first of at most
// `first` elements, the others of at most `size`, all but the last as long as
// that. How many they are; -1 where that is more than max.
int bucket_cut(struct bucket *out, int max, size_t n, size_t first,
               size_t size);

// Choose `first` and `size` for this network (l->workers, alpha_s, bytes_per_s)
// and these layers: so that little of the exchange is left when backward ends.
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
