// baton.h - threads of which exactly one runs: who holds the baton.
//
// A rank must stop in the middle of a student's function, deep in its calls,
// and go on later. Two things can do this: contexts (ucontext.h) or threads.
// Threads that hand on a baton are used here:
//
// - The sanitizers know threads. A switched context needs private calls of each
//   sanitizer, or it reports errors that are none.
// - A debugger shows every rank with its own stack, and thread-local data
//   (errno, fail_message()) are each rank's own.
// - musl and macOS have no contexts that can be relied on; threads are
//   everywhere.
//
// It costs one wake-up for each change of rank, some microseconds. The order is
// no matter of luck: a thread runs only when the one before has named it.

#ifndef VIRTUAL_BATON_H
#define VIRTUAL_BATON_H

struct baton;

// n threads, each of which will run body(ctx, its number) once it is named, and
// must end by naming another with baton_leave(). The caller holds the baton as
// number n. NULL after fail().
struct baton *baton_open(int n, void (*body)(void *ctx, int i), void *ctx);

// Number `me` hands the baton to `to` and waits until somebody names `me`
// again.
void baton_pass(struct baton *b, int me, int to);

// The same without waiting: the thread ends after it.
void baton_leave(struct baton *b, int to);

// After all threads have left. Takes NULL; sets NULL.
void baton_close(struct baton **b);

#endif
