// test_squeezed.c - replicas that exchange compressed gradients pass the cases
// that every backend must pass. What is sent and what is kept add up, over all
// workers, and a resumed run has the same bits.

#include "horovod_ring/carriers.h"
#include "squeeze/squeeze.h"
#include "squeeze/squeezed.h"
#include "tests/queue_device.h"
#include "tests/sync_cases.h"

#include "base/base.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/test.h"

static const struct group_ops *const tcp[] = {&ring_tcp, NULL};
static const struct group_ops *const shm[] = {&ring_shm, NULL};

// Every compressor's messages travel whatever the wire is.
static void law(const struct sync_job *job, int rank, int world,
                enum dtype wire, uint64_t *out, uint64_t *in)
{
    struct bucket *units;
    int n = squeezed_units(job, &units);
    (void)rank;
    (void)wire;
    *out = *in = squeezed_bytes(job->settings, world, units, n);
    mem_free(units);
}

#define WAY(name, set, carrier, ...)                                           \
    static const struct fixture name = {.sync = "ring",                        \
                                        .ops = &sync_squeezed,                 \
                                        .carriers = carrier,                   \
                                        .opts = "slice_kb=1," set,             \
                                        .law = law,                            \
                                        __VA_ARGS__};
WAY(all_tcp, "squeeze=topk,density=1", tcp, .few = true)
WAY(all_shm, "squeeze=topk,density=1", shm, .shared = true)
WAY(all_staged, "squeeze=topk,density=1", tcp, .device = queue_device_open,
    .few = true)
WAY(topk, "squeeze=topk,density=0.05", tcp, .few = true)
WAY(topk_shm, "squeeze=topk,density=0.05", shm, .shared = true)
WAY(topk_tensor, "squeeze=topk,density=0.05,scope=tensor", tcp, .few = true)
WAY(topk_model, "squeeze=topk,density=0.05,scope=model", tcp, .few = true)
WAY(int8, "squeeze=int8", tcp, .few = true)
WAY(int8_shm, "squeeze=int8", shm, .shared = true)
WAY(sign, "squeeze=sign", tcp, .few = true)
WAY(sign_shm, "squeeze=sign", shm, .shared = true)
WAY(sign_tensor, "squeeze=sign,scope=tensor", tcp, .few = true)
WAY(sign_staged, "squeeze=sign", tcp, .device = queue_device_open, .few = true)

static const struct fixture *const ways[] = {&topk,        &topk_shm,
                                             &topk_tensor, &topk_model,
                                             &int8,        &int8_shm,
                                             &sign,        &sign_shm,
                                             &sign_tensor, &sign_staged};
enum { WAYS = sizeof ways / sizeof *ways };

// ---- k = n: the bits of local, as with the ring

static void all_entries_give_the_bits_of_local(void **state)
{
    (void)state;
    case_integers(&all_tcp);
    case_integers(&all_shm);
    case_integers(&all_staged);
    case_overflow(&all_tcp);
}

// ---- the same on every worker, again, and by the law

static void replicas_stay_equal(void **state)
{
    (void)state;
    for (int i = 0; i < WAYS; i++)
        case_replicas(ways[i]);
}

static void reruns_have_the_same_bits(void **state)
{
    (void)state;
    for (int i = 0; i < WAYS; i++)
        case_reruns(ways[i]);
}

static void bytes_are_those_of_the_law(void **state)
{
    (void)state;
    for (int i = 0; i < WAYS; i++)
        case_bytes(ways[i]);
}

static void faults_are_named(void **state)
{
    (void)state;
    case_missing(&topk);
    case_missing(&sign);
    case_killed(&topk);
    case_killed(&int8_shm);
    case_disagree(&sign);
    case_bcast(&int8);
}

// ---- a malformed message is refused, and its sender is named

// Rank 1 sends an index that no element has.
static int spoil(struct group *g, const struct group_op *op)
{
    char *messages = op->vector.data;
    size_t bytes = op->vector.n * sizeof(float) / (size_t)g->size;
    if (op->verb == GROUP_ALL_GATHER && g->rank == 1)
        memset(messages + bytes, 0xff, sizeof(uint32_t));
    return ring_tcp.begin(g, op);
}

