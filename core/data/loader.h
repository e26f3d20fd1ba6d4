// loader.h - a thread that fills batches ahead of the loop.
//
//     loader   fill k+2   fill k+3   sleep        fill k+4
//     ring     [ k ][ k+1 ][ k+2 ][ k+3 ]
//     loop     ... compute k-1 ...      take k    compute k ...
//
// Four batches are enough: copying one takes far less time than training on it,
// and the others bridge short delays of a disk.

#pragma once

#include <stddef.h>
#include <stdint.h>

struct loader;

struct loader_job {
    // Writes micro-batch k to x and y, of n tokens each. The thread calls it.
    void (*fill)(const void *ctx, uint64_t k, int32_t *x, int32_t *y);
    const void *ctx;
    size_t n;
    uint64_t first; // the first k
};

// Starts the thread. 0, or -1 after fail().
int loader_open(struct loader **l, const struct loader_job *job);

// Stops and joins the thread. Batches that were not taken are lost.
void loader_close(struct loader **l);

// Copies the next batch to x and y, of n tokens each. Waits if it is not ready.
// 0, or -1 after fail() if no batch came within a minute.
int loader_take(struct loader *l, int32_t *x, int32_t *y);
