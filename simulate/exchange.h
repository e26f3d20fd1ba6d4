// exchange.h - runs one exchange of one gradient, in simulated time.
//
// The program in this folder runs under SimGrid's smpirun. Every rank is a
// coroutine of one process. MPI messages take the time that a model of the
// network gives them, and computing takes no time. With payload=0 a message has
// its size but no contents, and sums are not checked. So one machine has enough
// memory and time for a thousand ranks.

#pragma once

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

struct run;

struct exchange {
    int backend;        // number of its row: backend_at()
    int rank, world;    // of workers; servers have the ranks after them
    size_t n;           // elements of the gradient, fp32
    int servers;        // ranks after the workers' ranks; 0: none
    int payload;        // bool: real numbers travel, and sums are checked
    int slice_kb;       // size of a message; 0 (ring only): a whole chunk
    double bucket_mb;   // without servers: size of a bucket; 0: one bucket
    size_t bucket;      // the same in elements
    int worker_updates; // bool: servers send sums back, not parameters
    const struct run
        *run; // with squeeze=: its settings, and the model's sizes;
              // else NULL
    // Instead of a backend's exchange, a collective of textbook/schedule.h:
    int op;        // enum schedule_op; -1: none
    int algorithm; // enum schedule_algorithm
    size_t piece;  // elements
};

// Deadlines are in real time. They are off here: the program that starts the
// simulation has a deadline of its own.
enum { NO_DEADLINE_S = 900000 };

// The linker puts __wrap_f() in the place of f(), which __real_f() still calls.
#define REPLACES(f) extern __typeof__(f) __wrap_##f, __real_##f

// Run one exchange on this rank. *seconds: simulated time from the common start
// to this rank's end. Return 0, or -1 after fail(), also if a sum is wrong.
int exchange_ring(const struct exchange *e, double *seconds);
int exchange_allreduce(const struct exchange *e, double *seconds);
int exchange_owner(const struct exchange *e, double *seconds);
int exchange_servers(const struct exchange *e, double *seconds);
int exchange_textbook(const struct exchange *e, double *seconds);

// The same for compressed gradients (compressed.c), around a ring or by a
// library. exchange_servers() takes them, too.
int exchange_squeezed(const struct exchange *e, double *seconds);

// mesh_step.c: one step on a mesh of workers. It reads its own settings from
// words[]; the first is mesh=. Results as above.
int simulate_mesh(int nwords, char **words, double *seconds);

// ---- gradient.c: used by all exchanges

// Element i of a rank's gradient, if there is payload.
float gradient_value(int rank, size_t i);

// gradient_open: e->n elements, small integers that differ by rank and element;
// or, without payload, addresses that nobody may write to, or with squeeze=
// memory that all ranks share. NULL after fail(). gradient_close() frees what
// is the rank's own. gradient_check: returns 0 if `sums` are the sums over all
// workers, or without payload; else -1 after fail(). gradient_same: the same if
// all `workers` have the same bits.
float *gradient_open(const struct exchange *e);
int gradient_check(const struct exchange *e, const float *sums);
int gradient_same(const struct exchange *e, const float *sums,
                  MPI_Comm workers);
void gradient_close(const struct exchange *e, float *vector);

// carry_simulated.c: without payload, allocates the one block of `most` bytes
// that stands for the contents of every message. contents_travel: there is no
// such block.
void contents_open(const struct exchange *e, size_t most);
bool contents_travel(void);

// no_numbers.c: without payload, the answers of servers to topk are for these
// workers and this density=.
void contents_union(const struct exchange *e);
