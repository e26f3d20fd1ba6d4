// test_dataparallel.c - the backend whose worker 0 owns the parameters passes
// the cases that every backend must pass. Also tests the bytes that cross
// worker 0's link, and where the optimiser's state is.

#include "dataparallel/dataparallel.h"
#include "horovod_ring/carriers.h"
#include "sync/derive.h"
#include "sync/law.h"
#include "tests/queue_device.h"
#include "tests/sync_cases.h"

#include "base/base.h"
#include "config/backends.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/test.h"

static const struct group_ops *const tcp[] = {&ring_tcp, NULL};
static const struct group_ops *const shm[] = {&ring_shm, NULL};

// With n workers and gradients of S bytes, the link of worker 0 carries
// 2 (n-1) S bytes, half of them each way. The link of every other worker
// carries 2 S.
static void law(const struct sync_job *job, int rank, int world,
                enum dtype wire, uint64_t *out, uint64_t *in)
{
    struct law owner = law_owner(world, true);
    (void)wire;
    *out = *in = job->n * sizeof(float);
    if (rank == 0)
        *out = *in = (uint64_t)(owner.share / 2) * *out;
    if (world == 1)
        *out = *in = 0;
}

static const struct fixture over_tcp = {
    .sync = "dataparallel",
    .ops = &sync_dataparallel,
    .carriers = tcp,
    .opts = "",
    .few = true,
    .law = law,
};

static const struct fixture over_shm = {
    .sync = "dataparallel",
    .ops = &sync_dataparallel,
    .carriers = shm,
    .opts = "",
    .few = true,
    .law = law,
};

// Through a staging buffer, as on a GPU.
static const struct fixture staged = {
    .sync = "dataparallel",
    .ops = &sync_dataparallel,
    .carriers = tcp,
    .opts = "",
    .device = queue_device_open,
    .few = true,
    .law = law,
};

static void cases_pass_in_shared_memory(void **state)
{
    (void)state;
    case_integers(&over_shm);
    case_bytes(&over_shm);
    case_overflow(&over_shm);
    case_killed(&over_shm);
}

static void cases_pass_with_a_staging_buffer(void **state)
{
    (void)state;
    case_integers(&staged);
    case_overflow(&staged);
    case_bcast(&staged);
    case_state(&staged);
}

// ---- several pieces, in two sets of buffers that are used alternately

enum { LARGE = 4 * OWNER_PIECE + 77, STEPS = 2 };

static int pieces_body(struct worker *w)
{
    struct worker local;
    int rc = oracle_open(&local, w);
    for (int step = 1; !rc && step <= STEPS; step++) {
        struct sync_out a, b;
        uint64_t before = w->sync->stats.bytes_in, want[2];
        worker_integers(w, step, 400);
        worker_summed(&local, step, 400);
        rc = worker_step(w, step, &a) || worker_step(&local, step, &b) ||
             worker_equals(w, &local);
        law(&w->job, w->rank, w->world, DTYPE_F32, &want[0], &want[1]);
        uint64_t came = w->sync->stats.bytes_in - before;
        if (!rc && (a.grad_norm != b.grad_norm || came != want[1]))
            rc = fail("step %d: norm %g, %llu bytes received", step,
                      (double)a.grad_norm, (unsigned long long)came);
    }
    oracle_close(&local);
    return rc ? -1 : 0;
}

static void large_vectors_travel_in_pieces(void **state)
{
    (void)state;
    for (int world = 2; world <= CASE_WORLDS; world++) {
        struct setup s = {.world = world, .n = LARGE, .bucket = LARGE / 9};
        assert_int_equal(world_run(&over_tcp, &s, pieces_body, NULL), 0);
        assert_int_equal(world_run(&over_shm, &s, pieces_body, NULL), 0);
    }
}

// ---- worker 0 sends the batch and receives the losses

enum { TOKENS = 12 };

