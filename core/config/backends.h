// backends.h - the ways of agreeing, as plain data.
//
// All code asks a row what it is, and never its name: so a new backend is a row
// of backends.def and nothing else up here.

#ifndef CONFIG_BACKENDS_H
#define CONFIG_BACKENDS_H

#include "config/settings.h"

#include <stdbool.h>

// How the processes of a job are started (lockstep/launch.h).
enum launch {
    LAUNCH_ALONE,   // one worker
    LAUNCH_MPIRUN,  // workers, under mpirun
    LAUNCH_SERVERS, // servers, then workers; under mpirun with transport=mpi
};

// What all workers' gradients do in a step. The law (sync/law.h) and the
// simulation (simulate/exchange.h) of a backend are those of its traffic.
enum traffic {
    TRAFFIC_NONE,    // one worker
    TRAFFIC_OWN,     // go as a student's file says: nobody states a law
    TRAFFIC_RING,    // are summed around a ring, and copied around it
    TRAFFIC_LIBRARY, // are all-reduced by the library, as algorithm= says
    TRAFFIC_SERVERS, // go to servers, which answer
    TRAFFIC_OWNER,   // go to worker 0, which alone updates, and hands out
                     // parameters and batches
};

struct backend {
    const char *name;        // sync=
    const char *help;        // one line
    const char *const *keys; // of the group [backend], NULL-terminated
    unsigned transports;     // of bits 1 << enum transport_kind, beside auto
    enum launch launch;
    int servers; // 0: none; 1: one; -1: as many as servers= says, or as workers
    enum traffic traffic;
    bool shards;        // a worker holds 1/workers of the optimiser's state
    bool apart;         // parameters travel, every= steps, and no gradients:
                        // workers' parameters differ in between
    bool parts;         // agrees on a part of a model as on a model
    const char *colour; // in figures, #rrggbb
    int point;          // in figures, gnuplot's pt
};

// Row i, from 0; NULL behind the last.
const struct backend *backend_at(int i);

// The names of all rows, NULL-terminated.
extern const char *const backend_names[];

// The row of a name: NULL where there is none, and backend_row() then names
// them all by fail().
const struct backend *backend_find(const char *name);
const struct backend *backend_row(const char *name);

// Whether a law says what travels.
bool backend_has_law(const struct backend *b);

// Whether it reads a key of the group [backend].
bool backend_reads(const struct backend *b, const char *key);

// Whether it can use the value that such a key has in *s.
bool backend_takes(const struct backend *b, const char *key,
                   const struct sync_settings *s);

#endif
