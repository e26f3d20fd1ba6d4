// test_zero_squeeze.c - ZeRO with compressed gradients, on vectors so long that
// each of four workers owns a part: sums of exact messages are exact, nothing
// is lost, the residuals go to the ring and back, and a malformed message is
// refused. (test_squeezed.c and test_squeeze_state.c have the cases of all ways
// to compress.)

#include "tests/squeeze_ways.h"

#include "base/base.h"
#include "base/rng.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/test.h"

// A multiple of int8's blocks, so that each of them is full.
enum { N = 13 * RULE_BLOCK - 5 * 128, STEPS = 4 };

static struct setup large(int world)
{
    return (struct setup){.world = world,
                          .n = N,
                          .first = RULE_BLOCK + 1,
                          .bucket = 9 * RULE_BLOCK / 2};
}

// ---- messages that have all bits: the sum is that of the gradients

// Elements are 8, -8 and 0. With int8, 64 of the 128 of a block are not 0: the
// block's length is 64, and with levels=64 its unit is 1. With sign, all have
// the mean size.
static void exact(const struct worker *w, int rank, int step, float *g)
{
    uint64_t key = rng_key((uint64_t)step, (uint64_t)rank);
    bool none_is_0 = w->settings.squeeze == SQUEEZE_SIGN;
    for (size_t i = 0; i < N; i++) {
        float size = none_is_0 || i % 2 ? 8 : 0;
        g[i] = rng_below(key, i, 2) ? size : -size;
    }
}

static int exact_body(struct worker *w)
{
    struct worker local;
    float *one = mem_alloc(N, sizeof *one);
    int rc = !one || oracle_open(&local, w);
    for (int step = 1; !rc && step <= STEPS; step++) {
        struct sync_out out;
        memset(local.job.grads, 0, N * sizeof *one);
        for (int r = 0; r < w->world; r++) {
            exact(w, r, step, one);
            for (size_t i = 0; i < N; i++)
                local.job.grads[i] += one[i];
        }
        exact(w, w->rank, step, w->job.grads);
        rc = worker_step(w, step, &out) || worker_step(&local, step, &out) ||
             worker_equals(w, &local);
    }
    oracle_close(&local);
    mem_free(one);
    return rc ? -1 : 0;
}

// A ring would compress the sum again, and lose some of it.
static void exact_messages_have_exact_sums(void **state)
{
    (void)state;
    struct fixture late = int8_zero; // parameters arrive after the step
    late.awaits = true;
    for (int world = 1; world <= CASE_WORLDS; world++) {
        struct setup s = large(world);
        assert_int_equal(world_run(&sign_zero, &s, exact_body, NULL), 0);
        assert_int_equal(world_run(&sign_zero_staged, &s, exact_body, NULL), 0);
        assert_int_equal(world_run(&sign_blocks, &s, exact_body, NULL), 0);
        assert_int_equal(world_run(&sign_blocks_staged, &s, exact_body, NULL),
                         0);
        snprintf(s.opts, sizeof s.opts, "levels=64");
        assert_int_equal(world_run(&int8_zero, &s, exact_body, NULL), 0);
        assert_int_equal(world_run(&lossy_zero, &s, exact_body, NULL), 0);
        assert_int_equal(world_run(&int8_blocks, &s, exact_body, NULL), 0);
        assert_int_equal(world_run(&late, &s, exact_body, NULL), 0);
    }
}

// ---- the same on every worker, and in every order of arrival

static void runs_have_the_same_bits(void **state)
{
    (void)state;
    case_replicas(&topk_zero);
    case_replicas(&sign_zero_staged);
    case_reruns(&int8_zero);
    case_reruns(&sign_zero);
    case_replicas(&topk_blocks);
    case_reruns(&int8_blocks);
    case_bytes(&int8_blocks);
    case_bytes(&topk_zero);
    case_bytes(&sign_zero_staged);
}

// ---- micro-batches, each of which shard=2 sends

static int micro; // micro-batches of the step, all with the same gradients
static float (*moved)[N]; // what the parameters lose, by `micro` - 1

