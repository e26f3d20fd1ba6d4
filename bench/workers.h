// workers.h - the workers of a bench: forked here, or started by mpirun.

#pragma once

#include "cluster/cluster.h"

enum { WORKERS_MOST = 64 };

// If this is a bench's last argument, the bench only checks the other arguments
// and exits, with status 1 if one of them is wrong.
#define WORKERS_CHECK "--check"

// Runs work() on every worker. If `launched`, mpirun started the workers: this
// process is one of them, and they talk over MPI. Otherwise this forks
// `workers` processes, which meet at a rendezvous server of this process.
// Returns 0 if all went well; else -1, and the messages have been printed.
int workers_run(bool launched, int workers, double timeout_s,
                int (*work)(struct cluster *c, void *arg), void *arg);

// Pins this process, worker `rank` of `workers` on this host, to its own share
// of the cores, as the launcher does. Does nothing if there are fewer cores
// than workers.
void workers_pin(int rank, int workers);
