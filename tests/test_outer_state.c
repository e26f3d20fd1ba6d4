// test_outer_state.c - the state that sync=outer saves and resumes, and the
// model's 16-bit copy.

#include "tests/outer_world.h"

#include "base/base.h"
#include "device/vector.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/test.h"

// Saved slots of up to four workers and a velocity, by slot number, in memory
// that forked workers share. given[] says which slots were saved.
enum { STATE_N = 1003, STATE_SLOTS = 2 * CASE_WORLDS + 1 };
struct kept {
    bool given[STATE_SLOTS];
    float at[STATE_SLOTS][STATE_N], params[STATE_N];
};
static struct kept *kept;

static int keep(void *ctx, int slot, size_t off, float *v, size_t n)
{
    (void)ctx;
    memcpy(kept->at[slot] + off, v, n * sizeof *v);
    kept->given[slot] = true;
    return 0;
}

static int give(void *ctx, int slot, size_t off, float *v, size_t n)
{
    (void)ctx;
    if (!kept->given[slot])
        return SYNC_ABSENT;
    memcpy(v, kept->at[slot] + off, n * sizeof *v);
    return 0;
}

static int train(struct worker *w, int from, int to)
{
    for (int step = from; step <= to; step++) {
        const struct how how = {.lr = 0.01f, .clip = 1};
        struct sync_out out;
        worker_normals(w, step);
        if (take_step(w, step, &how, &out))
            return -1;
    }
    return 0;
}

static int save_body(struct worker *w)
{
    if (train(w, 1, EVERY) || sync_save(w->sync, keep, NULL))
        return -1;
    if (w->rank == 0)
        memcpy(kept->params, w->job.params, sizeof kept->params);
    if (train(w, EVERY + 1, 3 * EVERY))
        return -1;
    w->result = hash_bytes(w->job.params, w->job.n * sizeof(float));
    return 0;
}

static int resume_body(struct worker *w)
{
    if (w->rank == 0)
        memcpy(w->job.params, kept->params, sizeof kept->params);
    if (worker_begin(w) || sync_bcast(w->sync) ||
        sync_load(w->sync, give, NULL) || train(w, EVERY + 1, 3 * EVERY))
        return -1;
    w->result = hash_bytes(w->job.params, w->job.n * sizeof(float));
    return 0;
}

static int names_body(struct worker *w)
{
    static const char *const want[] = {"exp_avg", "exp_avg_sq",
                                       "exp_avg_of_worker_1",
                                       "exp_avg_sq_of_worker_1",
                                       "outer_velocity"};
    return worker_has_slots(w, want, 5);
}

// A resumed run has the same bits as the run that was not interrupted.
static void a_resumed_run_has_the_same_bits(void **state)
{
    (void)state;
    for (int i = 0; i < 12; i++) {
        int world = 1 + i % CASE_WORLDS;
        uint64_t want[CASE_WORLDS], have[CASE_WORLDS];
        struct setup s = {.world = world,
                          .n = STATE_N,
                          .bucket = 300,
                          .sgd = i == 5};
        snprintf(s.opts, sizeof s.opts, "every=%d%s", EVERY,
                 i % 2 ? ",outer_lr=0.7,outer_momentum=0.9" : "");
        memset(kept, 0, sizeof *kept);
        assert_int_equal(world_run(carried[i / 4], &s, save_body, want), 0);
        s.closed = true;
        assert_int_equal(world_run(carried[i / 4], &s, resume_body, have), 0);
        for (int r = 0; r < world; r++)
            assert_true(have[r] == want[r]);
    }
    struct setup s = {.world = 2, .n = 10};
    snprintf(s.opts, sizeof s.opts, "outer_lr=0.7,outer_momentum=0.9");
    assert_int_equal(world_run(&outer_tcp, &s, names_body, NULL), 0);
}

// Worker 1 finds no state of its own and takes worker 0's. There is no velocity
// yet.
static int other_body(struct worker *w)
{
    kept->given[2] = kept->given[3] = kept->given[4] = false;
    if (w->rank == 0)
        memcpy(w->job.params, kept->params, sizeof kept->params);
    if (worker_begin(w) || sync_bcast(w->sync) ||
        sync_load(w->sync, give, NULL))
        return -1;
    for (int i = 0; i < 2; i++)
        if (memcmp(w->sync->rule.slots[i], kept->at[i], sizeof kept->at[i]))
            return fail("slot %d is not worker 0's", i);
    return 0;
}

static void a_new_worker_takes_worker_0s_state(void **state)
{
    (void)state;
    struct setup s = {.world = 1, .n = STATE_N, .opts = "every=3"};
    memset(kept, 0, sizeof *kept);
    assert_int_equal(world_run(&outer_tcp, &s, save_body, NULL), 0);
    assert_true(kept->given[0] && kept->given[1] && kept->at[1][7] != 0);
    s.world = 2;
    s.closed = true;
    snprintf(s.opts, sizeof s.opts, "every=3,outer_lr=0.7,outer_momentum=0.9");
    assert_int_equal(world_run(&outer_tcp, &s, other_body, NULL), 0);
}

// ---- a model in 16 bits

// The update writes the copy. An outer step makes it stale.
static int copy_body(struct worker *w)
{
    static uint16_t half[STATE_N], want[STATE_N];
    struct half_copy copy = {.at = half, .format = DTYPE_BF16};
    w->job.copy = &copy;
    if (worker_begin(w) || sync_bcast(w->sync))
        return -1;
    for (int step = 1; step <= 2 * EVERY; step++) {
        const struct how how = {.lr = 0.01f};
        bool is_outer = step % EVERY == 0;
        struct sync_out out;
        worker_normals(w, step);
        if (take_step(w, step, &how, &out))
            return -1;
        if (copy.fresh == is_outer)
            return fail("step %d: the copy is %s", step,
                        is_outer ? "fresh" : "stale");
        vector_cast(want, DTYPE_BF16, w->job.params, DTYPE_F32, STATE_N);
        if (copy.fresh && memcmp(half, want, sizeof want))
            return fail("step %d: the copy differs", step);
    }
    return 0;
}

static void an_outer_step_makes_the_copy_stale(void **state)
{
    (void)state;
    struct setup s = {.world = 2, .n = STATE_N, .closed = true};
    snprintf(s.opts, sizeof s.opts, "every=%d", EVERY);
    assert_int_equal(world_run(&outer_tcp, &s, copy_body, NULL), 0);
}

static int share_pages(void **state)
{
    (void)state;
    kept = mmap(NULL, sizeof *kept, PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return kept == MAP_FAILED;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_resumed_run_has_the_same_bits),
        cmocka_unit_test(a_new_worker_takes_worker_0s_state),
        cmocka_unit_test(an_outer_step_makes_the_copy_stale),
    };
    return cmocka_run_group_tests(tests, share_pages, NULL);
}