static int micro_body(struct worker *w)
{
    const struct sync_in in = {.step = 1, .lr = 1, .grad_scale = 1};
    struct sync_out out;
    w->optim.momentum = w->optim.weight_decay = 0;
    if (worker_begin(w) || sync_bcast(w->sync))
        return -1;
    for (int m = 0; m < micro; m++) {
        worker_normals(w, 1);
        for (int b = 0; b < w->job.nbuckets; b++)
            if (worker_ready(w, b))
                return -1;
    }
    if (sync_step(w->sync, &in, &out) || worker_await(w))
        return -1;
    if (w->rank == 0)
        memcpy(moved[micro - 1], w->job.params, sizeof *moved);
    return 0;
}

// The second is rounded by other draws than the first, so errors do not repeat.
static void micro_batches_have_their_own_draws(void **state)
{
    (void)state;
    struct setup s = large(2);
    int same = 0;
    s.sgd = s.closed = true;
    moved = mmap(NULL, 2 * sizeof *moved, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(moved != MAP_FAILED);
    for (micro = 1; micro <= 2; micro++)
        assert_int_equal(world_run(&int8_blocks, &s, micro_body, NULL), 0);
    for (size_t i = 0; i < N; i++) {
        float unlike = moved[1][i] - 2 * moved[0][i];
        assert_true(fabsf(unlike) < 0.5f); // a unit is about 0.09
        same += fabsf(unlike) < 1e-6f;
    }
    assert_in_range(same, N / 20, N / 2);
    munmap(moved, 2 * sizeof *moved);
}

// ---- what is sent, and what workers keep

// Of forked workers.
struct kept {
    int world; // that has saved
    float residual[CASE_WORLDS][N];
};
static struct kept *kept;

// The worker whose residual a slot is; -1: it is none.
static int owner(const struct worker *w, int slot)
{
    char name[SYNC_SLOT_NAME];
    int rank;
    sync_slot_name(w->sync, slot, name);
    return sscanf(name, "residual_of_worker_%d", &rank) == 1 ? rank : -1;
}

static int keep(void *ctx, int slot, size_t off, float *v, size_t n)
{
    int rank = owner(ctx, slot);
    if (rank >= 0)
        memcpy(kept->residual[rank] + off, v, n * sizeof *v);
    return 0;
}

static int give(void *ctx, int slot, size_t off, float *v, size_t n)
{
    const struct worker *w = ctx;
    int rank = owner(w, slot);
    if (rank >= kept->world)
        return SYNC_ABSENT;
    if (rank >= 0)
        memcpy(v, kept->residual[rank] + off, n * sizeof *v);
    return 0;
}

// SGD with a rate of 1 and no momentum subtracts what arrives.
static int open_sgd(struct worker *w)
{
    w->optim.momentum = w->optim.weight_decay = 0;
    w->job.velocity_decay = 0;
    return worker_begin(w) || sync_bcast(w->sync) ? -1 : 0;
}

static int conserves_body(struct worker *w)
{
    double *want = mem_alloc(N, sizeof *want);
    bool whole = w->settings.squeeze == SQUEEZE_TOPK;
    if (!want || open_sgd(w))
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
        if (sync_step(w->sync, &in, &out) || worker_await(w))
            return -1;
    }
    if (sync_save(w->sync, keep, w) || cluster_barrier(w->cluster))
        return -1;
    for (size_t i = 0; i < N; i++) {
        double have = -(double)w->job.params[i];
        for (int r = 0; r < w->world; r++)
            have += (double)kept->residual[r][i];
        if (whole ? have != want[i] : fabs(have - want[i]) > 1e-3)
            return fail("element %zu: %.9g was sent or kept, of %.9g", i, have,
                        want[i]);
    }
    mem_free(want);
    return 0;
}

static void what_is_sent_and_kept_is_all(void **state)
{
    (void)state;
    static const struct fixture *const some[] = {&topk_zero, &int8_zero,
                                                 &sign_zero, &sign_zero_staged,
                                                 &moving_zero};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++)
        for (int world = 1; world <= CASE_WORLDS; world++) {
            struct setup s = large(world);
            s.sgd = s.closed = true;
            memset(kept, 0, sizeof *kept);
            assert_int_equal(world_run(some[i], &s, conserves_body, NULL), 0);
        }
}

// ---- the ring and zero have each other's residuals

static int fill_body(struct worker *w)
{
    struct sync_out out;
    worker_normals(w, 1);
    kept->world = w->world;
    return worker_step(w, 1, &out) || sync_save(w->sync, keep, w) ? -1 : 0;
}

