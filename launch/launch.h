// launch.h - starts the processes of a job, with their arguments and cores.
//
//     LAUNCH_ALONE     one trainer
//     LAUNCH_WORKERS   trainer 0, which answers with the endpoint of its
//                      rendezvous, then the other trainers
//     LAUNCH_SERVERS   ps_servers, then trainers that get their endpoints
//     LAUNCH_MPIRUN    mpirun, which starts trainers through `lockstep pin`;
//                      also for the two above, if their settings ask for MPI.
//                      Servers are then the ranks behind the trainers
//
// The backend's row of the table says which of these it needs
// (config/backends.h).

#pragma once

#include "config/config.h"

struct job;
struct netns;

enum {
    LAUNCH_ENDPOINT = 128, // bytes of one endpoint, and of all
    LAUNCH_ENDPOINTS = CONFIG_PATH,
    LAUNCH_START_S = 30, // that programs may take to start on a busy machine;
                         // timeout= is added
};

// Returns the largest number of children that launch() starts; -1 after fail().
int launch_children(const struct run *r);

// Returns how many emulated hosts the job gets if net= does not say it: one for
// each worker, and one for a single server.
int launch_hosts(const struct run *r);

#define LAUNCH_UNSHAPED "unshaped" // net= of a run without emulated links

// Returns net= of a run that has emulated links, or has none although net= asks
// for them: without the '?' that permits this. "": net= does not ask for links.
const char *launch_net(const struct run *r, bool emulated);

// Starts all processes of the job, on the emulated hosts `net` (NULL: none), on
// hosts=FILE or on this host. Workers get the user's settings, then the
// launcher's. servers[] receives the endpoints of the servers that it started.
// 0, or -1 after fail(). In both cases job_close() ends the processes that were
// started.
int launch(struct job *j, const struct run *r, const struct netns *net,
           char servers[LAUNCH_ENDPOINTS]);

// Starts worker `rank` of such a job again, with the same servers. 0, or -1
// after fail().
int launch_worker(struct job *j, const struct run *r, const struct netns *net,
                  int rank, const char *servers);
