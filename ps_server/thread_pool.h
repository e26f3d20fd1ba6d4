// thread_pool.h - the threads of a server: one piece of work, in parts, at a
// time.
//
// What a part is does not depend on how many threads there are, so neither do
// the bits.

#ifndef PS_SERVER_THREAD_POOL_H
#define PS_SERVER_THREAD_POOL_H

#include <stddef.h>

struct thread_pool;

// `threads` >= 1, the caller's counted. 0, or -1 after fail().
int thread_pool_open(struct thread_pool **t, int threads);
void thread_pool_close(struct thread_pool **t);

// fn(ctx, part) for all parts in [0, parts), and return when all are done.
typedef void thread_pool_part(void *ctx, size_t part);
void thread_pool_run(struct thread_pool *t, thread_pool_part *fn, void *ctx,
                     size_t parts);

#endif
