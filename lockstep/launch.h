// launch.h - starts the processes of a job, with their arguments and cores.
//
//     LAUNCH_ALONE     one trainer
//     LAUNCH_MPIRUN    mpirun, which starts trainers through `lockstep pin`
//     LAUNCH_SERVERS   ps_servers, then trainers that get their endpoints;
//       transport=mpi  mpirun, which starts trainers as above, and ps_servers
//                      as the ranks behind them
//
// The backend's row of the table says which of these it needs
// (config/backends.h).

#ifndef LOCKSTEP_LAUNCH_H
#define LOCKSTEP_LAUNCH_H

#include "config/config.h"

struct argv;
struct job;
struct netns;

enum { LAUNCH_ENDPOINTS = CONFIG_PATH };

// Separates two programs in the words of `lockstep pin`: the ranks behind the
// workers run the second.
#define PIN_SERVER "@server"

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

// Starts workers of `program`, one of Lockstep's, under mpirun and through
// `lockstep pin`, on the emulated hosts `net` (NULL: none). It reads only
// workers and hosts of *r. `words` are the program's arguments. If servers > 0,
// the job has that many more ranks, behind the workers; they run the command
// *server. 0, or -1 after fail().
int launch_mpi(struct job *j, const struct run *r, const struct netns *net,
               const char *program, const struct argv *words, int servers,
               const struct argv *server);

#endif
