// exchange.h - makes an exchange between workers that have parts of one model,
// for slices.c and sequences.c: records its time, and moves a GPU's vectors to
// the host if the carrier works there.
//
// If the carrier works on host memory, a GPU's vector is copied into pinned
// memory before an exchange, and back after it:
//
//     GPU            v --*            *-- v
//     pinned memory      *--- verb ---*
//
// NCCL works on the vector itself.

#pragma once

#include "group/group.h"

#include <stdbool.h>

struct trainer;

// Chooses the carrier of a group: NCCL, if each worker of the job has a GPU of
// its own, transport= is auto or library, and `between` is set. It says that
// the group's verbs are collectives that are awaited one by one. Else the
// carrier is our ring on hosts; if only the GPUs are why, rank 0 says so.
// All workers call it. NULL after fail().
const struct group_ops *
exchange_carrier(struct trainer *t, const struct group_job *job, bool between);

// Copy `bytes` bytes of a vector v of the model to `host`, and back; nothing if
// the two are one. exchange_down() waits until all that the model has computed
// is done.
void exchange_down(struct trainer *t, void *host, const void *v, size_t bytes);
void exchange_up(struct trainer *t, void *v, const void *host, size_t bytes);

// After a failure (rc is not 0) sleeps a moment, so that the supervisor sees
// the death of another worker, the cause, before our exit. Returns 0 or -1.
int exchange_delay_failure(int rc);

// Makes an exchange *op between vectors in the model's memory, and waits for
// it: a collective in place, through host[0], or an all_to_all from host[0] to
// host[1]. These have at least the vectors' bytes. They are not used if the
// group can work on the vectors. The exchange has a span with this number, and
// its time is not part of the worker's computing time. Ends with
// exchange_delay_failure(). Returns 0, or -1 after fail().
int exchange_make(struct trainer *t, struct group *g, const struct group_op *op,
                  void *const *host, int number);

// The same wait for an exchange that was posted before.
int exchange_await(struct trainer *t, struct group *g, uint64_t ticket,
                   int number);

// Room for exchange_sum(), which is allocated once. open() returns 0, or -1
// after fail(); close() takes a zeroed one.
struct exchange_numbers {
    double *host, *device; // a number of each member; device: NULL if the
                           // carrier works on host memory
};
int exchange_numbers_open(struct trainer *t, const struct group *g,
                          struct exchange_numbers *n);
void exchange_numbers_close(struct trainer *t, struct exchange_numbers *n);

// Replaces *number by its sum over a group, the same bits on each member. With
// index -1 it has no span, and the time is that of the caller. Returns 0, or -1
// after fail().
int exchange_sum(struct trainer *t, struct group *g,
                 const struct exchange_numbers *n, double *number, int index);
