// share.h - lab 1: the functions that share.c defines.

#ifndef LABS_SHARE_H
#define LABS_SHARE_H

#include "labs/lab.h"

// A text is cut into windows 0 .. windows-1. Every epoch visits all of them
// once, in its own order: order(s, epoch, place) returns the window at position
// `place` of the epoch, 0 <= place < windows.
struct share {
    size_t windows;
    int workers;
    int batch; // windows of one worker in one step
    size_t (*order)(const struct share *s, size_t epoch, size_t place);
};

// Returns the i-th window of worker `rank` in step `step`; all three count from
// 0. In a step all workers together take the next workers * batch windows.
// The first worker takes the first `batch` of them, the second the next, and so
// on, in the order 0, 1 .. w-1 of the workers.
// A step may end one epoch and begin the next. Every epoch goes from its first
// place to its last one.
size_t share_window(const struct share *s, size_t step, int rank, int i);

// Copies the `bytes` bytes at p on worker `root` to p on every worker. All
// workers call it. Returns 0, or -1 if a call failed.
int lab_bcast(struct lab *l, void *p, size_t bytes, int root);

#endif
