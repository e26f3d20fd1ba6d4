// snapshot.h - keeps a copy of vectors, which a thread writes to files.
//
//     float *copy = snapshot_vector(s, 0);     fill it
//     snapshot_start(s, write, ctx)            write(ctx) runs in a thread ..
//     snapshot_settle(s, false)                .. and may fail later
//     snapshot_settle(s, true)                 wait for its end
//
// One writer at a time: it owns the vectors until snapshot_settle().

#pragma once

#include <stdbool.h>
#include <stddef.h>

struct snapshot;

// Allocates `count` vectors of n elements. Returns 0, or -1 after fail().
int snapshot_open(struct snapshot **s, int count, size_t n);

// Vector i, of n elements; the snapshot owns it.
float *snapshot_vector(struct snapshot *s, int i);

// Run write(ctx) in a thread. write() returns 0, or -1 after fail(). An earlier
// writer must be settled. Returns 0, or -1 after fail().
int snapshot_start(struct snapshot *s, int (*write)(void *ctx), void *ctx);

// Returns -1 after fail() with the writer's message if the writer has failed,
// else 0. Without `wait` the writer may still be running; with `wait` the call
// waits for it.
int snapshot_settle(struct snapshot *s, bool wait);

// Waits for the writer, ignores its error and frees everything. Takes NULL.
void snapshot_close(struct snapshot **s);
