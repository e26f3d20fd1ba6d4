// share.h - lab 1: what share.c defines.

#ifndef LABS_SHARE_H
#define LABS_SHARE_H

#include "labs/lab.h"

// A text is cut into windows 0 .. windows-1. In every epoch all of them come,
// in an order of its own: order(s, epoch, place) is the window that comes at
// `place`, 0 <= place < windows.
struct share {
    size_t windows;
    int workers;
    int batch; // windows of one worker in one step
    size_t (*order)(const struct share *s, size_t epoch, size_t place);
};

// The i-th window of worker `rank` in step `step`, both from 0. In a step all
// workers together take the workers * batch windows that come next.
// Worker 0 takes the first `batch` of them, worker 1 the next, and so on.
// A step may end one epoch and begin the next.
size_t share_window(const struct share *s, size_t step, int rank, int i);

// The `bytes` bytes at p on worker `root` are at p on every worker afterwards.
int lab_bcast(struct lab *l, void *p, size_t bytes, int root);

#endif
