// test_ps_policy.c - the promises of ssp and asp, tested with workers that are
// threads of this process, and with delays on purpose.

#include "base/base.h"
#include "base/rng.h"
#include "cluster/cluster.h"
#include "device/device.h"
#include "optim/optim.h"
#include "ps_server/server.h"
#include "ps_worker/ps_worker.h"
#include "sync/bucket.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "tests/settings.h"
#include "tests/test.h"

enum { WORLD = 4, SERVERS = 3, BUCKETS = 16 };

// ---- servers as threads

struct servers {
    int n;
    struct server *at[SERVERS];
    pthread_t thread[SERVERS];
    int rc[SERVERS];
    char endpoints[512];
};

static struct server *serving[SERVERS];

static void *serve(void *arg)
{
    size_t i = (size_t)arg;
    return server_run(serving[i]) ? (void *)1 : NULL;
}

static void servers_open(struct servers *s, int n)
{
    *s = (struct servers){.n = n};
    for (int i = 0; i < n; i++) {
        struct server_config config = {.transport = &message_zmq,
                                       .bind = "tcp://127.0.0.1:0",
                                       .curve = "",
                                       .index = i,
                                       .threads = 1 + i % 2,
                                       .timeout_s = 20};
        size_t at = strlen(s->endpoints);
        assert_int_equal(server_open(&s->at[i], &config), 0);
        serving[i] = s->at[i];
        snprintf(s->endpoints + at, sizeof s->endpoints - at, "%s%s",
                 i ? "," : "", s->at[i]->endpoint->address);
        assert_int_equal(pthread_create(&s->thread[i], NULL, serve,
                                        (void *)(size_t)i),
                         0);
    }
}

static void servers_join(struct servers *s)
{
    for (int i = 0; i < s->n; i++) {
        void *rc;
        pthread_join(s->thread[i], &rc);
        s->rc[i] = rc != NULL;
    }
}

static void servers_close(struct servers *s)
{
    for (int i = 0; i < s->n; i++)
        server_close(&s->at[i]);
}

// ---- workers as threads

struct job {
    int world;
    size_t n;
    const char *opts;
    double timeout_s;
    struct servers *servers;
};

struct worker {
    const struct job *job;
    int rank;
    struct cluster cluster;
    struct sync_settings settings;
    struct optim_config optim;
    struct bucket buckets[BUCKETS];
    struct sync_job sync_job;
    struct sync *sync;
    pthread_t thread;
    int (*body)(struct worker *w);
    int rc;
    char why[512];
    double lag;
};

static int no_gather(struct cluster *c, const void *in, void *out, size_t bytes)
{
    for (int r = 0; r < c->world; r++)
        memcpy((char *)out + (size_t)r * bytes, in, bytes);
    return 0;
}

static const struct cluster_ops nobody = {.allgather = no_gather};

static int worker_open(struct worker *w, struct device *dev)
{
    const struct job *j = w->job;
    const char *name = j->servers->n > 1 ? "dps" : "sps";
    char text[1024];
    w->cluster = (struct cluster){.ops = &nobody,
                                  .rank = w->rank,
                                  .world = j->world,
                                  .timeout_s = j->timeout_s,
                                  .curve = ""};
    w->optim = (struct optim_config){.kind = OPTIM_SGD};
    int nb = bucket_cut(w->buckets, BUCKETS, j->n, j->n / 5 + 1, j->n / 3 + 1);
    w->sync_job = (struct sync_job){
        .backend = backend_find(name),
        .cluster = &w->cluster,
        .dev = dev,
        .params = mem_alloc(j->n, sizeof(float)),
        .grads = mem_alloc(j->n, sizeof(float)),
        .n = j->n,
        .buckets = w->buckets,
        .nbuckets = nb,
        .optim = &w->optim,
    };
    if (text_into(text, sizeof text, "slice_kb=1,%s,servers=%s", j->opts,
                  j->servers->endpoints) ||
        settings_text(&w->settings, text, name, j->world, j->n))
        return -1;
    w->sync_job.settings = &w->settings;
    w->sync = sync_open(&sync_servers, &w->sync_job);
    return w->sync && !sync_bcast(w->sync) ? 0 : -1;
}

static int worker_step(struct worker *w, int step, struct sync_out *out)
{
    struct sync_in in = {.step = step,
                         .lr = 1,
                         .grad_scale = 1.0f / (float)w->job->world};
    for (int b = 0; b < w->sync_job.nbuckets; b++)
        if (sync_ready(w->sync, b))
            return -1;
    return sync_step(w->sync, &in, out);
}

static void *work(void *arg)
{
    struct worker *w = arg;
    struct device *dev;
    CHECK(device_open(&dev, "cpu") == 0);
    w->rc = worker_open(w, dev) || w->body(w) ? -1 : 0;
    if (w->rc)
        snprintf(w->why, sizeof w->why, "%s", fail_message());
    sync_close(&w->sync);
    mem_free(w->sync_job.params);
    mem_free(w->sync_job.grads);
    device_close(&dev);
    return NULL;
}

