// baton.h - threads that pass on a baton: only its holder runs.
//
// A rank must stop in the middle of a student's function, deep in its calls,
// and go on later. Contexts (ucontext.h) or threads can do this. Threads are
// used here, for these reasons:
//
// - The sanitizers know threads. A program that switches contexts must make
//   private calls of each sanitizer, or the sanitizer reports false errors.
// - A debugger shows every rank with its own stack, and each rank has its own
//   thread-local data (errno, fail_message()).
// - musl and macOS have no reliable contexts; every system has threads.
//
// Each change of rank costs one wake-up of a thread, some microseconds. The
// order does not depend on chance: a thread runs only when another passes it
// the baton.

#pragma once

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
