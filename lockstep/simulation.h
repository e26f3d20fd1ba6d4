// simulation.h - one exchange in SimGrid's smpirun, under a deadline.

#ifndef LOCKSTEP_SIMULATION_H
#define LOCKSTEP_SIMULATION_H

#include "sync/law.h"
#include "textbook/schedule.h"

#include <stdbool.h>
#include <stddef.h>

struct simulation {
    const char *name;   // in errors
    const char *folder; // platform, hosts and log are left there
    const struct backend *backend;
    const struct schedule *schedule; // instead of the backend's exchange; NULL:
                                     // none
    char *const
        *mesh;      // instead: words of simulate/mesh_step.c, `mesh_words` of
    int mesh_words; // them; 0: none
    int workers;
    size_t n; // elements of the gradient, fp32
    struct link link;
    long slice_kb;                         // 0: simulate/exchange.h says
    double bucket_mb;                      // 0: the whole gradient
    bool payload, worker_updates, halving; // halving: else the ring
    bool default_network; // SimGrid's, fitted to a cluster; else the law's
    double timeout_s;
};

struct simulated {
    double seconds; // simulated
    double wall_s, memory_mb;
};

// 0, or -1 after fail() where SimGrid or simulate_job is missing.
int simulation_check(void);

// 0, or -1 after fail(): a wrong sum, too. The folder exists.
int simulation_run(const struct simulation *s, struct simulated *out);

#endif