static int refuses(struct worker *w)
{
    struct sync_out out;
    worker_normals(w, 1);
    if (!worker_step(w, 1, &out))
        return fail("a malformed message was taken");
    const char *want = "ring: the message of rank 1 for elements 700 to 1000: "
                       "entry 0 of 15 has index 4294967295, of 300 elements "
                       "(step 1)";
    return strcmp(fail_message(), want) ? -1 : 0;
}

static void malformed_messages_are_refused(void **state)
{
    (void)state;
    static struct group_ops spoilt;
    static const struct group_ops *const carriers[] = {&spoilt, NULL};
    struct fixture f = topk;
    struct setup s = {.world = 3, .n = 1000, .first = 300, .bucket = 300};
    spoilt = ring_tcp;
    spoilt.begin = spoil;
    f.carriers = carriers;
    assert_int_equal(world_run(&f, &s, refuses, NULL), 0);
}

// ---- state, in memory that forked workers share

enum { N = 1003, SLOTS = 2 + 1 + 2 * CASE_WORLDS };
struct kept {
    bool given[SLOTS];
    char name[SLOTS][SYNC_SLOT_NAME];
    float at[SLOTS][N], params[N], moved[N];
};
static struct kept *kept;

static int slot_named(const char *name)
{
    int i = 0;
    while (i < SLOTS && strcmp(kept->name[i], name))
        i++;
    return i;
}

struct visitor {
    struct worker *w;
};

// Slots are kept by number. A file finds them by name.
static int keep(void *ctx, int slot, size_t off, float *v, size_t n)
{
    const struct visitor *x = ctx;
    sync_slot_name(x->w->sync, slot, kept->name[slot]);
    memcpy(kept->at[slot] + off, v, n * sizeof *v);
    kept->given[slot] = true;
    return 0;
}

static int give(void *ctx, int slot, size_t off, float *v, size_t n)
{
    const struct visitor *x = ctx;
    char name[SYNC_SLOT_NAME];
    sync_slot_name(x->w->sync, slot, name);
    int i = slot_named(name);
    if (i == SLOTS || !kept->given[i])
        return SYNC_ABSENT;
    memcpy(v, kept->at[i] + off, n * sizeof *v);
    return 0;
}

// ---- sum(sent) + residuals = sum(gradients)

// The gradients of a step, and the sum that sync.c updates with: SGD with a
// rate of 1 and no momentum subtracts it from the parameters.
static int plain_sgd(struct worker *w)
{
    w->optim.momentum = 0;
    w->optim.weight_decay = 0;
    return worker_begin(w) || sync_bcast(w->sync) ? -1 : 0;
}

enum { STEPS = 5 };

static int conserves_body(struct worker *w)
{
    struct visitor x = {w};
    double *want = mem_alloc(N, sizeof *want);
    if (!want || plain_sgd(w))
        return -1;
    for (int step = 1; step <= STEPS; step++) {
        const struct sync_in in = {.step = step, .lr = 1, .grad_scale = 1};
        struct sync_out out;
        worker_summed(w, step, 50);
        for (size_t i = 0; i < N; i++)
            want[i] += (double)w->job.grads[i];
        worker_integers(w, step, 50);
        for (int b = 0; b < w->job.nbuckets; b++)
            if (worker_ready(w, b))
                return -1;
        if (sync_step(w->sync, &in, &out))
            return -1;
    }
    if (sync_save(w->sync, keep, &x) || cluster_barrier(w->cluster))
        return -1;
    bool exact = w->settings.squeeze == SQUEEZE_TOPK;
    for (size_t i = 0; i < N; i++) {
        double have = -(double)w->job.params[i];
        for (int s = 0; s < SLOTS; s++)
            have += kept->given[s] ? (double)kept->at[s][i] : 0;
        if (exact ? have != want[i] : fabs(have - want[i]) > 1e-3)
            return fail("element %zu: %.9g was sent or kept, of %.9g", i, have,
                        want[i]);
    }
    mem_free(want);
    return 0;
}

