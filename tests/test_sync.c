// test_sync.c - the functions of sync.h, buckets, the update, and the strategy
// `local`, with which tests compare the others.

#include "sync/bucket.h"
#include "sync/local.h"
#include "sync/replicas.h"

#include "base/base.h"
#include "base/rng.h"
#include "cluster/cluster.h"
#include "device/device.h"
#include "optim/optim.h"

#include <math.h>
#include <omp.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/settings.h"
#include "tests/slot_copies.h"
#include "tests/test.h"

enum { MAX_BUCKETS = 64 };

// A worker with a cluster, a device and vectors of its own.
struct worker {
    struct cluster *cluster;
    struct device *dev;
    struct sync_settings settings;
    struct optim_config optim;
    struct bucket buckets[MAX_BUCKETS];
    struct sync_job job;
    struct sync *sync;
};

static int worker_open(struct worker *w, size_t n, const char *text)
{
    *w = (struct worker){
        .optim = {.kind = OPTIM_ADAMW,
                  .beta1 = 0.9f,
                  .beta2 = 0.99f,
                  .eps = 1e-8f,
                  .weight_decay = 0.1f,
                  .ndecay = 1,
                  .decay = {{.off = n / 3, .n = n / 3}}},
    };
    struct cluster_config cc = {.world = 1, .timeout_s = 5};
    assert_int_equal(cluster_open(&w->cluster, &cluster_local, &cc), 0);
    assert_int_equal(device_open(&w->dev, "cpu"), 0);
    int nb = bucket_cut(w->buckets, MAX_BUCKETS, n, n / 8 + 1, n / 4 + 1);
    assert_true(nb > 0);
    w->job = (struct sync_job){
        .backend = backend_find("local"),
        .cluster = w->cluster,
        .dev = w->dev,
        .params = device_alloc(w->dev, n, sizeof(float)),
        .grads = device_alloc(w->dev, n, sizeof(float)),
        .n = n,
        .buckets = w->buckets,
        .nbuckets = nb,
        .optim = &w->optim,
        .settings = &w->settings,
    };
    if (settings_text(&w->settings, text, "local", 1, n))
        return -1;
    w->sync = sync_open(&sync_local, &w->job);
    return w->sync ? 0 : -1;
}

static void worker_close(struct worker *w)
{
    sync_close(&w->sync);
    device_free(w->dev, w->job.params);
    device_free(w->dev, w->job.grads);
    device_close(&w->dev);
    cluster_close(&w->cluster);
}

static int worker_step(struct worker *w, int step, struct sync_out *out)
{
    for (int b = 0; b < w->job.nbuckets; b++)
        assert_int_equal(sync_ready(w->sync, b), 0);
    struct sync_in in = {.step = step,
                         .lr = 0.01f,
                         .grad_scale = 0.5f,
                         .clip = 1};
    return sync_step(w->sync, &in, out);
}

static void fill(struct worker *w, int step)
{
    for (size_t i = 0; i < w->job.n; i++)
        w->job.grads[i] = (float)rng_normal((uint64_t)step, i);
}

static void buckets_tile(void **state)
{
    (void)state;
    struct bucket b[MAX_BUCKETS];
    for (size_t n = 1; n < 2000; n = n * 2 + 3) {
        for (size_t size = n / 20 + 1; size <= n + 5; size = size * 2 + 1) {
            int count = bucket_cut(b, MAX_BUCKETS, n, size / 2 + 1, size);
            assert_true(count > 0);
            size_t end = n;
            for (int i = 0; i < count; i++) {
                assert_int_equal(b[i].off + b[i].n, end);
                assert_true(b[i].n <= (i ? size : size / 2 + 1));
                end = b[i].off;
            }
            assert_int_equal(end, 0);
        }
    }
    const size_t mib = 1048576 / sizeof(float);
    assert_int_equal(bucket_usual(1000, 0), mib);
    assert_int_equal(bucket_usual(1000, 4), mib);
    assert_int_equal(bucket_usual(1000, 6), mib + mib / 2);
    assert_int_equal(bucket_usual(400 * mib, 6), 10 * mib);
    assert_int_equal(bucket_usual(4000 * mib, 0), 25 * mib);
    assert_int_equal(bucket_usual(4000 * mib, 200), 50 * mib);
    assert_int_equal(bucket_first(3 * mib, 2 * mib), mib);
    assert_int_equal(bucket_first(3 * mib, 1000), 1000);
    assert_int_equal(bucket_first(3 * mib, 4 * mib), 3 * mib);
    assert_int_equal(bucket_cut(b, 3, 100, 10, 10), -1);
    assert_non_null(strstr(fail_message(), "more than 3 buckets"));
}

