// exchange.h - one exchange of one gradient, in simulated time.
//
// The program of this folder runs under SimGrid's smpirun: every rank is a
// coroutine of one process, MPI messages take the time that a model of the
// network gives them, and computing takes none. With payload=0 sums are not
// checked: a message has its size but no contents. So one machine has memory
// and time for a thousand ranks.

#ifndef SIMULATE_EXCHANGE_H
#define SIMULATE_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>

struct exchange {
    int backend;        // as backend_at() counts them
    int rank, world;    // workers; servers have ranks of their own behind them
    size_t n;           // elements of the gradient, fp32
    int servers;        // ranks behind the workers'; 0: none
    int payload;        // bool: real numbers travel, and sums are checked
    int slice_kb;       // of a message; 0, for a ring: a whole chunk
    double bucket_mb;   // without servers: buckets in turn; 0: all at once
    int worker_updates; // bool: servers send sums back, not parameters
    // Instead of sync: a collective of textbook/schedule.h.
    int op;        // enum schedule_op; -1: none
    int algorithm; // enum schedule_algorithm
    size_t piece;  // elements
};

// Run one exchange on this rank. *seconds: simulated, from the common start to
// this rank's end. 0, or -1 after fail(), also if a sum is wrong.
int exchange_ring(const struct exchange *e, double *seconds);
int exchange_allreduce(const struct exchange *e, double *seconds);
int exchange_owner(const struct exchange *e, double *seconds);
int exchange_servers(const struct exchange *e, double *seconds);
int exchange_textbook(const struct exchange *e, double *seconds);

// mesh.c: a step on a mesh of workers. It has other words; the first is mesh=.
// Results as above.
int simulate_mesh(int nwords, char **words, double *seconds);

// ---- gradient.c: for all exchanges

// Element i of a rank's gradient, with payload.
float gradient_value(int rank, size_t i);

// The gradient: n elements, small integers that differ by rank and element; or,
// without payload, addresses that nobody may write to. NULL after fail().
float *gradient_open(const struct exchange *e);
int gradient_check(const struct exchange *e, const float *sums);
void gradient_close(const struct exchange *e, float *vector);

// carry_simulated.c: prepares the contents of messages of at most `most` bytes.
void contents_open(const struct exchange *e, size_t most);

#endif