static void worker_start(struct worker *w, const struct job *j, int rank,
                         int (*body)(struct worker *))
{
    *w = (struct worker){.job = j, .rank = rank, .body = body};
    assert_int_equal(pthread_create(&w->thread, NULL, work, w), 0);
}

static void worker_join(struct worker *w)
{
    pthread_join(w->thread, NULL);
    if (w->rc)
        print_message("rank %d: %s\n", w->rank, w->why);
}

static void run_all(struct job *j, int servers, int (*body)(struct worker *),
                    struct worker w[WORLD], struct servers *s)
{
    servers_open(s, servers);
    j->servers = s;
    for (int r = 0; r < j->world; r++)
        worker_start(&w[r], j, r, body);
    for (int r = 0; r < j->world; r++) {
        worker_join(&w[r]);
        assert_int_equal(w[r].rc, 0);
    }
    servers_join(s);
    for (int i = 0; i < servers; i++)
        assert_int_equal(s->rc[i], 0);
}

// ---- a worker that writes a checkpoint

// Longer than the deadline, and until the servers' questions whether the worker
// is still there would have filled the queue of its connection.
static int write_for_long(void *ctx)
{
    const struct worker *w = ctx;
    sleep_ns((uint64_t)(3e9 * w->job->timeout_s));
    return 0;
}

static int write_body(struct worker *w)
{
    struct sync_out out;
    for (int step = 1; step <= 3; step++) {
        if (worker_step(w, step, &out) ||
            (step == 1 && w->rank == 0 &&
             sync_work(w->sync, write_for_long, w)))
            return -1;
    }
    return 0;
}

// Worker 1 waits for the pushes of worker 0.
static void a_busy_worker_is_waited_for(void **state)
{
    (void)state;
    struct job j = {.world = 2,
                    .n = 1000,
                    .opts = "consistency=ssp:1",
                    .timeout_s = 3};
    struct worker w[WORLD];
    struct servers s;
    run_all(&j, 2, write_body, w, &s);
    servers_close(&s);
}

// ---- rows that take longer than the deadline, as behind a slow link

static int trickle_body(struct worker *w)
{
    struct sync_out out;
    uint64_t deadline = (uint64_t)(1e9 * w->job->timeout_s);
    if (w->rank == 0)
        sleep_ns(deadline / 5 * 8);
    for (int b = 0; w->rank == 2 && b < w->sync_job.nbuckets; b++) {
        if (sync_ready(w->sync, b))
            return -1;
        sleep_ns(deadline / 2);
    }
    struct sync_in in = {.step = 1, .lr = 1, .grad_scale = 1.0f / 3};
    return w->rank == 2 ? sync_step(w->sync, &in, &out)
                        : worker_step(w, 1, &out);
}

// Worker 1 has no answer before worker 0 pushes, but rows of worker 2 come.
static void slow_rows_are_waited_for(void **state)
{
    (void)state;
    struct job j = {.world = 3,
                    .n = 1000,
                    .opts = "consistency=bsp",
                    .timeout_s = 3};
    struct worker w[WORLD];
    struct servers s;
    run_all(&j, 1, trickle_body, w, &s);
    servers_close(&s);
}

// ---- ssp: no worker is more than K steps ahead of another

enum { SSP_STEPS = 2500 }; // of each worker

static atomic_int begun[WORLD];
static atomic_int worst;
static int bound;

static int ssp_body(struct worker *w)
{
    for (int step = 1; step <= SSP_STEPS; step++) {
        struct sync_out out;
        for (size_t i = 0; i < w->job->n; i++)
            w->sync_job.grads[i] = 1;
        if (rng_uniform(77, (uint64_t)(step * WORLD + w->rank)) < 0.01)
            usleep(1000); // a straggler, now and then
        atomic_store(&begun[w->rank], step);
        if (worker_step(w, step, &out))
            return -1;
        // we are at clock `step`: all others must have begun step - bound
        for (int r = 0; r < w->job->world; r++) {
            int behind = step - atomic_load(&begun[r]);
            if (behind > atomic_load(&worst))
                atomic_store(&worst, behind);
            if (behind > bound)
                return fail("clock %d while rank %d is at %d", step, r,
                            atomic_load(&begun[r]));
        }
        // our parameters include at least our own pushes, and all pushes of the
        // others up to step - bound - 1. Every push subtracted 1/world from
        // each parameter.
        float least = (float)step;
        for (int r = 0; r < w->job->world; r++)
            least += r == w->rank || step - bound - 1 < 0
                         ? 0
                         : (float)(step - bound - 1);
        for (size_t i = 0; i < w->job->n; i++)
            if (-w->sync_job.params[i] * (float)w->job->world < least)
                return fail("clock %d sees %g updates, not %g", step,
                            (double)(-w->sync_job.params[i] *
                                     (float)w->job->world),
                            (double)least);
        w->lag += out.lag;
    }
    return 0;
}

