// cluster.h - the control plane: the ranks 0..world-1 of the workers, and a few
// small exchanges between them. Gradients never travel here.
//
//     local   one worker
//     mpi     under mpirun or srun; servers have a cluster of their own
//     zmq     no MPI: every worker exchanges messages with a rendezvous server,
//             which runs in ps_server 0 or in rank 0
//
// All workers make the same calls in the same order. A call that takes longer
// than timeout_s fails, and the error names the ranks that did not come. (An
// elastic job may go on without them: rendezvous.h.)

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cluster;

struct cluster_config {
    int rank, world;        // ignored by mpi, which gets them from MPI
    const char *rendezvous; // zmq: endpoint of the server, tcp://host:port
    const char *curve;      // folder of CURVE keys; "" for none
    bool servers;     // mpi: whether this rank is a server. All ranks of the
                      // job open a cluster at the same time: the servers get
                      // one, the workers another
    double timeout_s; // of every wait
    double start_s;   // zmq: added to the first exchange's, while workers start
};                    // its strings must outlive the cluster

struct cluster_ops {
    int (*open)(struct cluster *c, const struct cluster_config *config);
    // out (world * bytes) on every worker = each worker's `in` by rank.
    int (*allgather)(struct cluster *c, const void *in, void *out,
                     size_t bytes);
    void (*close)(struct cluster *c); // optional; must accept zeroed state
};

struct cluster {
    const struct cluster_ops *ops;
    int rank, world;
    const int *ranks; // in a part (split.h): by member, its rank in the
                      // cluster that was split, which is the job. NULL: the
                      // members are the ranks of the job
    double timeout_s;
    const char *curve; // as configured, for the data plane; borrowed
    void *state;
};

extern const struct cluster_ops cluster_local, cluster_mpi, cluster_zmq;

// A member's rank in the job, for messages. `ranks`: see struct cluster.
static inline int cluster_job_rank(const int *ranks, int member)
{
    return ranks ? ranks[member] : member;
}

// Opens a cluster; cluster_close() closes it and sets *c to NULL. 0, or -1
// after fail().
int cluster_open(struct cluster **c, const struct cluster_ops *ops,
                 const struct cluster_config *config);
void cluster_close(struct cluster **c);

// Whether a launcher that Open MPI can join (mpirun, srun --mpi=pmix) started
// this process. If so, writes its rank and the number of ranks.
bool cluster_launched(int *rank, int *world);

// Whether a launcher that Open MPI cannot join (torchrun, PMI, PALS, srun
// without PMIx) started this process as one of several. Such a launcher gives
// rank and world only in environment variables. If so, writes them to *out.
struct cluster_place {
    const char *launcher;
    int rank, world;
};
bool cluster_named(struct cluster_place *out);

// Whether any launcher started this process as one of several.
bool cluster_several(struct cluster_place *out);

// The rendezvous of workers that Open MPI cannot join, or "" if these variables
// are not set: tcp://MASTER_ADDR:MASTER_PORT. 0, or -1 after fail().
enum { CLUSTER_ENDPOINT = 256 };
int cluster_rendezvous(char out[CLUSTER_ENDPOINT]);

// out (world * bytes) on every worker = each worker's `in` (bytes), by rank.
// 0, or -1 after fail().
int cluster_allgather(struct cluster *c, const void *in, void *out,
                      size_t bytes);

// The same, for pieces that may differ in length: *most becomes the longest
// one's bytes, and shorter pieces end in zeros. Returns the (world, *most)
// bytes, which the caller frees with mem_free(); NULL after fail().
char *cluster_gather(struct cluster *c, const void *in, size_t bytes,
                     size_t *most);

// Returns 0 when all workers have called it; -1 after fail().
int cluster_barrier(struct cluster *c);

// A barrier to which each worker brings rc: 0, or -1 after fail(). It returns 0
// if all brought 0, else -1 on all workers. On a worker that brought 0, the
// error names the first rank that failed. There the call returns 0.3 s later,
// so that the cause is logged first.
int cluster_check(struct cluster *c, int rc);

// Sleeps 0.3 s. A worker that fails because another process is gone calls this
// before it exits, so that the supervisor sees the other one's death, the
// cause, first.
void cluster_let_cause_show(void);

// Fails because a rank has failed, 0.3 s later, so that the cause is logged
// first.
int cluster_blame(const struct cluster *c, int rank);

// Every worker does work(ctx), and waits until all have done theirs, however
// long that takes. Only a worker that is dead or frozen is missed after
// timeout_s. All workers of the job call it, also those of a part (split.h).
// work() must not use the control plane. Results are those of cluster_check().
int cluster_work(struct cluster *c, int (*work)(void *ctx), void *ctx);

// v[0..n) = sum over ranks, added in rank order: the same bits everywhere. 0,
// or -1 after fail().
int cluster_sum(struct cluster *c, double *v, int n);

// buf (bytes) on every worker = worker 0's. 0, or -1 after fail().
int cluster_bcast(struct cluster *c, void *buf, size_t bytes);

// Compares the settings of all workers, a text with one setting a line. 0 if
// all are equal. Else -1 on every worker, after fail() with the first line that
// differs and the ranks.
int cluster_check_same(struct cluster *c, const char *settings);
