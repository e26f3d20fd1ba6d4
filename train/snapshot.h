// snapshot.h - vectors as they were, and a thread that writes them.
//
//     float *copy = snapshot_vector(s, 0);     fill it
//     snapshot_start(s, write, ctx)            write(ctx) runs in a thread ..
//     snapshot_settle(s, false)                .. and has it failed by now?
//     snapshot_settle(s, true)                 wait for its end
//
// One writer at a time: the vectors are its own until it is settled.

#ifndef TRAIN_SNAPSHOT_H
#define TRAIN_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>

struct snapshot;

// Room for `count` vectors of n elements. 0, or -1 after fail().
int snapshot_open(struct snapshot **s, int count, size_t n);

float *snapshot_vector(struct snapshot *s, int i);

// Run write(ctx), which returns 0, or -1 after fail(). The one before is
// settled. 0, or -1 after fail().
int snapshot_start(struct snapshot *s, int (*write)(void *ctx), void *ctx);

// Whether the writer, if there is one, has failed: -1 after fail() that says
// what it said. 0: it has not, or is still at work, which `wait` rules out.
int snapshot_settle(struct snapshot *s, bool wait);

// Waits for the writer; what it says is lost. Takes NULL.
void snapshot_close(struct snapshot **s);

#endif
