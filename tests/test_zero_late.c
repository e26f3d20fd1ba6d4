// test_zero_late.c - ZeRO gathers parameters while the next step begins.

#include "horovod_ring/carriers.h"
#include "optim/rule.h"
#include "tests/sync_cases.h"
#include "zero/zero.h"

#include "base/base.h"
#include "device/vector.h"

#include <stdio.h>
#include <string.h>

#include "tests/test.h"

static const struct group_ops *const tcp[] = {&ring_tcp, NULL};
static const struct group_ops *const shm[] = {&ring_shm, NULL};

static const struct fixture late = {
    .sync = "zero",
    .ops = &sync_zero,
    .carriers = tcp,
    .opts = "slice_kb=1",
    .awaits = true,
};

// This carrier has no thread, so no data moves while a worker computes.
static const struct fixture late_shm = {
    .sync = "zero",
    .ops = &sync_zero,
    .carriers = shm,
    .opts = "",
    .shared = true,
    .awaits = true,
};

enum { STEPS = 3, LARGE = 13 * RULE_BLOCK - 77 };

static struct setup large(int world)
{
    return (struct setup){.world = world,
                          .n = LARGE,
                          .first = RULE_BLOCK + 1,
                          .bucket = 9 * RULE_BLOCK / 2};
}

// Reports the gradients of a step as ready, and does the step. Waits for no
// parameters.
static int step_once(struct worker *w, int step)
{
    struct sync_out out;
    struct sync_in in = {.step = step,
                         .lr = 0.01f,
                         .grad_scale = 1.0f / (float)w->world,
                         .clip = 20,
                         .last = step == STEPS};
    worker_normals(w, step);
    for (int b = 0; b < w->job.nbuckets; b++)
        if (worker_ready(w, b))
            return -1;
    return sync_step(w->sync, &in, &out);
}

// Reads the parameters as the forward pass does: from the start, a bucket at a
// time. After sync_await() a bucket has the next parameters. Hashes them.
static int read_in_order(struct worker *w, uint64_t *hash)
{
    for (int b = w->job.nbuckets - 1; b >= 0; b--) {
        const struct bucket *k = &w->job.buckets[b];
        if (sync_await(w->sync, k->off, k->n))
            return -1;
        uint64_t both[2] = {*hash, hash_bytes(w->job.params + k->off,
                                              k->n * sizeof(float))};
        *hash = hash_bytes(both, sizeof both);
    }
    return w->sync->coming ? fail("all were awaited, some are still due") : 0;
}

// In shared memory no thread moves the parameters. One worker alone moves none.
static bool comes_late(const struct worker *w)
{
    const struct group_ops *carrier = w->sync->carrier;
    return w->job.awaits && w->sync->overlap && carrier->threaded &&
           (carrier != &ring_shm || w->world == 1);
}

static int hash_body(struct worker *w)
{
    for (int step = 1; step <= STEPS; step++) {
        if (step_once(w, step))
            return -1;
        if (w->sync->coming != (comes_late(w) && step < STEPS))
            return fail("step %d: parameters %s", step,
                        w->sync->coming ? "are still due" : "were waited for");
        bool comes = w->sync->coming;
        if (sync_await(w->sync, 0, 0) || w->sync->coming != comes)
            return fail("step %d: nothing was waited for", step);
        if (read_in_order(w, &w->result))
            return -1;
    }
    return 0;
}

// Whether a step waits for parameters or not, each bucket has the same bits.
static void each_bucket_is_the_next(void **state)
{
    (void)state;
    struct fixture early = late;
    early.awaits = false;
    for (int world = 1; world <= CASE_WORLDS; world++) {
        uint64_t want[CASE_WORLDS], have[CASE_WORLDS];
        struct setup s = large(world);
        assert_int_equal(world_run(&early, &s, hash_body, want), 0);
        for (int k = 0; k < 3; k++) {
            snprintf(s.opts, sizeof s.opts, "overlap=%d", k != 1);
            assert_int_equal(world_run(k == 2 ? &late_shm : &late, &s,
                                       hash_body, have),
                             0);
            for (int r = 0; r < world; r++)
                assert_true(have[r] == want[0]);
        }
    }
}

// ---- bytes

static uint64_t sent_since(const struct worker *w, uint64_t *before)
{
    uint64_t out = w->sync->stats.bytes_out - *before;
    *before = w->sync->stats.bytes_out;
    return out;
}

// A step that does not wait for its gathers counts their bytes in the next
// step, also if a call in between waits for them. The last step waits. So the
// bytes of n steps are n times those of the law.
static int bytes_body(struct worker *w)
{
    uint64_t before = w->sync->stats.bytes_out, went[STEPS];
    for (int step = 1; step <= STEPS; step++) {
        if (step_once(w, step))
            return -1;
        went[step - 1] = sent_since(w, &before);
        if (step == 1 && sync_whole(w->sync))
            return -1;
        if (sent_since(w, &before) || worker_await(w))
            return fail("step %d: bytes were counted after it", step);
    }
    bool late_bytes = comes_late(w) && w->world > 1;
    return went[0] + went[2] == 2 * went[1] && late_bytes == (went[0] < went[1])
               ? 0
               : fail("%llu, %llu, %llu bytes", (unsigned long long)went[0],
                      (unsigned long long)went[1], (unsigned long long)went[2]);
}

static void gathers_count_with_the_next_step(void **state)
{
    (void)state;
    for (int world = 1; world <= CASE_WORLDS; world++) {
        struct setup s = large(world);
        for (int k = 0; k < 2; k++) {
            snprintf(s.opts, sizeof s.opts, "overlap=%d", k);
            assert_int_equal(world_run(&late, &s, bytes_body, NULL), 0);
        }
    }
}

// ---- a model in 16 bits: its copy is gathered late, too, and sync_whole()
// gathers the fp32 parameters

static int copy_body(struct worker *w)
{
    static uint16_t half[LARGE], want[LARGE];
    struct half_copy copy = {.at = half, .format = DTYPE_BF16};
    w->job.copy = &copy;
    if (worker_begin(w) || sync_bcast(w->sync))
        return -1;
    for (int step = 1; step <= STEPS; step++)
        if (step_once(w, step))
            return -1;
    if (sync_whole(w->sync) || w->sync->coming)
        return -1;
    vector_cast(want, DTYPE_BF16, w->job.params, DTYPE_F32, LARGE);
    w->result = hash_bytes(w->job.params, LARGE * sizeof(float));
    return memcmp(half, want, sizeof want) ? fail("the copy is wrong") : 0;
}

static void a_copy_comes_late_too(void **state)
{
    (void)state;
    for (int world = 1; world <= CASE_WORLDS; world++) {
        uint64_t copied[CASE_WORLDS];
        struct setup s = large(world);
        s.closed = true;
        assert_int_equal(world_run(&late, &s, copy_body, copied), 0);
        for (int r = 1; r < world; r++)
            assert_true(copied[r] == copied[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(integers, &late),
        CASE(reruns, &late),
        CASE(overflow, &late),
        CASE(state, &late),
        CASE(missing, &late),
        CASE(killed, &late),
        cmocka_unit_test(each_bucket_is_the_next),
        cmocka_unit_test(gathers_count_with_the_next_step),
        cmocka_unit_test(a_copy_comes_late_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
