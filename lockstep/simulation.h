// simulation.h - runs one exchange in SimGrid's smpirun, with a deadline.

#ifndef LOCKSTEP_SIMULATION_H
#define LOCKSTEP_SIMULATION_H

#include "sync/law.h"
#include "textbook/schedule.h"

#include <stdbool.h>
#include <stddef.h>

struct simulation {
    const char *name;   // for error messages
    const char *folder; // it gets the platform, the hosts and the log
    // One of these is simulated: the exchange of the backend; if schedule is
    // not NULL, that collective; if mesh_words is above 0, a step of
    // simulate/mesh_step.c with these words.
    const struct backend *backend;
    const struct schedule *schedule;
    char *const *mesh;
    int mesh_words;
    int workers;
    size_t n; // elements of the gradient, fp32
    struct link link;
    long slice_kb;        // 0: see simulate/exchange.h
    double bucket_mb;     // 0: the whole gradient at once
    bool payload;         // compute the sum, too, and check it
    bool worker_updates;  // false: servers update
    bool halving;         // algorithm of sync=allreduce; false: ring
    bool default_network; // SimGrid's network model; false: the law's links
    double timeout_s;
};

struct simulated {
    double seconds;           // of the simulated exchange
    double wall_s, memory_mb; // of the simulation itself
};

// Checks that SimGrid and simulate_job are installed. 0, or -1 after fail().
int simulation_check(void);

// Runs a simulation. s->folder must exist. 0, or -1 after fail(), also if a sum
// is wrong or the deadline has passed.
int simulation_run(const struct simulation *s, struct simulated *out);

#endif
