// exchange.h - one exchange of one gradient, in simulated time.
//
// The program of this folder runs under SimGrid's smpirun: every rank is a
// coroutine of one process, MPI messages take the time that a model of the
// network gives them, and computing takes none. Where sums are not asked for
// (payload=0), a message has its size but no contents, so that a thousand ranks
// fit into one machine's memory and time.

#ifndef SIMULATE_EXCHANGE_H
#define SIMULATE_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>

struct exchange {
    int backend;        // as backend_at() counts them
    int rank, world;    // workers; servers have ranks of their own behind them
    size_t n;           // elements of the gradient, fp32
    int servers;        // ranks behind the workers'; 0: none
    int payload;        // bool: real numbers travel, and the sums are looked at
    int slice_kb;       // of a message; 0: around a ring: a chunk
    double bucket_mb;   // without servers: one after another; 0: all at once
    int worker_updates; // bool: servers send sums back, not parameters
    // Instead of sync: a collective of textbook/schedule.h.
    int op;        // enum schedule_op; -1: none
    int algorithm; // enum schedule_algorithm
    size_t piece;  // elements
};

// Run one exchange on this rank. *seconds: simulated, from the common start to
// this rank's end. 0, or -1 after fail(): a sum is wrong, too.
int exchange_ring(const struct exchange *e, double *seconds);
int exchange_allreduce(const struct exchange *e, double *seconds);
int exchange_owner(const struct exchange *e, double *seconds);
int exchange_servers(const struct exchange *e, double *seconds);
int exchange_textbook(const struct exchange *e, double *seconds);

// mesh.c: a step on a mesh of workers, whose words are its own; the first is
// mesh=. As above.
int simulate_mesh(int nwords, char **words, double *seconds);

// ---- gradient.c: what they share

// Element i of a rank's gradient, where there is payload.
float gradient_value(int rank, size_t i);

// The gradient: n elements, small integers that differ by rank and element; or,
// without payload, addresses that nobody may write to. NULL after fail().
float *gradient_open(const struct exchange *e);
int gradient_check(const struct exchange *e, const float *sums);
void gradient_close(const struct exchange *e, float *vector);

// carry_simulated.c: what a message holds, of at most so many bytes each.
void contents_open(const struct exchange *e, size_t most);

#endif