static void what_is_sent_and_kept_is_all(void **state)
{
    (void)state;
    for (int i = 0; i < WAYS; i++)
        for (int world = 1; world <= CASE_WORLDS; world++) {
            struct setup s = {.world = world,
                              .n = N,
                              .first = 1,
                              .bucket = 300,
                              .sgd = true,
                              .closed = true};
            memset(kept, 0, sizeof *kept);
            assert_int_equal(world_run(ways[i], &s, conserves_body, NULL), 0);
        }
}

static int train(struct worker *w, int from, int to)
{
    for (int step = from; step <= to; step++) {
        struct sync_out out;
        worker_normals(w, step);
        if (worker_step(w, step, &out))
            return -1;
    }
    return 0;
}

static int tiny_body(struct worker *w)
{
    if (train(w, 1, 3))
        return -1;
    w->result = hash_bytes(w->job.params, w->job.n * sizeof(float));
    return 0;
}

// Vectors so small that some workers have no part of them.
static void tiny_vectors_travel(void **state)
{
    (void)state;
    for (int i = 0; i < WAYS; i++)
        for (size_t n = 1; n <= 5; n++) {
            struct setup s = {.world = 2 + (int)(n % 3), .n = n};
            uint64_t hash[CASE_WORLDS];
            assert_int_equal(world_run(ways[i], &s, tiny_body, hash), 0);
            for (int r = 1; r < s.world; r++)
                assert_true(hash[r] == hash[0]);
        }
}

// ---- resume

static int save_body(struct worker *w)
{
    struct visitor x = {w};
    if (train(w, 1, 3) || sync_save(w->sync, keep, &x))
        return -1;
    if (w->rank == 0)
        memcpy(kept->params, w->job.params, sizeof kept->params);
    if (train(w, 4, 6))
        return -1;
    w->result = hash_bytes(w->job.params, N * sizeof(float));
    return 0;
}

static int resume_body(struct worker *w)
{
    struct visitor x = {w};
    if (w->rank == 0)
        memcpy(w->job.params, kept->params, sizeof kept->params);
    if (worker_begin(w) || sync_bcast(w->sync))
        return -1;
    sync_resume(w->sync, 3);
    if (sync_load(w->sync, give, &x) || train(w, 4, 6))
        return -1;
    w->result = hash_bytes(w->job.params, N * sizeof(float));
    return 0;
}

static void a_resumed_run_has_the_same_bits(void **state)
{
    (void)state;
    for (int i = 0; i < WAYS; i++)
        for (int world = 1; world <= CASE_WORLDS; world++) {
            uint64_t want[CASE_WORLDS], have[CASE_WORLDS];
            struct setup s = {.world = world, .n = N, .bucket = 300};
            snprintf(s.opts, sizeof s.opts, "squeeze_after=%d", 2 * (i % 3));
            memset(kept, 0, sizeof *kept);
            assert_int_equal(world_run(ways[i], &s, save_body, want), 0);
            s.closed = true;
            assert_int_equal(world_run(ways[i], &s, resume_body, have), 0);
            for (int r = 0; r < world; r++)
                assert_true(have[r] == want[r]);
        }
}

// In another world the residuals still have the same sum, times w'/w.
static int other_world_body(struct worker *w)
{
    struct visitor x = {w};
    if (worker_begin(w) || sync_bcast(w->sync) ||
        sync_load(w->sync, give, &x) || cluster_barrier(w->cluster))
        return -1;
    memset(kept->given, 0, sizeof kept->given); // all have loaded
    return cluster_barrier(w->cluster) || sync_save(w->sync, keep, &x) ? -1 : 0;
}

static double kept_sum(size_t i)
{
    double sum = 0;
    for (int s = 0; s < SLOTS; s++)
        if (kept->given[s] && !strncmp(kept->name[s], "residual", 8))
            sum += (double)kept->at[s][i];
    return sum;
}

