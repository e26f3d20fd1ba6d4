// forked.c - a world of test workers, forked or launched.

#include "tests/forked.h"

#include "tests/shm_cluster.h"

#include "base/base.h"

#include <omp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

// The function that a worker runs, and its argument.
struct task {
    int (*body)(struct cluster *c, const void *arg, uint64_t *result);
    const void *arg;
};

// Runs in a child process. Its exit status is 0 if the body succeeded.
static _Noreturn void child(const struct task *t, struct shm_counters *counters,
                            int rank, int world, double timeout_s,
                            uint64_t *result)
{
    struct cluster *c = NULL;
    omp_set_num_threads(1); // more threads than cores would only wait
    int rc = shm_cluster_open(&c, counters, rank, world, timeout_s) ||
             t->body(c, t->arg, result);
    cluster_close(&c);
    _exit(rc ? 1 : 0);
}

// Waits for all children. Kills those that are left after FORKED_LONGEST_S.
// Returns how many did not exit with 0.
static int reap(const pid_t *pids, int n)
{
    int bad = 0, left = n;
    bool done[FORKED_MOST] = {0};
    uint64_t start = now_ns();
    while (left > 0) {
        bool late = now_ns() - start > FORKED_LONGEST_S * 1000000000ull;
        for (int r = 0; r < n; r++) {
            int status;
            if (done[r])
                continue;
            if (late) {
                log_line("rank %d: did not end within %d s", r,
                         FORKED_LONGEST_S);
                kill(pids[r], SIGKILL);
            }
            if (waitpid(pids[r], &status, late ? 0 : WNOHANG) == 0)
                continue;
            done[r] = true;
            left--;
            bad += !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        }
        usleep(500);
    }
    return bad;
}

static int fork_all(const struct task *t, int world, double timeout_s,
                    uint64_t *results)
{
    size_t bytes = sizeof(uint64_t) * FORKED_MOST;
    uint64_t *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct shm_counters *counters = shm_counters_open();
    CHECK(shared != MAP_FAILED && counters && world <= FORKED_MOST);
    pid_t pids[FORKED_MOST];
    fflush(NULL);
    for (int r = 0; r < world; r++) {
        pids[r] = fork();
        CHECK(pids[r] >= 0);
        if (pids[r] == 0)
            child(t, counters, r, world, timeout_s, &shared[r]);
    }
    int bad = reap(pids, world);
    if (results)
        memcpy(results, shared, sizeof *results * (size_t)world);
    shm_counters_close(&counters);
    munmap(shared, bytes);
    return bad;
}

// Runs the body on this process, which is a rank of the job.
static int join_all(const struct task *t, struct cluster *c, uint64_t *results)
{
    uint64_t mine = 0, all[FORKED_MOST];
    double bad = t->body(c, t->arg, &mine) ? 1 : 0;
    CHECK(c->world <= FORKED_MOST && !cluster_sum(c, &bad, 1));
    CHECK(!cluster_allgather(c, &mine, all, sizeof mine));
    if (results)
        memcpy(results, all, sizeof *results * (size_t)c->world);
    return (int)bad;
}

int forked_run(struct cluster *launched, int world, double timeout_s,
               int (*body)(struct cluster *c, const void *arg,
                           uint64_t *result),
               const void *arg, uint64_t *results)
{
    struct task t = {.body = body, .arg = arg};
    if (!launched)
        return fork_all(&t, world,
                        timeout_s > 0 ? timeout_s : FORKED_LONGEST_S / 2,
                        results);
    CHECK(launched->world == world);
    return join_all(&t, launched, results);
}
