// cluster.h - the control plane: who is rank 0..world-1, and a few small
// exchanges between them. Gradients never travel here.
//
//     local   one worker, nobody to talk to
//     mpi     under mpirun or srun; servers there meet apart from the workers
//     zmq     no MPI: every worker talks to a rendezvous server, in ps_server 0
//             or in rank 0
//
// Every call is made by all workers in the same order, has the deadline of
// cluster_config, and on its passing fails with the ranks that did not come.

#ifndef CLUSTER_CLUSTER_H
#define CLUSTER_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cluster;

struct cluster_config {
    int rank, world;        // ignored by mpi, which knows
    const char *rendezvous; // zmq: the endpoint to meet at, tcp://host:port
    const char *curve;      // folder of CURVE keys; "" for none
    bool servers;     // mpi: of servers, not of workers; all ranks open one
    double timeout_s; // of every wait
};                    // its strings outlive the cluster

struct cluster_ops {
    const char *name; // cluster=NAME
    int (*open)(struct cluster *c, const struct cluster_config *config);
    // out (world * bytes) on every worker = each worker's `in` by rank.
    int (*allgather)(struct cluster *c, const void *in, void *out,
                     size_t bytes);
    void (*close)(struct cluster *c); // optional; must accept zeroed state
};

struct cluster {
    const struct cluster_ops *ops;
    int rank, world;
    const int *ranks; // in the job, of a split of it (split.h); NULL: the same
    double timeout_s;
    const char *curve; // as configured, for the data plane; borrowed
    void *state;
};

extern const struct cluster_ops cluster_local;

// A member's rank in the job, for messages; `ranks` are those of a cluster.
static inline int cluster_job_rank(const int *ranks, int member)
{
    return ranks ? ranks[member] : member;
}

// 0, or -1 after fail().
int cluster_open(struct cluster **c, const struct cluster_ops *ops,
                 const struct cluster_config *config);
void cluster_close(struct cluster **c);

// Whether a launcher that Open MPI can join (mpirun, srun --mpi=pmix) started
// this process, and as which rank of how many.
bool cluster_launched(int *rank, int *world);

// Whether one that Open MPI cannot join (torchrun, PMI, PALS, srun without
// PMIx) started it as one of several, which is told in the environment alone.
struct cluster_place {
    const char *launcher;
    int rank, world;
};
bool cluster_named(struct cluster_place *out);

// Where such workers meet: tcp://MASTER_ADDR:MASTER_PORT, "" where those are
// not set. 0, or -1 after fail().
enum { CLUSTER_ENDPOINT = 256 };
int cluster_rendezvous(char out[CLUSTER_ENDPOINT]);

int cluster_allgather(struct cluster *c, const void *in, void *out,
                      size_t bytes);
int cluster_barrier(struct cluster *c);

// A barrier that each worker enters with 0, or with -1 after fail(). 0 where
// all entered with 0; else -1 on all: a worker that has not failed itself names
// the first that has, and returns a little later, so that the cause is heard
// first.
int cluster_check(struct cluster *c, int rc);

// v[0..n) = sum over ranks, added in rank order: the same bits everywhere.
int cluster_sum(struct cluster *c, double *v, int n);

// buf on every worker = worker 0's.
int cluster_bcast(struct cluster *c, void *buf, size_t bytes);

// All workers give a text of settings; -1 after fail() that names the first
// line that differs and on which ranks, on every worker alike.
int cluster_check_same(struct cluster *c, const char *settings);

#endif
