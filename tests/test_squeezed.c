// test_squeezed.c - replicas, and workers of servers, that exchange compressed
// gradients pass the cases that every backend must pass. test_squeeze_reruns.c
// runs them again, and test_squeeze_state.c tests what they keep.

#include "tests/squeeze_ways.h"

#include "base/base.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/test.h"

enum { N = 1003 };

// ---- k = n: the bits of local, as with the ring

static void all_entries_give_the_bits_of_local(void **state)
{
    (void)state;
    case_integers(&all_tcp);
    case_integers(&all_shm);
    case_integers(&all_staged);
    case_integers(&all_sps);
    case_integers(&all_dps);
    case_integers(&all_zero);
    case_overflow(&all_zero);
    case_integers(&all_blocks);
    case_overflow(&all_blocks);
    case_overflow(&all_tcp);
    case_overflow(&all_dps);
}

// ---- the same on every worker, and by the law

static void replicas_stay_equal(void **state)
{
    (void)state;
    for (int i = 0; i < WAYS; i++)
        case_replicas(ways[i]);
}

// Shared memory sums short vectors in one round, which has other bytes.
static void bytes_are_those_of_the_law(void **state)
{
    (void)state;
    for (int i = 0; i < WAYS; i++)
        if (ways[i]->law && ways[i] != &power_shm)
            case_bytes(ways[i]);
    case_bytes(&power_lossy);
    case_bytes(&int8_sps);
    case_bytes(&lossy_sps);
    case_bytes(&lossy_zero);
}

static void faults_are_named(void **state)
{
    (void)state;
    case_missing(&topk);
    case_missing(&sign);
    case_missing(&int8_zero);
    case_killed(&topk);
    case_killed(&int8_shm);
    case_killed(&sign_zero);
    case_disagree(&sign);
    case_bcast(&int8);
}

// ---- a malformed message is refused, and its sender is named

// Rank 1 sends indices that no element has: in the first word of topk's
// message, or the last of demo's.
static bool spoils_last;

static int spoil(struct group *g, const struct group_op *op)
{
    char *messages = op->vector.data;
    size_t bytes = op->vector.n * sizeof(float) / (size_t)g->size;
    size_t at = spoils_last ? bytes - sizeof(uint32_t) : 0;
    if (op->verb == GROUP_ALL_GATHER && g->rank == 1)
        memset(messages + bytes + at, 0xff, sizeof(uint32_t));
    return ring_tcp.begin(g, op);
}

static int refuses(struct worker *w)
{
    struct sync_out out;
    worker_normals(w, 1);
    if (!worker_step(w, 1, &out))
        return fail("a malformed message was taken");
    const char *want =
        spoils_last
            ? "ring: the message of rank 1 for elements 657 to 1000: entry 16 "
              "has index 63, in a chunk of 49 (step 1)"
            : "ring: the message of rank 1 for elements 700 to 1000: entry 0 "
              "of 15 has index 4294967295, of 300 elements (step 1)";
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
    f = demo;
    f.carriers = carriers;
    spoils_last = true;
    assert_int_equal(world_run(&f, &s, refuses, NULL), 0);
}

// ---- a server's answer to topk is the union of the entries

static int union_body(struct worker *w)
{
    struct sync_out out;
    uint64_t before_out = w->sync->stats.bytes_out;
    uint64_t before_in = w->sync->stats.bytes_in, sent, none;
    size_t entries = 0;
    worker_normals(w, 1);
    if (worker_step(w, 1, &out))
        return -1;
    for (size_t i = 0; i < w->job.n; i++)
        entries += w->job.grads[i] != 0;
    law_sps(&w->job, w->rank, w->world, DTYPE_F32, &sent, &none);
    uint64_t gave = w->sync->stats.bytes_out - before_out;
    uint64_t got = w->sync->stats.bytes_in - before_in;
    return gave == sent && got == 8 * entries &&
                   entries <= (size_t)w->world * sent / 8
               ? 0
               : fail("%llu bytes sent, %llu received, %zu entries",
                      (unsigned long long)gave, (unsigned long long)got,
                      entries);
}

