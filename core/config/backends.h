// backends.h - the backends as plain data: the ways in which workers agree on
// the next parameters.
//
// Where backends differ, other code asks the members of a backend's row, and
// never compares names. So a new backend needs a row of backends.def, and no
// change in the code that uses the table.

#pragma once

#include "config/settings.h"

#include <stdbool.h>

// How the processes of a job are started (launch/launch.h).
enum launch {
    LAUNCH_ALONE,   // one worker
    LAUNCH_WORKERS, // workers; under mpirun with transport=library
    LAUNCH_MPIRUN,  // workers, under mpirun
    LAUNCH_SERVERS, // servers, then workers; under mpirun with transport=mpi
};

// How the gradients of all workers travel in a step. It selects the backend's
// law (sync/law.h) and its simulation (simulate/exchange.h).
enum traffic {
    TRAFFIC_NONE,    // not at all: one worker
    TRAFFIC_OWN,     // as a student's file says; there is no law
    TRAFFIC_RING,    // summed around a ring, then copied around it
    TRAFFIC_LIBRARY, // all-reduced by the library, as algorithm= says
    TRAFFIC_SERVERS, // to servers, which answer
    TRAFFIC_OWNER,   // to worker 0, which alone updates and sends out
                     // parameters and batches
    TRAFFIC_ROUNDS,  // in rounds, as the row's member `rounds` says; there is
                     // no simulation
};

// The law of a backend with TRAFFIC_ROUNDS: how many rounds follow each other
// with n workers, and what every worker sends and receives in each.
struct backend_rounds {
    enum { ROUNDS_ONE, ROUNDS_LOG2, ROUNDS_OTHERS } count; // 1, log2 n, n - 1
    bool whole; // the whole vector; else 1/n of it
};

struct backend {
    const char *name;        // sync=
    const char *help;        // one line
    const char *const *keys; // keys of [backend] that it reads, NULL-terminated
    unsigned transports;     // the values of transport= that it can use besides
                             // auto: bit i for value i of enum transport_kind
    enum launch launch;
    int servers; // 0: none; 1: one; -1: as many as servers= says, by default
                 // one for each worker
    enum traffic traffic;
    struct backend_rounds rounds; // with TRAFFIC_ROUNDS
    bool shards; // a worker holds 1/workers of the optimiser's state
    bool apart; // parameters travel instead of gradients, once in every= steps;
                // in between, the workers' parameters differ
    bool parts; // workers may hold parts of the model (mesh=)
    const char *colour; // in figures, #rrggbb
    int point;          // in figures, gnuplot's pt
};

// Row i, from 0; NULL after the last.
const struct backend *backend_at(int i);

// The names of all rows, NULL-terminated.
extern const char *const backend_names[];

// The row of a name, or NULL if there is none. The name that a run has in sync=
// is always one of a backend.
const struct backend *backend_find(const char *name);

// The row for parts of a model without replicas, where nothing is to be agreed
// on: the first one that trains parts and has carriers of our own.
const struct backend *backend_of_parts(void);

// Whether there is a law for the bytes that b sends.
bool backend_has_law(const struct backend *b);

// Whether `lockstep simulate` has b's exchange.
bool backend_is_simulated(const struct backend *b);

// Whether b reads a key of the group [backend].
bool backend_reads(const struct backend *b, const char *key);

// Whether a job of b needs MPI: with these settings it sends by Open MPI.
bool backend_needs_mpi(const struct backend *b, const struct sync_settings *s);

// Whether b reads such a key and can use the value that the key has in *s.
bool backend_takes(const struct backend *b, const char *key,
                   const struct sync_settings *s);
