// thread_pool.h - the threads of a server. They do one piece of work at a time,
// divided into parts.
//
// The parts are the same with any number of threads, so the results have the
// same bits.

#pragma once

#include <stddef.h>

struct thread_pool;

// `threads` >= 1 includes the calling thread. Returns 0, or -1 after fail().
int thread_pool_open(struct thread_pool **t, int threads);
void thread_pool_close(struct thread_pool **t);

// Calls fn(ctx, part) for all parts in [0, parts). Returns when all are done.
typedef void thread_pool_part(void *ctx, size_t part);
void thread_pool_run(struct thread_pool *t, thread_pool_part *fn, void *ctx,
                     size_t parts);