static void another_world_divides_the_residuals(void **state)
{
    (void)state;
    static const struct fixture *const some[] = {&topk, &sign};
    static double before[N];
    for (int k = 0; k < 2; k++)
        for (int from = 1; from <= 3; from++)
            for (int to = 1; to <= CASE_WORLDS; to++) {
                struct setup s = {.world = from, .n = N, .bucket = 300};
                memset(kept, 0, sizeof *kept);
                assert_int_equal(world_run(some[k], &s, save_body, NULL), 0);
                for (size_t i = 0; i < N; i++)
                    before[i] = kept_sum(i);
                s.world = to;
                s.closed = true;
                assert_int_equal(world_run(some[k], &s, other_world_body, NULL),
                                 0);
                for (size_t i = 0; i < N; i++)
                    assert_true(fabs(kept_sum(i) - before[i] * to / from) <
                                1e-5 * (1 + fabs(before[i])));
            }
}

static int names_body(struct worker *w)
{
    static const char *const want[] = {"exp_avg", "exp_avg_sq",
                                       "residual_of_sums",
                                       "residual_of_worker_0",
                                       "residual_of_worker_1"};
    if (sync_slots(w->sync) != 5)
        return fail("%d slots", sync_slots(w->sync));
    for (int i = 0; i < 5; i++) {
        char name[SYNC_SLOT_NAME];
        sync_slot_name(w->sync, i, name);
        if (strcmp(name, want[i]))
            return fail("slot %d: %s", i, name);
    }
    return 0;
}

static int no_slots_body(struct worker *w)
{
    return sync_slots(w->sync) == 2 ? 0 : fail("%d slots", sync_slots(w->sync));
}

static void residuals_are_slots(void **state)
{
    (void)state;
    struct setup s = {.world = 2, .n = 10};
    assert_int_equal(world_run(&sign, &s, names_body, NULL), 0);
    snprintf(s.opts, sizeof s.opts, "feedback=0");
    assert_int_equal(world_run(&sign, &s, no_slots_body, NULL), 0);
}

// ---- a skipped step leaves no trace

// Two runs: one has a step with a NaN of one worker. After the same other
// steps both have the same residuals and parameters.
static int bad_step(struct worker *w)
{
    struct sync_out out;
    worker_normals(w, 50);
    if (w->rank == w->world - 1)
        w->job.grads[N / 2] = w->world % 2 ? NAN : INFINITY;
    if (worker_step(w, 2, &out))
        return -1;
    return out.skipped ? 0 : fail("not skipped");
}

static int with_or_without(struct worker *w, int (*between)(struct worker *w))
{
    struct visitor x = {w};
    if (train(w, 1, 1) || (between && between(w)))
        return -1;
    sync_resume(w->sync, 1); // so that both draw the same numbers
    if (train(w, 2, 3) || sync_save(w->sync, keep, &x) ||
        cluster_barrier(w->cluster))
        return -1;
    w->result = hash_more(hash_bytes(w->job.params, N * sizeof(float)),
                          kept->at, sizeof kept->at);
    return 0;
}

static int with_body(struct worker *w)
{
    return with_or_without(w, bad_step);
}

static int without_body(struct worker *w)
{
    return with_or_without(w, NULL);
}

static void no_residual_keeps_a_nan(void **state)
{
    (void)state;
    for (int i = 0; i < WAYS; i++)
        for (int world = 1; world <= CASE_WORLDS; world++) {
            uint64_t with[CASE_WORLDS], without[CASE_WORLDS];
            struct setup s = {.world = world, .n = N, .bucket = 300};
            memset(kept, 0, sizeof *kept);
            assert_int_equal(world_run(ways[i], &s, with_body, with), 0);
            memset(kept, 0, sizeof *kept);
            assert_int_equal(world_run(ways[i], &s, without_body, without), 0);
            assert_true(with[0] == without[0]);
        }
}

// ---- feedback=0, squeeze_after=

// Without feedback the entries that are not sent are lost, and integers stay
// integers. With squeeze_after=2 the first two steps are the ring's.
static int after_body(struct worker *w)
{
    struct worker local;
    struct sync_out out;
    int rc = oracle_open(&local, w);
    for (int step = 1; !rc && step <= 3; step++) {
        worker_integers(w, step, 50);
        worker_summed(&local, step, 50);
        rc = worker_step(w, step, &out) || worker_step(&local, step, &out);
        bool equal = !worker_equals(w, &local);
        if (!rc && equal != (step < 3))
            rc = fail("step %d is %s the ring's", step, equal ? "" : "not");
    }
    oracle_close(&local);
    return rc ? -1 : 0;
}

