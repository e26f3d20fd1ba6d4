// workers.c - the workers of a bench: forked here, or started by mpirun.
//
// Workers are forked before the rendezvous server's thread exists, because a
// child would inherit its locks. They get the rendezvous server's address
// through a pipe.

#include "bench/workers.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "cluster/rendezvous.h"

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ENDPOINT = 128 };

struct worker {
    pid_t pid;
    int pipe;
};

void workers_pin(int rank, int workers)
{
    cpu_set_t all, mine;
    if (sched_getaffinity(0, sizeof all, &all))
        return;
    int share = CPU_COUNT(&all) / workers, nth = 0;
    CPU_ZERO(&mine);
    for (int c = 0; c < CPU_SETSIZE; c++)
        if (CPU_ISSET(c, &all) && nth++ / (share ? share : 1) == rank)
            CPU_SET(c, &mine);
    if (share && sched_setaffinity(0, sizeof mine, &mine))
        log_line("worker %d could not be given cores of its own", rank);
}

static int work_in(const struct cluster_ops *ops,
                   const struct cluster_config *config,
                   int (*work)(struct cluster *c, void *arg), void *arg)
{
    struct cluster *c = NULL;
    int rc = cluster_open(&c, ops, config);
    if (!rc) {
        log_set_rank(c->rank);
        rc = work(c, arg);
    }
    if (rc)
        log_error("%s", fail_message());
    cluster_close(&c);
    return rc;
}

static _Noreturn void child(int from, struct cluster_config *config,
                            int (*work)(struct cluster *c, void *arg),
                            void *arg)
{
    char endpoint[ENDPOINT];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (read(from, endpoint, sizeof endpoint) != sizeof endpoint)
        _exit(1); // the parent has logged the error
    config->rendezvous = endpoint;
    workers_pin(config->rank, config->world);
    int rc = work_in(&cluster_zmq, config, work, arg);
    fflush(NULL);
    _exit(rc ? 1 : 0);
}

// Waits for all workers. If one fails, ends the others, which would only wait
// for it.
static int reap(const struct worker *forked, int n)
{
    int rc = 0, status;
    for (int left = n; left > 0; left--) {
        if (wait(&status) < 0)
            return fail("bench: cannot wait for the workers");
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            continue;
        for (int r = 0; !rc && r < n; r++)
            kill(forked[r].pid, SIGTERM);
        rc = -1;
    }
    return rc;
}

static int fork_all(struct worker *forked, int n, struct cluster_config *config,
                    int (*work)(struct cluster *c, void *arg), void *arg)
{
    fflush(NULL);
    for (int r = 0; r < n; r++) {
        int ends[2];
        if (pipe(ends))
            return fail("bench: no pipe left");
        forked[r].pid = fork();
        if (forked[r].pid < 0)
            return fail("bench: cannot fork worker %d of %d", r, n);
        config->rank = r;
        if (forked[r].pid == 0) {
            close(ends[1]);
            child(ends[0], config, work, arg);
        }
        close(ends[0]);
        forked[r].pipe = ends[1];
    }
    return 0;
}

int workers_run(bool launched, int workers, double timeout_s,
                int (*work)(struct cluster *c, void *arg), void *arg)
{
    struct cluster_config config = {.world = workers,
                                    .curve = "",
                                    .timeout_s = timeout_s};
    struct worker forked[WORKERS_MOST] = {0};
    struct rendezvous_server *rendezvous = NULL;
    if (launched)
        return work_in(&cluster_mpi, &config, work, arg);
    CHECK(workers <= WORKERS_MOST);
    char endpoint[ENDPOINT] = "";
    int rc = fork_all(forked, workers, &config, work, arg);
    if (!rc)
        rc = rendezvous_start(&rendezvous, "tcp://127.0.0.1:0", "") ||
                     text_into(endpoint, sizeof endpoint, "%s",
                               rendezvous_endpoint(rendezvous))
                 ? -1
                 : 0;
    if (rc)
        log_line("%s", fail_message());
    int started = 0;
    for (int r = 0; r < workers && forked[r].pid > 0; r++, started++) {
        if (!rc && write(forked[r].pipe, endpoint, sizeof endpoint) < 0)
            log_line("worker %d is gone", r);
        close(forked[r].pipe);
    }
    if (reap(forked, started))
        rc = -1;
    rendezvous_stop(&rendezvous);
    return rc;
}
