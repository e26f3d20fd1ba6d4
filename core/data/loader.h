// loader.h - a thread that fills batches ahead of the loop.
//
//     loader   fill k+3   fill k+4   sleep        fill k+5
//     ring     [ k ][ k+1 ][ k+2 ][ k+3 ]
//     loop     ... compute k-1 ...      take k    compute k ...
//
// Four batches are enough: copying one takes far less than training on it, and
// the rest is for the hiccups of a disk.

#ifndef DATA_LOADER_H
#define DATA_LOADER_H

#include <stddef.h>
#include <stdint.h>

struct loader;

struct loader_job {
    // Write micro-batch k, x and y of n tokens each; called by the thread.
    void (*fill)(const void *ctx, uint64_t k, int32_t *x, int32_t *y);
    const void *ctx;
    size_t n;
    uint64_t first; // the k to begin with
};

// Start the thread. 0, or -1 after fail().
int loader_open(struct loader **l, const struct loader_job *job);

// Stop and join it; batches not taken are gone.
void loader_close(struct loader **l);

// Copy out the next batch, waiting for it if need be. 0, or -1 after fail()
// when none came in a minute.
int loader_take(struct loader *l, int32_t *x, int32_t *y);

#endif