static void borders_of_buckets_are_aligned(void **state)
{
    (void)state;
    const struct bucket b[] = {{91, 9}, {70, 21}, {68, 2}, {5, 63}, {0, 5}};
    struct bucket *a;
    assert_int_equal(bucket_align(&a, b, 5, 10), 3);
    assert_true(a[0].off == 70 && a[0].n == 30); // of {70, 21} and {91, 9}
    assert_true(a[1].off == 10 && a[1].n == 60);
    assert_true(a[2].off == 0 && a[2].n == 10);
    mem_free(a);
    assert_int_equal(bucket_align(&a, b, 5, 1), 5);
    assert_memory_equal(a, b, sizeof b);
    mem_free(a);
}

// An update has the same bits with any number of threads, also at the ends of
// blocks.
static void buckets_grow_with_a_ring(void **state)
{
    (void)state;
    static const struct {
        const char *sync, *text;
        double mb;
    } cases[] = {
        {"ring", "", 1.5},
        {"zero", "", 1.5},
        {"ring", "bucket_mb=0.05", 0.05},
        {"ring", "squeeze=topk", 1},
        {"allreduce", "", 1},
        {"dps", "", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sync_settings s;
        assert_int_equal(settings_text(&s, cases[i].text, cases[i].sync, 6,
                                       1000),
                         0);
        assert_true(s.bucket_mb == cases[i].mb);
    }
}

static void update_ignores_threads(void **state)
{
    (void)state;
    const size_t n = 300001;
    struct worker one, many;
    assert_int_equal(worker_open(&one, n, ""), 0);
    assert_int_equal(worker_open(&many, n, ""), 0);
    for (int step = 1; step <= 3; step++) {
        struct sync_out a, b;
        fill(&one, step);
        fill(&many, step);
        omp_set_num_threads(1);
        assert_int_equal(worker_step(&one, step, &a), 0);
        omp_set_num_threads(3);
        assert_int_equal(worker_step(&many, step, &b), 0);
        assert_true(a.grad_norm == b.grad_norm && a.grad_norm > 1);
        assert_memory_equal(one.job.params, many.job.params, n * 4);
    }
    worker_close(&one);
    worker_close(&many);
}

static void overflow_skips(void **state)
{
    (void)state;
    struct worker w;
    struct sync_out out;
    assert_int_equal(worker_open(&w, 1000, ""), 0);
    fill(&w, 1);
    w.job.grads[999] = INFINITY;
    assert_int_equal(worker_step(&w, 1, &out), 0);
    assert_true(out.skipped);
    for (size_t i = 0; i < w.job.n; i++)
        assert_true(w.job.params[i] == 0);
    fill(&w, 1);
    assert_int_equal(worker_step(&w, 1, &out), 0);
    assert_false(out.skipped);
    assert_true(w.job.params[0] != 0);
    worker_close(&w);
}

static void state_moves(void **state)
{
    (void)state;
    enum { N = 5000 };
    struct worker a, b;
    struct sync_out out;
    static float m[N], v[N];
    assert_int_equal(worker_open(&a, N, ""), 0);
    assert_int_equal(worker_open(&b, N, ""), 0);
    fill(&a, 1);
    assert_int_equal(worker_step(&a, 1, &out), 0);
    float *slots[] = {m, v};
    assert_int_equal(sync_save(a.sync, copy_slot_out, slots), 0);
    assert_int_equal(sync_load(b.sync, copy_slot_in, slots), 0);
    memcpy(b.job.params, a.job.params, N * 4);
    fill(&a, 2);
    fill(&b, 2);
    assert_int_equal(worker_step(&a, 2, &out), 0);
    assert_int_equal(worker_step(&b, 2, &out), 0);
    assert_memory_equal(a.job.params, b.job.params, N * 4);
    worker_close(&a);
    worker_close(&b);
}

static void faults(void **state)
{
    (void)state;
    struct worker w;
    struct sync_out out;
    assert_int_equal(worker_open(&w, 100, "inject=fail:2"), 0);
    assert_int_equal(worker_step(&w, 1, &out), 0);
    assert_int_equal(worker_step(&w, 2, &out), -1);
    assert_non_null(strstr(fail_message(), "step 2"));
    worker_close(&w);

    assert_int_equal(worker_open(&w, 100, "inject=delay:1:30"), 0);
    uint64_t start = now_ns();
    assert_int_equal(worker_step(&w, 1, &out), 0);
    assert_true(now_ns() - start >= 30000000u);
    worker_close(&w);

    assert_int_equal(worker_open(&w, 100, "inject=nan:1"), 0);
    assert_int_equal(worker_step(&w, 1, &out), 0);
    assert_true(out.skipped);
    worker_close(&w);

    assert_int_equal(worker_open(&w, 100, "inject=explode:1"), -1);
    assert_non_null(strstr(fail_message(), "explode"));
    worker_close(&w);
    assert_int_equal(worker_open(&w, 100, "inject=delay:1"), -1);
    worker_close(&w);

    pid_t child = fork();
    if (child == 0) {
        assert_int_equal(worker_open(&w, 100, "inject=kill:1"), 0);
        worker_step(&w, 1, &out);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void stragglers(void **state)
{
    (void)state;
    struct worker w;
    struct sync_out out;
    assert_int_equal(worker_open(&w, 100, ""), 0);
    w.sync->job.slowdown = 3;
    assert_int_equal(sync_bcast(w.sync), 0);
    uint64_t start = now_ns();
    usleep(20000); // the worker computes
    assert_int_equal(worker_step(&w, 1, &out), 0);
    assert_true(now_ns() - start >= 60000000u);
    assert_true(out.slowed_ended_ns - out.slowed_began_ns >= 40000000u);
    assert_true(out.slowed_ended_ns <= out.update_began_ns);
    w.sync->job.slowdown = 1;
    assert_int_equal(worker_step(&w, 2, &out), 0);
    assert_true(out.slowed_began_ns == 0 && out.slowed_ended_ns == 0);
    worker_close(&w);
}

// An allgather in which every worker sends the same as this one.
static int echo(struct cluster *c, const void *in, void *out, size_t bytes)
{
    for (int r = 0; r < c->world; r++)
        memcpy((char *)out + (size_t)r * bytes, in, bytes);
    return 0;
}

static void local_is_alone(void **state)
{
    (void)state;
    static const struct cluster_ops echoing = {.allgather = echo};
    struct worker w;
    assert_int_equal(worker_open(&w, 100, ""), 0);
    sync_close(&w.sync);
    struct cluster two = *w.cluster;
    two.ops = &echoing;
    two.world = 2;
    w.job.cluster = &two;
    w.sync = sync_open(&sync_local, &w.job);
    assert_null(w.sync);
    assert_non_null(strstr(fail_message(), "one worker"));
    worker_close(&w);
}

// A single worker exchanges nothing, so it needs no copies on the host.
static void alone_on_a_gpu(void **state)
{
    (void)state;
    static const struct group_ops device = {.name = "device",
                                            .on_device = true,
                                            .state_size = 1},
                                  host = {.name = "host", .state_size = 1};
    const struct group_ops *const carriers[] = {&device, &host, NULL};
    for (int gpu = 0; gpu < 2; gpu++) {
        struct worker w;
        assert_int_equal(worker_open(&w, 100, ""), 0);
        sync_close(&w.sync);
        struct device_ops ops = *w.dev->ops;
        struct device dev = {.ops = &ops, .state = w.dev->state};
        ops.host = !gpu;
        w.job.dev = &dev;
        w.job.carriers = carriers;
        w.job.backend = backend_find("ring");
        w.sync = sync_open(&sync_replicas, &w.job);
        assert_non_null(w.sync);
        assert_ptr_equal(w.sync->carrier, gpu ? &device : &host);
        assert_null(w.sync->copies);
        assert_null(w.sync->transport);
        sync_close(&w.sync);
        w.job.dev = w.dev;
        worker_close(&w);
    }
}

static void settings_agree(void **state)
{
    (void)state;
    struct cluster *c;
    struct cluster_config cc = {.world = 1, .timeout_s = 5};
    assert_int_equal(cluster_open(&c, &cluster_local, &cc), 0);
    assert_int_equal(cluster_check_same(c, "a=1\nb=2\n"), 0);
    double v[2] = {1, 2};
    assert_int_equal(cluster_sum(c, v, 2), 0);
    assert_true(v[0] == 1 && v[1] == 2);
    assert_int_equal(cluster_barrier(c), 0);
    cluster_close(&c);
    cc.world = 2;
    assert_int_equal(cluster_open(&c, &cluster_local, &cc), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buckets_tile),
        cmocka_unit_test(borders_of_buckets_are_aligned),
        cmocka_unit_test(buckets_grow_with_a_ring),
        cmocka_unit_test(update_ignores_threads),
        cmocka_unit_test(overflow_skips),
        cmocka_unit_test(state_moves),
        cmocka_unit_test(faults),
        cmocka_unit_test(stragglers),
        cmocka_unit_test(local_is_alone),
        cmocka_unit_test(alone_on_a_gpu),
        cmocka_unit_test(settings_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