static void the_first_steps_are_the_rings(void **state)
{
    (void)state;
    for (int i = 0; i < WAYS; i++)
        for (int world = 1; world <= CASE_WORLDS; world++) {
            struct setup s = {.world = world,
                              .n = N,
                              .bucket = 300,
                              .opts = "squeeze_after=2"};
            assert_int_equal(world_run(ways[i], &s, after_body, NULL), 0);
        }
}

// The oracle: 5 steps without feedback, computed from the compressor alone.
static int lossy_body(struct worker *w)
{
    const struct squeeze_ops *ops = squeeze_find(w->settings.squeeze);
    float *x = mem_alloc(N, sizeof *x), *sum = mem_alloc(N, sizeof *sum);
    uint32_t *scratch = mem_alloc(N, sizeof *scratch);
    char *message = mem_alloc(ops->bytes(&w->settings, N), 1);
    struct sync_out out;
    CHECK(x && sum && scratch && message);
    worker_integers(w, 1, 50);
    memcpy(x, w->job.grads, N * sizeof *x);
    ops->encode(&w->settings, 1, x, N, message, scratch);
    if (ops->add(&w->settings, message, N, sum) || worker_step(w, 1, &out))
        return -1;
    for (size_t i = 0; i < N; i++)
        if (w->job.grads[i] != sum[i])
            return fail("element %zu: %g, want %g", i, (double)w->job.grads[i],
                        (double)sum[i]);
    mem_free(x);
    mem_free(sum);
    mem_free(scratch);
    mem_free(message);
    return 0;
}

static void without_feedback_the_rest_is_lost(void **state)
{
    (void)state;
    struct setup s = {.world = 1, .n = N, .bucket = N, .opts = "feedback=0"};
    assert_int_equal(world_run(&topk, &s, lossy_body, NULL), 0);
    assert_int_equal(world_run(&topk_shm, &s, lossy_body, NULL), 0);
}

// ---- scope

static void units_are_cut_by_scope(void **state)
{
    (void)state;
    static struct optim_config optim = {.ndecay = 2,
                                        .decay = {{.off = 10, .n = 20},
                                                  {.off = 30, .n = 5}}};
    const struct bucket buckets[] = {{20, 20}, {0, 20}};
    struct sync_settings set = {.scope = SCOPE_BUCKET};
    const struct sync_job job = {.n = 40,
                                 .buckets = buckets,
                                 .nbuckets = 2,
                                 .optim = &optim,
                                 .settings = &set};
    static const struct bucket tensors[] = {{35, 5},
                                            {30, 5},
                                            {10, 20},
                                            {0, 10}};
    static const struct bucket whole[] = {{0, 40}};
    const struct bucket *want[] = {buckets, tensors, whole};
    const int counts[] = {2, 4, 1};
    for (int i = 0; i < 3; i++) {
        struct bucket *units;
        set.scope = (enum squeeze_scope)i;
        assert_int_equal(squeezed_units(&job, &units), counts[i]);
        assert_memory_equal(units, want[i], (size_t)counts[i] * sizeof *units);
        mem_free(units);
    }
}

static int share_pages(void **state)
{
    (void)state;
    kept = mmap(NULL, sizeof *kept, PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return kept == MAP_FAILED;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_entries_give_the_bits_of_local),
        cmocka_unit_test(replicas_stay_equal),
        cmocka_unit_test(reruns_have_the_same_bits),
        cmocka_unit_test(bytes_are_those_of_the_law),
        cmocka_unit_test(faults_are_named),
        cmocka_unit_test(malformed_messages_are_refused),
        cmocka_unit_test(what_is_sent_and_kept_is_all),
        cmocka_unit_test(tiny_vectors_travel),
        cmocka_unit_test(a_resumed_run_has_the_same_bits),
        cmocka_unit_test(another_world_divides_the_residuals),
        cmocka_unit_test(residuals_are_slots),
        cmocka_unit_test(no_residual_keeps_a_nan),
        cmocka_unit_test(the_first_steps_are_the_rings),
        cmocka_unit_test(without_feedback_the_rest_is_lost),
        cmocka_unit_test(units_are_cut_by_scope),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, share_pages, NULL);
}
