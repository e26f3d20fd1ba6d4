// test_ring_shared.c - the ring in shared memory passes the cases that every
// backend must pass, with gradients that other processes can map, and with
// copies of them. Also compares its bits with the ring over sockets, and tests
// when it is chosen.

#include "horovod_ring/carriers.h"
#include "sync/replicas.h"
#include "tests/sync_cases.h"

#include "base/base.h"
#include "group/group.h"

#include <sched.h>
#include <unistd.h>

#include "tests/test.h"

// A worker reads as many bytes from the others as they read from it. Of each
// bucket it reads its own chunk (world-1) times and all other chunks
// once, in fp32 with every wire. A bucket that is small enough for one round is
// read as a whole from each of the others.
static void law(const struct sync_job *job, int rank, int world,
                enum dtype wire, uint64_t *out, uint64_t *in)
{
    enum { ONE_ROUND = 2048 };
    size_t others = (size_t)(world - 1);
    (void)wire;
    *out = 0;
    for (int i = 0; world > 1 && i < job->nbuckets; i++) {
        size_t all = job->buckets[i].n,
               own = group_chunk(all, 1, world, rank).n;
        *out += (all <= ONE_ROUND ? others * all : others * own + all - own) *
                sizeof(float);
    }
    *in = *out;
}

static const struct group_ops *const shm[] = {&ring_shm, NULL};
static const struct group_ops *const tcp[] = {&ring_tcp, NULL};
static const struct group_ops *const all[] = {&ring_shm, &ring_tcp, NULL};

// The first uses gradients in place, the second copies of them.
static const struct fixture fixtures[] = {
    {.sync = "ring",
     .ops = &sync_replicas,
     .carriers = shm,
     .opts = "slice_kb=1",
     .law = law,
     .shared = true},
    {.sync = "ring",
     .ops = &sync_replicas,
     .carriers = shm,
     .opts = "slice_kb=1",
     .few = true,
     .law = law},
};

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

// The result is a hash of the parameters after three steps.
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

static void bits_equal_those_of_sockets(void **state)
{
    (void)state;
    static const struct fixture sockets = {.sync = "ring",
                                           .ops = &sync_replicas,
                                           .carriers = tcp,
                                           .opts = ""};
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

// A broadcast of so many parameters that it takes many steps in shared memory.
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

static void a_long_broadcast_is_exact(void **state)
{
    (void)state;
    struct setup s = {.world = 3, .n = 1500003, .closed = true};
    assert_int_equal(world_run(&fixtures[0], &s, long_body, NULL), 0);
}

// ---- when shared memory is chosen

enum { FAILS, NONE, TCP, SHM };

static int choose_here(struct worker *w)
{
    if (worker_begin(w))
        return strstr(fail_message(), "rank 1 is on another host") ? 0 : -1;
    const char *transport = w->sync->transport;
    w->result = !transport ? NONE : strcmp(transport, "shm") ? TCP : SHM;
    return 0;
}

// Rank 1 enters a network namespace of its own, as an emulated host does.
static int refused_apart(struct worker *w)
{
    if (w->rank == 1 && unshare(CLONE_NEWNET))
        return -1;
    return choose_here(w);
}

// The same, but only asks the carrier and opens no connection.
static int choose_apart(struct worker *w)
{
    struct group_job job = {.name = "ring", .cluster = w->cluster};
    char why[128];
    if (w->rank == 1 && unshare(CLONE_NEWNET))
        return -1;
    int can = group_is_supported(&ring_shm, &job, why);
    w->result = can ? SHM : TCP;
    return can < 0 ? -1 : 0;
}

static uint64_t chosen(int world, const char *opts,
                       int (*body)(struct worker *w))
{
    struct setup s = {.world = world, .n = 10, .closed = true};
    uint64_t results[CASE_WORLDS];
    struct fixture f = fixtures[0];
    f.opts = opts;
    f.carriers = all;
    assert_int_equal(world_run(&f, &s, body, results), 0);
    for (int r = 1; r < world; r++)
        assert_true(results[r] == results[0]);
    return results[0];
}

static void shared_memory_is_chosen_on_one_host(void **state)
{
    (void)state;
    assert_int_equal(chosen(1, "", choose_here), NONE);
    assert_int_equal(chosen(3, "", choose_here), SHM);
    assert_int_equal(chosen(3, "transport=shm", choose_here), SHM);
    assert_int_equal(chosen(3, "transport=tcp", choose_here), TCP);
    if (geteuid() != 0) {
        print_message("not root: no other namespace to try\n");
        return;
    }
    assert_int_equal(chosen(3, "", choose_apart), TCP);
    assert_int_equal(chosen(3, "transport=shm", refused_apart), FAILS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers),
        cmocka_unit_test(many),
        cmocka_unit_test(replicas),
        cmocka_unit_test(reruns),
        cmocka_unit_test(overflow),
        cmocka_unit_test(divides_first),
        cmocka_unit_test(bytes),
        cmocka_unit_test(moves_state),
        cmocka_unit_test(broadcast),
        cmocka_unit_test(missing),
        cmocka_unit_test(killed),
        cmocka_unit_test(disagree),
        cmocka_unit_test(bits_equal_those_of_sockets),
        cmocka_unit_test(a_long_broadcast_is_exact),
        cmocka_unit_test(shared_memory_is_chosen_on_one_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
