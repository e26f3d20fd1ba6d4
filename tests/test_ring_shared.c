// test_ring_shared.c - the ring in shared memory: what every backend must pass,
// with gradients that others can map and with copies of them; the bits of the
// ring over sockets; and when it is chosen.

#include "horovod_ring/ring.h"
#include "tests/sync_cases.h"

#include "base/base.h"
#include "config/config.h"

#include <sched.h>
#include <unistd.h>

#include "tests/test.h"

static void law(const struct sync_job *job, int rank, int world,
                enum dtype wire, uint64_t *out, uint64_t *in)
{
    (void)wire; // memory is read in fp32
    ring_shared_law(job, rank, world, 0.008, out, in);
}

// A world of one has nobody to share with, and is the other ring's.
static int (*open_shared)(struct sync *s);

static int open_either(struct sync *s)
{
    if (s->job.cluster->world > 1)
        return open_shared(s);
    s->ops = &sync_ring;
    mem_free(s->state);
    s->state = mem_alloc(1, sync_ring.state_size);
    return s->state ? sync_ring.open(s) : -1;
}

static struct sync_ops either;

// First in place, then by way of copies.
static const struct fixture fixtures[] = {
    {.ops = &either,
     .opts = "slice_kb=1,fusion_mb=0.008",
     .law = law,
     .shared = true},
    {.ops = &either,
     .opts = "slice_kb=1,fusion_mb=0.008",
     .few = true,
     .law = law},
};

static int prepare(void **state)
{
    (void)state;
    either = sync_ring_shared;
    open_shared = either.open;
    either.open = open_either;
    return 0;
}

static void on_both(void (*check)(const struct fixture *f))
{
    check(&fixtures[0]);
    check(&fixtures[1]);
}

static void integers(void **state)
{
    (void)state;
    on_both(case_integers);
}

static void many(void **state)
{
    (void)state;
    on_both(case_many);
}

static void replicas(void **state)
{
    (void)state;
    on_both(case_replicas);
}

static void reruns(void **state)
{
    (void)state;
    on_both(case_reruns);
}

static void overflow(void **state)
{
    (void)state;
    on_both(case_overflow);
}

static void divides_first(void **state)
{
    (void)state;
    on_both(case_divides_first);
}

static void bytes(void **state)
{
    (void)state;
    on_both(case_bytes);
}

static void moves_state(void **state)
{
    (void)state;
    on_both(case_state);
}

static void broadcast(void **state)
{
    (void)state;
    on_both(case_bcast);
}

static void missing(void **state)
{
    (void)state;
    on_both(case_missing);
}

static void killed(void **state)
{
    (void)state;
    on_both(case_killed);
}

static void disagree(void **state)
{
    (void)state;
    on_both(case_disagree);
}

// Parameters after some steps, on each of both rings.
static int steps_body(struct worker *w)
{
    struct sync_out out;
    for (int step = 1; step <= 3; step++) {
        worker_normals(w, step);
        if (worker_step(w, step, &out))
            return -1;
    }
    w->result = hash_bytes(w->job.params, w->job.n * sizeof(float));
    return 0;
}

static void bits_of_sockets(void **state)
{
    (void)state;
    static const struct fixture sockets = {.ops = &sync_ring,
                                           .opts = "fusion_mb=0.008"};
    static const char *const wires[] = {"wire=fp32", "wire=fp16", "wire=bf16"};
    for (int world = 2; world <= CASE_WORLDS; world++) {
        for (int i = 0; i < 3; i++) {
            // Chunks of several blocks, and of a few elements.
            struct setup s = {.world = world,
                              .n = 70001,
                              .first = 5,
                              .bucket = 60000};
            uint64_t here[CASE_WORLDS], there[CASE_WORLDS];
            snprintf(s.opts, sizeof s.opts, "%s", wires[i]);
            assert_int_equal(world_run(&sockets, &s, steps_body, there), 0);
            assert_int_equal(world_run(&fixtures[0], &s, steps_body, here), 0);
            assert_true(here[0] == there[0]);
        }
    }
}

// A broadcast of many windows.
static int long_body(struct worker *w)
{
    for (size_t i = 0; i < w->job.n; i++)
        w->job.params[i] = w->rank ? -1 : (float)(i % 65521);
    if (worker_begin(w) || sync_bcast(w->sync))
        return -1;
    for (size_t i = 0; i < w->job.n; i++)
        if (w->job.params[i] != (float)(i % 65521))
            return fail("parameter %zu is not worker 0's", i);
    return 0;
}

static void long_broadcast(void **state)
{
    (void)state;
    struct setup s = {.world = 3, .n = 1500003, .closed = true};
    assert_int_equal(world_run(&fixtures[0], &s, long_body, NULL), 0);
}

// ---- whether it is chosen

static int suits_here(struct worker *w)
{
    int suits = sync_ring_shared.suits(&w->job);
    w->result = (uint64_t)(suits + 1);
    if (suits < 0 && !strstr(fail_message(), "rank 1 is on another host"))
        return -1;
    return 0;
}

// Rank 1 goes into a network of its own, as an emulated host does.
static int suits_apart(struct worker *w)
{
    if (w->rank == 1 && unshare(CLONE_NEWNET))
        return -1;
    return suits_here(w);
}

static uint64_t chosen(int world, const char *opts,
                       int (*body)(struct worker *w))
{
    struct setup s = {.world = world, .n = 10, .closed = true};
    uint64_t results[CASE_WORLDS];
    struct fixture f = fixtures[0];
    f.opts = opts;
    assert_int_equal(world_run(&f, &s, body, results), 0);
    for (int r = 1; r < world; r++)
        assert_true(results[r] == results[0]);
    return results[0];
}

static void suits(void **state)
{
    (void)state;
    enum { FAILS, NO, YES };
    assert_int_equal(chosen(1, "", suits_here), NO);
    assert_int_equal(chosen(3, "", suits_here), YES);
    assert_int_equal(chosen(3, "transport=shm", suits_here), YES);
    assert_int_equal(chosen(3, "transport=tcp", suits_here), NO);
    if (geteuid() != 0) {
        print_message("not root: no other namespace to try\n");
        return;
    }
    assert_int_equal(chosen(3, "", suits_apart), NO);
    assert_int_equal(chosen(3, "transport=shm", suits_apart), FAILS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers),        cmocka_unit_test(many),
        cmocka_unit_test(replicas),        cmocka_unit_test(reruns),
        cmocka_unit_test(overflow),        cmocka_unit_test(divides_first),
        cmocka_unit_test(bytes),           cmocka_unit_test(moves_state),
        cmocka_unit_test(broadcast),       cmocka_unit_test(missing),
        cmocka_unit_test(killed),          cmocka_unit_test(disagree),
        cmocka_unit_test(bits_of_sockets), cmocka_unit_test(long_broadcast),
        cmocka_unit_test(suits),
    };
    return cmocka_run_group_tests(tests, prepare, NULL);
}
