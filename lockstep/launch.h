// launch.h - which processes a job consists of, with which words and cores.
//
//     LAUNCH_ALONE     one trainer
//     LAUNCH_MPIRUN    mpirun, which starts trainers through `lockstep pin`
//     LAUNCH_SERVERS   ps_servers, then trainers that are told their endpoints;
//       transport=mpi  mpirun, which starts trainers as above, and ps_servers
//                      as the ranks behind them
//
// A row of the table of backends says which (config/backends.h).

#ifndef LOCKSTEP_LAUNCH_H
#define LOCKSTEP_LAUNCH_H

#include "config/config.h"

struct argv;
struct job;
struct netns;

enum { LAUNCH_ENDPOINTS = CONFIG_PATH };

// `lockstep pin` takes what stands behind it for the ranks behind the workers.
#define PIN_SERVER "@server"

// How many children launch() will start, at most; -1 after fail().
int launch_children(const struct run *r);

// How many emulated hosts the job has where net= does not say: one a worker,
// and one for a server that is not beside a worker.
int launch_hosts(const struct run *r);

// Start every process of the job, on the hosts of `net` (NULL: on this one).
// Workers are given what *r was asked for, then what we decided; servers[]
// receives the endpoints of servers that were started. 0, or -1 after fail();
// what was started is job_close()'s to end.
int launch(struct job *j, const struct run *r, const struct netns *net,
           char servers[LAUNCH_ENDPOINTS]);

// Start one worker of such a job once more, for the same servers. 0, or -1
// after fail().
int launch_worker(struct job *j, const struct run *r, const struct netns *net,
                  int rank, const char *servers);

// Start workers of `program` (beside this one) under mpirun, by way of
// `lockstep pin`, on the hosts of `net`; of *r, workers and hosts count. Behind
// them `servers` ranks of another program, whose words come with its path; NULL
// for none. 0, or -1 after fail().
int launch_mpi(struct job *j, const struct run *r, const struct netns *net,
               const char *program, const struct argv *words, int servers,
               const struct argv *server);

#endif
