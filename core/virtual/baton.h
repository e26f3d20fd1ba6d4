// baton.h - threads of which exactly one runs, the one that holds the baton.
//
// A rank must stop in the middle of a student's function, deep in its calls,
// and go on later. Contexts (ucontext.h) or threads can do this. Here threads
// pass on a baton:
//
// - The sanitizers know threads. A switched context needs private calls of each
//   sanitizer, else it reports false errors.
// - A debugger shows every rank with its own stack, and each rank has its own
//   thread-local data (errno, fail_message()).
// - musl and macOS have no reliable contexts; every system has threads.
//
// It costs one wake-up for each change of rank, some microseconds. The order
// does not depend on chance: a thread runs only when another passes it the
// baton.

#ifndef VIRTUAL_BATON_H
#define VIRTUAL_BATON_H

struct baton;

// Starts n threads. Each runs body(ctx, its number) when it first gets the
// baton, and must end with baton_leave(). The caller holds the baton, as number
// n. NULL after fail().
struct baton *baton_open(int n, void (*body)(void *ctx, int i), void *ctx);

// Number `me` passes the baton to `to`, and waits until it gets the baton
// again.
void baton_pass(struct baton *b, int me, int to);

// The same without waiting: the calling thread ends after it.
void baton_leave(struct baton *b, int to);

// Joins all threads, which must have left. Takes NULL; sets NULL.
void baton_close(struct baton **b);

#endif
