// ps_workers.c - each worker has a process of its own, so that it can be
// killed.

#include "tests/ps_workers.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "device/device.h"
#include "optim/optim.h"
#include "ps_worker/ps_worker.h"
#include "sync/bucket.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/settings.h"
#include "tests/test.h"

enum { BUCKETS = 16 };

struct worker {
    const struct ps_workers *job;
    int rank;
    struct cluster cluster;
    struct sync_job sync_job;
    struct sync *sync;
};

static int no_gather(struct cluster *c, const void *in, void *out, size_t bytes)
{
    for (int r = 0; r < c->world; r++)
        memcpy((char *)out + (size_t)r * bytes, in, bytes);
    return 0;
}

static const struct cluster_ops nobody = {.allgather = no_gather};

static size_t size_of(const struct ps_workers *j)
{
    return j->n ? j->n : PS_WORKERS_N;
}

static int worker_open(struct worker *w)
{
    static struct optim_config optim = {.kind = OPTIM_SGD};
    static struct bucket buckets[BUCKETS];
    static struct sync_settings settings;
    const struct ps_workers *j = w->job;
    const char *name = strchr(j->endpoints, ',') ? "dps" : "sps";
    char text[1024];
    struct device *dev;
    size_t n = size_of(j);
    int nb = bucket_cut(buckets, BUCKETS, n, n / 5 + 1, n / 3 + 1);
    w->cluster = (struct cluster){.ops = &nobody,
                                  .rank = w->rank,
                                  .world = j->world,
                                  .timeout_s = j->timeout_s,
                                  .curve = j->curve};
    if (text_into(text, sizeof text, "slice_kb=%d,%s,servers=%s",
                  j->slice_kb ? j->slice_kb : 1, j->opts, j->endpoints) ||
        settings_text(&settings, text, name, j->world, n) ||
        device_open(&dev, "cpu"))
        return -1;
    w->sync_job = (struct sync_job){
        .backend = backend_find(name),
        .cluster = &w->cluster,
        .dev = dev,
        .params = mem_alloc(n, sizeof(float)),
        .grads = mem_alloc(n, sizeof(float)),
        .n = n,
        .buckets = buckets,
        .nbuckets = nb,
        .optim = &optim,
        .settings = &settings,
    };
    for (size_t i = 0; i < n; i++)
        w->sync_job.params[i] = (float)i;
    w->sync = sync_open(&sync_servers, &w->sync_job);
    return w->sync && !sync_bcast(w->sync) ? 0 : -1;
}

static int check(const struct worker *w, int step)
{
    for (size_t i = 0; i < w->sync_job.n; i++)
        if (w->sync_job.params[i] != (float)i - (float)step)
            return fail("step %d: parameter %zu is %g", step, i,
                        (double)w->sync_job.params[i]);
    return 0;
}

// Waits until all workers from rank `first` on have done `step`.
static int await_others(const struct ps_workers *j, int first, int step)
{
    for (int r = first; r < j->world; r++)
        for (int ms = 0; atomic_load(&j->progress->step[r]) < step; ms++) {
            if (ms == 20000)
                return fail("rank %d did not reach step %d", r, step);
            usleep(1000);
        }
    return 0;
}

static bool is_over(const struct ps_workers *j, int done)
{
    int last = j->steps ? j->steps : atomic_load(&j->progress->last);
    return last && done >= last;
}

// Runs steps in which every gradient is 1. So each update subtracts 1 from
// every parameter, with any number of workers.
static int train(struct worker *w)
{
    const struct ps_workers *j = w->job;
    int step = 0;
    if (worker_open(w))
        return -1;
    j->progress->end[w->rank].joined = w->sync->joined;
    for (int done = (int)w->sync->joined; !is_over(j, done); done = step) {
        struct sync_out out;
        if (j->late && w->rank == 0 &&
            await_others(j, 1, done - done % j->meet + j->meet))
            return -1;
        step = done + 1;
        struct sync_in in = {.step = step,
                             .lr = 1,
                             .grad_scale = 1.0f / (float)j->world};
        usleep((useconds_t)(w->rank ? j->pause_us : j->pause_us + j->slow_us));
        for (size_t i = 0; i < w->sync_job.n; i++)
            w->sync_job.grads[i] = 1;
        for (int b = 0; b < w->sync_job.nbuckets; b++)
            if (sync_ready(w->sync, b))
                return -1;
        if (sync_step(w->sync, &in, &out))
            return -1;
        step += out.missed;
        // Parameters that were pulled late may be newer.
        if (!strstr(j->opts, "consistency") && (!out.dropped || j->late) &&
            check(w, step))
            return -1;
        atomic_store(&j->progress->step[w->rank], step);
        j->progress->end[w->rank].taken++;
        j->progress->end[w->rank].dropped += out.dropped;
        if (j->meet && step % j->meet == 0 && await_others(j, 0, step))
            return -1;
    }
    return 0;
}

struct ps_progress *ps_progress_make(void)
{
    struct ps_progress *b = mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(b != MAP_FAILED);
    return b;
}

pid_t ps_workers_start(const struct ps_workers *j, int rank)
{
    struct ps_progress *progress = j->progress;
    progress->end[rank].rc = 99;
    atomic_store(&progress->step[rank], 0);
    pid_t pid = fork();
    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    log_set_rank(rank);
    struct worker w = {.job = j, .rank = rank};
    int rc = train(&w);
    if (rc)
        snprintf(progress->end[rank].why, sizeof progress->end[rank].why, "%s",
                 fail_message());
    else
        progress->end[rank].hash =
            hash_bytes(w.sync_job.params, w.sync_job.n * sizeof(float));
    sync_close(&w.sync);
    progress->end[rank].rc = rc;
    _exit(rc ? 1 : 0);
}

void ps_workers_finish(const struct ps_workers *j)
{
    atomic_store(&j->progress->last, atomic_load(&j->progress->step[0]) + 50);
}

void ps_workers_await(const struct ps_workers *j, int rank, int step)
{
    for (int ms = 0; atomic_load(&j->progress->step[rank]) < step; ms++) {
        assert_true(ms < 60000);
        usleep(1000);
    }
}

void ps_workers_join(pid_t pid)
{
    int status;
    for (int ms = 0; waitpid(pid, &status, WNOHANG) == 0; ms++) {
        assert_true(ms < 60000);
        usleep(1000);
    }
}