// Loads, forgets what was saved, and saves again.
static int pass_on_body(struct worker *w)
{
    if (sync_load(w->sync, give, w) || cluster_barrier(w->cluster))
        return -1;
    if (w->rank == 0)
        memset(kept->residual, 0, sizeof kept->residual);
    return cluster_barrier(w->cluster) || sync_save(w->sync, keep, w) ? -1 : 0;
}

static void residuals_go_to_the_ring_and_back(void **state)
{
    (void)state;
    static const struct fixture *const from[] = {&topk, &sign, &topk_zero,
                                                 &sign_zero};
    static const struct fixture *const to[] = {&topk_zero, &sign_zero, &topk,
                                               &sign};
    static float before[CASE_WORLDS][N];
    for (int i = 0; i < 4; i++) {
        struct setup s = large(3);
        memset(kept, 0, sizeof *kept);
        assert_int_equal(world_run(from[i], &s, fill_body, NULL), 0);
        memcpy(before, kept->residual, sizeof before);
        assert_int_equal(world_run(to[i], &s, pass_on_body, NULL), 0);
        assert_memory_equal(before, kept->residual, sizeof before);
        assert_true(before[2][N - 1] != 0 || before[2][N - 2] != 0);
    }
}

// In a world of two after one of three, worker 0 takes two residuals, and all
// are multiplied by 2/3.
static void another_world_divides_the_residuals(void **state)
{
    (void)state;
    static float before[CASE_WORLDS][N];
    struct setup s = large(3);
    assert_int_equal(world_run(&sign_zero, &s, fill_body, NULL), 0);
    memcpy(before, kept->residual, sizeof before);
    s.world = 2;
    assert_int_equal(world_run(&sign_zero, &s, pass_on_body, NULL), 0);
    for (size_t i = 0; i < N; i++) {
        float two = before[0][i] + before[2][i], third = 2.0f / 3;
        assert_true(kept->residual[0][i] == two * third);
        assert_true(kept->residual[1][i] == before[1][i] * third);
    }
}

static int names_body(struct worker *w)
{
    static const char *const want[] = {"exp_avg", "exp_avg_sq",
                                       "residual_of_worker_0",
                                       "residual_of_worker_1"};
    return worker_has_slots(w, want, 4);
}

static void residuals_are_slots(void **state)
{
    (void)state;
    struct setup s = {.world = 2, .n = 10};
    assert_int_equal(world_run(&sign_zero, &s, names_body, NULL), 0);
}

// ---- malformed messages

// Rank 1 gives rank 2 an index that no element has.
static int spoil(struct group *g, const struct group_op *op)
{
    if (op->verb == GROUP_ALL_TO_ALL && g->rank == 1) {
        size_t each = op->given.lengths[0] * sizeof(float);
        memset((char *)op->given.data + 2 * each, 0xff, sizeof(uint32_t));
    }
    return ring_tcp.begin(g, op);
}

static int refuses(struct worker *w)
{
    static const char want[] =
        "zero: the message of rank 1 for elements 32768 to 49152: entry 0 of";
    struct sync_out out;
    worker_normals(w, 1);
    if (!worker_step(w, 1, &out))
        return fail("a malformed message was taken");
    return w->rank == 2 && !strstr(fail_message(), want) ? -1 : 0;
}

static void malformed_messages_are_refused(void **state)
{
    (void)state;
    static struct group_ops spoilt;
    static const struct group_ops *const carriers[] = {&spoilt, NULL};
    struct fixture f = topk_zero;
    struct setup s = large(3);
    spoilt = ring_tcp;
    spoilt.begin = spoil;
    f.carriers = carriers;
    assert_int_equal(world_run(&f, &s, refuses, NULL), 0);
}

static int share_pages(void **state)
{
    (void)state;
    kept = mmap(NULL, sizeof *kept, PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return kept == MAP_FAILED ? -1 : 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_messages_have_exact_sums),
        cmocka_unit_test(runs_have_the_same_bits),
        cmocka_unit_test(micro_batches_have_their_own_draws),
        cmocka_unit_test(what_is_sent_and_kept_is_all),
        cmocka_unit_test(residuals_go_to_the_ring_and_back),
        cmocka_unit_test(another_world_divides_the_residuals),
        cmocka_unit_test(residuals_are_slots),
        cmocka_unit_test(malformed_messages_are_refused),
    };
    return cmocka_run_group_tests(tests, share_pages, NULL);
}
