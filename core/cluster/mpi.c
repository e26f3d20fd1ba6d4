// mpi.c - the cluster under mpirun or srun.
//
// An exchange sends one message to every other rank and receives one from each.
// With MPI's own collective we would not know which ranks are missing when the
// deadline passes. A wait tests its requests and naps in between, since
// MPI_Wait would keep a core busy.

#include "cluster/cluster.h"

#include "base/base.h"
#include "base/beat.h"
#include "message/mpi_call.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAG = 1, QUIET_S = 5 };

struct group {
    bool initialised;
    MPI_Comm comm;         // the workers, or the servers
    MPI_Request *requests; // `world` receives, then `world` sends
    bool *came;
};

static int mpi_open(struct cluster *c, const struct cluster_config *config)
{
    int provided, all;
    struct group *g = c->state = mem_alloc(1, sizeof *g);
    if (!g)
        return -1;
    // Over TCP, Open MPI has a thread that moves bytes when they arrive and
    // sleeps when none do. Without it, bytes move only in calls of MPI, and a
    // thread that makes such calls now and then rarely gets a core beside one
    // that computes.
    setenv("OMPI_MCA_btl_tcp_progress_thread", "1", 0);
    // Open MPI hangs if the signal is ignored.
    void (*over)(int) = signal(SIGXFSZ, SIG_DFL);
    MPI(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided));
    signal(SIGXFSZ, over);
    g->initialised = true;
    MPI(MPI_Comm_rank(MPI_COMM_WORLD, &all));
    MPI(MPI_Comm_split(MPI_COMM_WORLD, config->servers, all, &g->comm));
    MPI(MPI_Comm_rank(g->comm, &c->rank));
    MPI(MPI_Comm_size(g->comm, &c->world));
    g->requests = mem_alloc(2 * (size_t)c->world, sizeof(MPI_Request));
    g->came = mem_alloc((size_t)c->world, sizeof *g->came);
    return g->requests && g->came ? beat_begin() : -1;
}

// Writes "rank 2, 3": the ranks that have not come yet.
static char *missing(const struct cluster *c, char *out, size_t size)
{
    const struct group *g = c->state;
    int used = snprintf(out, size, "rank");
    const char *between = " ";
    for (int r = 0; r < c->world; r++) {
        if (g->came[r] || used < 0 || (size_t)used >= size)
            continue;
        used += snprintf(out + used, size - (size_t)used, "%s%d", between, r);
        between = ", ";
    }
    return out;
}

// Tests each request. Returns how many are not complete.
static int test(struct cluster *c)
{
    struct group *g = c->state;
    int open = 0;
    for (int i = 0; i < 2 * c->world; i++) {
        int flag;
        MPI(MPI_Test(&g->requests[i], &flag, MPI_STATUS_IGNORE));
        if (flag && i < c->world)
            g->came[i] = true;
        open += !flag;
    }
    return open;
}

static int await(struct cluster *c)
{
    struct group *g = c->state;
    char who[256];
    uint64_t start = now_ns();
    double said = 0;
    while (test(c) > 0) {
        double s = (double)(now_ns() - start) * 1e-9;
        if (s >= c->timeout_s) {
            for (int i = 0; i < 2 * c->world; i++)
                mpi_give_up(&g->requests[i]);
            return fail("cluster: %s of %d did not come within %g s",
                        missing(c, who, sizeof who), c->world, c->timeout_s);
        }
        if (c->rank == 0 && s >= said + QUIET_S) {
            said = s;
            log_line("waiting for %s of %d workers, %.0f s of %g s",
                     missing(c, who, sizeof who), c->world, s, c->timeout_s);
        }
        mpi_nap(start);
    }
    return 0;
}

static int mpi_allgather(struct cluster *c, const void *in, void *out,
                         size_t bytes)
{
    struct group *g = c->state;
    CHECK(bytes <= INT_MAX);
    for (int r = 0; r < c->world; r++) {
        MPI_Request *from = &g->requests[r], *to = from + c->world;
        char *share = (char *)out + (size_t)r * bytes;
        g->came[r] = r == c->rank;
        *from = *to = MPI_REQUEST_NULL;
        if (r == c->rank) {
            memcpy(share, in, bytes);
            continue;
        }
        MPI(MPI_Irecv(share, (int)bytes, MPI_BYTE, r, TAG, g->comm, from));
        MPI(MPI_Isend(in, (int)bytes, MPI_BYTE, r, TAG, g->comm, to));
    }
    return await(c);
}

// Waits until all ranks have called this. False if that takes longer than
// `seconds`.
static bool all_leave(double seconds)
{
    MPI_Request end;
    int flag = 0;
    uint64_t start = now_ns();
    MPI(MPI_Ibarrier(MPI_COMM_WORLD, &end));
    while (!flag && (double)(now_ns() - start) < seconds * 1e9) {
        MPI(MPI_Test(&end, &flag, MPI_STATUS_IGNORE));
        if (!flag)
            mpi_nap(start);
    }
    return flag;
}

// MPI_Finalize waits for every rank, servers included, and has no deadline. If
// a rank has failed, some never call it: then the job is aborted, and mpirun
// ends the others. Else the launcher hears that this rank is done, and gives
// mpirun a few seconds to end.
static void mpi_close(struct cluster *c)
{
    struct group *g = c->state;
    if (!g)
        return;
    if (g->initialised) {
        bool failed = *fail_message();
        if (!all_leave(failed && c->timeout_s > 1 ? 1 : c->timeout_s)) {
            log_line("%s", failed
                               ? fail_message()
                               : "cluster: other ranks did not reach the end");
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        if (!failed)
            beat_end();
        MPI(MPI_Comm_free(&g->comm));
        MPI(MPI_Finalize());
    }
    mem_free(g->came);
    mem_free(g->requests);
    mem_free(g);
}

const struct cluster_ops cluster_mpi = {
    .open = mpi_open,
    .allgather = mpi_allgather,
    .close = mpi_close,
};