static void ssp_bounds_the_distance_of_workers(void **state)
{
    (void)state;
    const struct {
        int bound, servers;
        const char *opts;
    } cases[] = {{0, 1, "consistency=ssp:0"},
                 {2, 1, "consistency=ssp:2"},
                 {3, 2, "consistency=ssp:3"}};
    for (int k = 0; k < 3; k++) {
        struct job j = {.world = WORLD,
                        .n = 5,
                        .opts = cases[k].opts,
                        .timeout_s = 20};
        struct worker w[WORLD];
        struct servers s;
        for (int r = 0; r < WORLD; r++)
            atomic_store(&begun[r], 0);
        atomic_store(&worst, 0);
        bound = cases[k].bound;
        run_all(&j, cases[k].servers, ssp_body, w, &s);
        print_message("ssp:%d, %d servers: workers at most %d apart\n", bound,
                      s.n, atomic_load(&worst));
        servers_close(&s);
    }
}

// ---- asp: workers in step have a mean lag of n - 1, and every push counts

enum { ASP_STEPS = 300 };

static pthread_barrier_t next_step;

// All workers begin a step at the same time, when all have ended the step
// before.
static int asp_body(struct worker *w)
{
    for (int step = 1; step <= ASP_STEPS; step++) {
        struct sync_out out;
        for (size_t i = 0; i < w->job->n; i++)
            w->sync_job.grads[i] = 1;
        pthread_barrier_wait(&next_step);
        if (worker_step(w, step, &out))
            return -1;
        w->lag += out.lag;
    }
    return 0;
}

static int pull_last(struct worker *w, float *out)
{
    struct sync_out last;
    memset(w->sync_job.grads, 0, w->job->n * sizeof(float));
    if (worker_step(w, ASP_STEPS + 1, &last))
        return -1;
    *out = w->sync_job.params[0];
    return 0;
}

static int asp_one(struct worker *w)
{
    float p;
    if (asp_body(w))
        return -1;
    return w->job->world > 1 ? 0 : pull_last(w, &p) || p != -ASP_STEPS ? -1 : 0;
}

// In every step the workers' pushes arrive in some order. A worker's lag is the
// number of pushes between its own in two successive steps: those after its own
// in the earlier step, and those before its own in the later one. Over all
// workers these are world*(world - 1), for any orders. In step 1 there is no
// earlier step, and they are half as many.
static void asp_has_the_expected_lag(void **state)
{
    (void)state;
    for (int world = 1; world <= WORLD; world++) {
        struct job j = {.world = world,
                        .n = 200, // one row, since every row has its own order
                        .opts = "consistency=asp",
                        .timeout_s = 20};
        struct worker w[WORLD];
        struct servers s;
        double lag = 0;
        assert_int_equal(pthread_barrier_init(&next_step, NULL,
                                              (unsigned)world),
                         0);
        run_all(&j, 1, asp_one, w, &s);
        pthread_barrier_destroy(&next_step);
        for (int r = 0; r < world; r++)
            lag += w[r].lag;
        print_message("asp, %d workers: mean lag %.3f\n", world,
                      lag / ASP_STEPS / world);
        assert_true(lag == (ASP_STEPS - 0.5) * world * (world - 1));
        // every push of every worker was an update
        struct row *row = &s.at[0]->store->rows[0];
        assert_int_equal(row->version, ASP_STEPS * world + (world == 1));
        float want = -ASP_STEPS;
        assert_true(fabsf(((float *)row->params->data)[0] - want) < 0.01f);
        servers_close(&s);
    }
}

// A worker whose gradient overflows does not push. The others go on.
static int asp_skip_body(struct worker *w)
{
    for (int step = 1; step <= 20; step++) {
        struct sync_out out;
        for (size_t i = 0; i < w->job->n; i++)
            w->sync_job.grads[i] = 1;
        bool bad = w->rank == 1 && step % 2 == 0;
        if (bad)
            w->sync_job.grads[3] = INFINITY;
        if (worker_step(w, step, &out))
            return -1;
        if (out.skipped != bad)
            return fail("step %d: skipped is %d", step, out.skipped);
    }
    return 0;
}

static void an_overflow_skips_only_its_push(void **state)
{
    (void)state;
    struct job j = {.world = 2,
                    .n = 1000,
                    .opts = "consistency=ssp:1,wire=fp16",
                    .timeout_s = 20};
    struct worker w[WORLD];
    struct servers s;
    run_all(&j, 1, asp_skip_body, w, &s);
    assert_int_equal(s.at[0]->store->rows[0].version, 30);
    servers_close(&s);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_busy_worker_is_waited_for),
        cmocka_unit_test(slow_rows_are_waited_for),
        cmocka_unit_test(ssp_bounds_the_distance_of_workers),
        cmocka_unit_test(asp_has_the_expected_lag),
        cmocka_unit_test(an_overflow_skips_only_its_push),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