static int batch_body(struct worker *w)
{
    int32_t x[CASE_WORLDS * TOKENS], y[CASE_WORLDS * TOKENS];
    struct sync_in in = {.step = 1, .lr = 0.1f, .grad_scale = 1};
    struct sync_out out;
    for (int i = 0; i < CASE_WORLDS * TOKENS; i++) {
        x[i] = w->rank ? -1 : i * 50261; // some are a NaN's bits
        y[i] = w->rank ? -1 : INT32_MIN + i;
    }
    struct group_stats before = w->sync->stats, *now = &w->sync->stats;
    if (sync_scatter(w->sync, x, y, TOKENS))
        return -1;
    for (int i = 0; i < TOKENS; i++)
        if (x[i] != (w->rank * TOKENS + i) * 50261 ||
            y[i] != INT32_MIN + w->rank * TOKENS + i)
            return fail("token %d is %d, %d", i, x[i], y[i]);
    uint64_t times = w->rank == 0 ? (uint64_t)w->world - 1 : 0;
    uint64_t head = now->head_out - before.head_out;
    if (now->bytes_out != before.bytes_out ||
        head < times * 2 * TOKENS * sizeof *x || (times == 0 && head > 0))
        return fail("%llu bytes of heads", (unsigned long long)head);
    if (now->out[GROUP_SEND] != now->bytes_out ||
        now->in[GROUP_RECV] != now->bytes_in)
        return fail("bytes by verb are not all bytes");
    worker_integers(w, 1, 4);
    in.loss = 1 << w->rank;
    for (int b = 0; b < w->job.nbuckets; b++)
        if (sync_ready(w->sync, b))
            return -1;
    if (sync_step(w->sync, &in, &out))
        return -1;
    double mean = (double)((1 << w->world) - 1) / w->world;
    return w->rank || fabs(out.loss - mean) < 1e-12
               ? 0
               : fail("a mean loss of %g", out.loss);
}

static void batches_are_scattered_and_losses_averaged(void **state)
{
    (void)state;
    for (int world = 1; world <= CASE_WORLDS; world++) {
        struct setup s = {.world = world, .n = 1000, .bucket = 300};
        assert_int_equal(world_run(&over_tcp, &s, batch_body, NULL), 0);
        assert_int_equal(world_run(&over_shm, &s, batch_body, NULL), 0);
    }
}

// ---- worker 0 has the optimiser's state

static int count_visit(void *ctx, int slot, size_t off, float *v, size_t n)
{
    (void)slot;
    (void)off;
    (void)v;
    *(uint64_t *)ctx += n;
    return 0;
}

static int state_body(struct worker *w)
{
    return sync_save(w->sync, count_visit, &w->result);
}

static void only_worker_0_has_the_state(void **state)
{
    (void)state;
    uint64_t kept[3];
    struct setup s = {.world = 3, .n = 1000};
    assert_int_equal(world_run(&over_tcp, &s, state_body, kept), 0);
    assert_int_equal(kept[0], 2 * 1000); // of AdamW
    assert_int_equal(kept[1], 0);
    assert_int_equal(kept[2], 0);
}

// ---- memory, as the system counts it

enum { HEAVY = 1 << 22 };

// Worker 0 needs memory for the optimiser's state and for what it receives. The
// others need none.
static void only_worker_0_needs_memory(void **state)
{
    (void)state;
    const size_t mib = 1 << 20, slots = 2 * sizeof(float) * HEAVY;
    if (TEST_SANITIZED)
        skip(); // most of the memory is the sanitizer's
    for (int world = 1; world <= CASE_WORLDS; world++) {
        uint64_t grew[CASE_WORLDS];
        struct setup s = {.world = world,
                          .n = HEAVY,
                          .bucket = HEAVY / 4,
                          .closed = true};
        size_t arrives =
            OWNER_SETS * OWNER_PIECE * sizeof(float) * ((size_t)world - 1);
        assert_int_equal(world_run(&over_tcp, &s, worker_grows, grew), 0);
        assert_in_range(grew[0], slots + arrives, slots + arrives + 2 * mib);
        for (int r = 1; r < world; r++)
            assert_in_range(grew[r], 0, 2 * mib);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(integers, &over_tcp),
        cmocka_unit_test(cases_pass_in_shared_memory),
        cmocka_unit_test(cases_pass_with_a_staging_buffer),
        CASE(many, &over_tcp),
        CASE(replicas, &over_tcp),
        CASE(reruns, &over_tcp),
        CASE(overflow, &over_tcp),
        CASE(bytes, &over_tcp),
        cmocka_unit_test(large_vectors_travel_in_pieces),
        cmocka_unit_test(batches_are_scattered_and_losses_averaged),
        cmocka_unit_test(only_worker_0_has_the_state),
        cmocka_unit_test(only_worker_0_needs_memory),
        CASE(state, &over_tcp),
        CASE(bcast, &over_tcp),
        CASE(missing, &over_tcp),
        CASE(killed, &over_tcp),
        CASE(disagree, &over_tcp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