static void the_answer_to_topk_is_the_union(void **state)
{
    (void)state;
    for (int world = 1; world <= CASE_WORLDS; world++) {
        struct setup s = {.world = world, .n = 1000};
        assert_int_equal(world_run(&topk_sps, &s, union_body, NULL), 0);
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
    for (int i = 0; i < SUMS; i++)
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
                                        .decay = {{10, 20, 4}, {30, 5, 1}}};
    const struct bucket buckets[] = {{20, 20}, {0, 20}};
    struct sync_settings set = {.scope = SCOPE_BUCKET};
    const struct sync_job job = {.n = 40,
                                 .buckets = buckets,
                                 .nbuckets = 2,
                                 .optim = &optim,
                                 .settings = &set};
    static const struct squeeze_unit by_bucket[] = {{20, 20, 0}, {0, 20, 0}};
    static const struct squeeze_unit tensors[] = {{35, 5, 0},
                                                  {30, 5, 1},
                                                  {10, 20, 4},
                                                  {0, 10, 0}};
    static const struct squeeze_unit whole[] = {{0, 40, 0}};
    const struct squeeze_unit *want[] = {by_bucket, tensors, whole, tensors};
    const int counts[] = {2, 4, 1, 4};
    for (int i = 0; i < 4; i++) {
        struct squeeze_unit *units;
        set.scope = (enum squeeze_scope)(i % 3);
        set.squeeze = i < 3 ? SQUEEZE_TOPK : SQUEEZE_POWER;
        assert_int_equal(squeezed_units(&job, &units), counts[i]);
        assert_memory_equal(units, want[i], (size_t)counts[i] * sizeof *units);
        mem_free(units);
    }
}

// ---- power

// Gradients whose matrix has rank 2. All other elements are integers.
static void fill_low_rank(const struct optim_range *r, int rank, float *g,
                          size_t n)
{
    size_t cols = (size_t)(r->n / r->rows);
    for (size_t i = 0; i < n; i++) {
        size_t at = i - (size_t)r->off, row = at / cols, col = at % cols;
        bool inside = i >= r->off && at < r->n;
        g[i] = inside ? (float)((int)(row % 7) - 3) * (float)(col % 5) +
                            (float)rank * (float)(row % 3) * (float)(col % 4)
                      : (float)(i % 50) * (float)(rank + 1);
    }
}

// A matrix of at most the rank that travels arrives as it is, in every step,
// and vectors have the bits of the sum.
static int low_rank_body(struct worker *w)
{
    const struct optim_range *r = &w->optim.decay[0];
    float *want = mem_alloc(N, sizeof *want), *one = mem_alloc(N, sizeof *one);
    struct sync_out out;
    if (!want || !one)
        return -1;
    for (int rank = 0; rank < w->world; rank++) {
        fill_low_rank(r, rank, one, N);
        for (size_t i = 0; i < N; i++)
            want[i] += one[i];
    }
    for (int step = 1; step <= 3; step++) {
        fill_low_rank(r, w->rank, w->job.grads, N);
        if (worker_step(w, step, &out))
            return -1;
        for (size_t i = 0; i < N; i++) {
            double off = fabs((double)w->job.grads[i] - (double)want[i]);
            if (off > (i >= r->off && i < r->off + r->n ? 1e-3 : 0))
                return fail("element %zu: %g, want %g", i,
                            (double)w->job.grads[i], (double)want[i]);
        }
    }
    mem_free(want);
    mem_free(one);
    return 0;
}

static void matrices_of_low_rank_arrive_whole(void **state)
{
    (void)state;
    for (int world = 1; world <= CASE_WORLDS; world++) {
        struct setup s = {.world = world, .n = N, .bucket = 300};
        assert_int_equal(world_run(&power, &s, low_rank_body, NULL), 0);
        assert_int_equal(world_run(&power_shm, &s, low_rank_body, NULL), 0);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_entries_give_the_bits_of_local),
        cmocka_unit_test(replicas_stay_equal),
        cmocka_unit_test(bytes_are_those_of_the_law),
        cmocka_unit_test(faults_are_named),
        cmocka_unit_test(malformed_messages_are_refused),
        cmocka_unit_test(the_answer_to_topk_is_the_union),
        cmocka_unit_test(tiny_vectors_travel),
        cmocka_unit_test(the_first_steps_are_the_rings),
        cmocka_unit_test(without_feedback_the_rest_is_lost),
        cmocka_unit_test(units_are_cut_by_scope),
        cmocka_unit_test(matrices_of_low_rank_arrive_whole),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
