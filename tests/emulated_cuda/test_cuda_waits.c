// test_cuda_waits.c - in a step the host waits for three results: the loss, the
// sum over all workers and the norm. Each time, the work that follows is
// already queued.
//
// The emulated GPU works only when the host waits, and then only up to the
// event that the host waits for. So the commands that are left show what the
// host has waited for. (A real GPU continues by itself, so this cannot be
// tested there.) The test also checks that the host blocks in its waits and
// does not poll.

#include "base/base.h"
#include "cluster/cluster.h"
#include "config/backends.h"
#include "config/config.h"
#include "device/device.h"
#include "model/model.h"
#include "optim/rule.h"
#include "sync/bucket.h"
#include "sync/sync.h"
#include "tests/emulated_cuda/runtime.h"

#include <math.h>

#include "tests/test.h"

enum { BATCH = 2, TOKENS = 16, VOCAB = 20, LAYERS = 2, MOST = 100000 };

static struct optim_config adamw = {.kind = OPTIM_ADAMW,
                                    .beta1 = 0.9f,
                                    .beta2 = 0.95f,
                                    .eps = 1e-8f};

struct side {
    struct model_job job;
    struct model *model;
    size_t n;
    int32_t x[BATCH * TOKENS], y[BATCH * TOKENS];
};

static void side_open(struct side *s, int spared)
{
    *s = (struct side){.job = {.config = {LAYERS, 2, 32, TOKENS, VOCAB, 0, {0}},
                               .batch = BATCH,
                               .tokens = TOKENS,
                               .spared = spared,
                               .train = true}};
    struct model_job *job = &s->job;
    s->n = model_nparams(&job->config);
    float *init = mem_alloc(s->n, sizeof *init);
    assert_non_null(init);
    assert_int_equal(device_open(&job->dev, "cuda"), 0);
    job->params = device_alloc(job->dev, s->n, sizeof(float));
    job->grads = device_alloc(job->dev, s->n, sizeof(float));
    model_init(&job->config, 1, init);
    device_copy(job->dev, job->params, init, s->n * sizeof *init);
    mem_free(init);
    assert_int_equal(model_open(&s->model, job), 0);
    for (int i = 0; i < BATCH * TOKENS; i++)
        s->x[i] = i % VOCAB, s->y[i] = (i + 1) % VOCAB;
}

static void side_close(struct side *s)
{
    model_close(&s->model);
    device_free(s->job.dev, s->job.params);
    device_free(s->job.dev, s->job.grads);
    device_close(&s->job.dev);
}

// The number of commands in the compute queue that are not done yet.
static int left(struct device *d)
{
    struct device_event e;
    bool reached = false;
    int n = 0;
    assert_int_equal(device_event_open(d, &e), 0);
    device_record(d, &e, DEVICE_COMPUTE);
    for (; !reached && n < MOST; n++) // each query does one command
        reached = device_reached(d, &e);
    device_event_close(d, &e);
    assert_true(reached);
    return n - 1; // the event is a command, too
}

static void later_work_is_queued_before_each_wait(void **state)
{
    (void)state;
    struct side s;
    struct rule rule = {0};
    float loss, norm;
    side_open(&s, 0);
    struct device *dev = s.job.dev;
    assert_int_equal(rule_open(&rule, dev, &adamw, s.n, NULL), 0);
    int spins = emulated_cuda_spins();
    for (int step = 0; step < 2; step++) {
        struct model_step m = {.x = s.x, .y = s.y, .step = step, .scale = 1};
        struct rule_in in = {.step = step + 1, .lr = 1e-3f, .scale = 1};
        assert_int_equal(model_train(s.model, &m, &loss), 0);
        assert_true(fabsf(loss - logf(VOCAB)) < 1);
        assert_true(left(dev) > 8 * LAYERS); // backward's kernels
        assert_int_equal(rule_step(&rule, s.job.params, s.job.grads, &in,
                                   &norm),
                         0);
        assert_true(norm > 0);
        assert_true(left(dev) > 0); // the update
        assert_int_equal(emulated_cuda_spins(), spins);
    }
    rule_close(&rule);
    side_close(&s);
}

