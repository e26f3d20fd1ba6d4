// workers.h - the workers of a bench: forked here, or started by mpirun.

#ifndef BENCH_WORKERS_H
#define BENCH_WORKERS_H

#include "cluster/cluster.h"

enum { WORKERS_MOST = 64 };

// A bench whose last word this is reads the others, and ends: with status 1 if
// one of them is wrong.
#define WORKERS_CHECK "--check"

// Run work() on every worker. Launched: this process is one, over MPI; else
// fork `workers` and let them meet at a rendezvous server of ours. 0 if all
// went well, else
// -1, and the messages have been printed.
int workers_run(bool launched, int workers, double timeout_s,
                int (*work)(struct cluster *c, void *arg), void *arg);

// This process, worker `rank` of as many on this host, to its own share of the
// cores, as the launcher has it; left alone where they are too few.
void workers_pin(int rank, int workers);

#endif