// ---- a sum on the device, by a strategy that only records its calls

static struct {
    int followed, settled, kernels;
    bool fails;
} seen;

static int nothing(struct sync *s)
{
    (void)s;
    return 0;
}

static int no_broadcast(struct sync *s, int slot, float *v)
{
    (void)slot;
    (void)v;
    return nothing(s);
}

static int no_step(struct sync *s, const struct sync_in *in,
                   struct sync_out *out)
{
    (void)in;
    (void)out;
    return nothing(s);
}

static int follow(struct sync *s)
{
    assert_int_equal(left(s->job.dev), 0); // the update is not queued yet
    seen.followed++;
    return 0;
}

static int settle(struct sync *s)
{
    seen.settled++;
    seen.kernels = left(s->job.dev);
    return seen.fails ? fail("nobody comes") : 0;
}

static void the_update_is_queued_behind_the_sum(void **state)
{
    (void)state;
    static const struct sync_ops ops = {.state_size = 1,
                                        .open = nothing,
                                        .broadcast = no_broadcast,
                                        .step = no_step,
                                        .follow = follow,
                                        .settle = settle};
    static const struct group_ops carrier = {.name = "watched",
                                             .on_device = true};
    static const struct group_ops *const carriers[] = {&carrier, NULL};
    struct cluster_config alone = {.world = 1, .timeout_s = 5};
    struct sync_settings settings;
    struct bucket all;
    struct sync_out out;
    struct side side;
    struct cluster *cluster;
    side_open(&side, 0);
    settings_defaults(&settings);
    assert_int_equal(cluster_open(&cluster, &cluster_local, &alone), 0);
    assert_int_equal(bucket_cut(&all, 1, side.n, side.n, side.n), 1);
    struct sync_job job = {.backend = backend_find("allreduce"),
                           .carriers = carriers,
                           .cluster = cluster,
                           .dev = side.job.dev,
                           .params = side.job.params,
                           .grads = side.job.grads,
                           .n = side.n,
                           .buckets = &all,
                           .nbuckets = 1,
                           .optim = &adamw,
                           .settings = &settings};
    struct sync *s = sync_open(&ops, &job);
    assert_non_null(s);
    for (int step = 1; step <= 2; step++) {
        struct sync_in in = {.step = step, .lr = 1e-3f, .grad_scale = 1};
        uint64_t began = now_ns();
        seen.fails = step == 2;
        assert_int_equal(sync_ready(s, 0), 0);
        assert_int_equal(sync_step(s, &in, &out), seen.fails ? -1 : 0);
        assert_true(seen.followed == step && seen.settled == step);
        assert_true(seen.kernels > 3); // squares, decision, update ..
        assert_true(out.update_began_ns > began);
    }
    sync_close(&s);
    cluster_close(&cluster);
    side_close(&side);
}

// ---- products at the same time as collectives

static void count_reports(void *ctx, size_t off)
{
    (void)off;
    ++*(int *)ctx;
}

// The emulated GPU has four multiprocessors. The last product of backward is
// layer 0's. In steps with a watermark it leaves one multiprocessor to
// collectives; in the others it uses all of them.
static void products_leave_multiprocessors_to_collectives(void **state)
{
    (void)state;
    struct side s;
    side_open(&s, 1);
    for (int step = 0; step < 4; step++) {
        int reports = 0;
        float loss;
        struct model_step m = {.x = s.x,
                               .y = s.y,
                               .step = step,
                               .scale = 1,
                               .watermark = step % 2 ? count_reports : NULL,
                               .ctx = &reports};
        assert_int_equal(model_train(s.model, &m, &loss), 0);
        device_finish(s.job.dev);
        assert_int_equal(reports > 0, step % 2);
        assert_int_equal(emulated_cuda_target(), step % 2 ? 3 : 0);
        assert_int_equal(model_eval(s.model, s.x, s.y, BATCH, &loss), 0);
        assert_int_equal(emulated_cuda_target(), 0);
    }
    side_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(later_work_is_queued_before_each_wait),
        cmocka_unit_test(the_update_is_queued_behind_the_sum),
        cmocka_unit_test(products_leave_multiprocessors_to_collectives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
