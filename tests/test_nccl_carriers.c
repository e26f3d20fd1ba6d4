// test_nccl_carriers.c - both carriers over NCCL pass the cases that every
// carrier must pass, without a GPU: queues are threads, and a fake NCCL uses
// shared memory (fake_nccl.h).
//
// This tests our code: which queue waits for which event, what is in a buffer
// when it is used again, the order of messages, deadlines, and what happens
// when a member is missing, dies, or NCCL reports an error.

#include "allreduce/library_carriers.h"
#include "device/busy.h"
#include "group/nccl.h"
#include "horovod_ring/carriers.h"
#include "horovod_ring/plan.h"
#include "tests/fake_nccl.h"
#include "tests/group_cases.h"
#include "tests/queue_device.h"

#include "base/base.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>

#include "tests/test.h"

// ---- the two carriers

static void given_bytes(const struct group *g, const struct group_op *op,
                        uint64_t *out, uint64_t *in)
{
    size_t n = op->vector.n, size = dtype_bytes(op->vector.wire);
    size_t own = group_chunk_of(&op->vector, g->job.grain, g->size, g->rank).n;
    bool root = g->rank == op->peer;
    const size_t given[] = {n, n, own, root ? n : 0, n, n, 0};
    const size_t taken[] = {n, own, n, root ? 0 : n, root ? n : 0, 0, n};
    *out = given[op->verb] * size;
    *in = taken[op->verb] * size;
}

static void ring_plan(const struct group *g, const struct group_op *op,
                      uint64_t *out, uint64_t *in)
{
    const struct plan p = {.rank = g->rank,
                           .world = g->size,
                           .grain = g->job.grain};
    size_t size = dtype_bytes(op->vector.wire);
    *out = plan_elements(&p, op, OUT) * size;
    *in = plan_elements(&p, op, IN) * size;
}

static const struct carried library = {
    .ops = &library_nccl,
    .device = queue_device_open,
    .in_order = true,
    .law = given_bytes,
};

static const struct carried ring = {
    .ops = &ring_nccl,
    .device = queue_device_open,
    .halves_bytes = true,
    .in_order = true,
    .law = ring_plan,
};

static const struct carried *const both[] = {&library, &ring};

static void verbs_give_exact_results(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        carry_verbs(both[i]);
}

static void large_vectors_travel_in_pieces(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        carry_large(both[i]);
}

// Only the ring: NCCL's own reduce_scatter and all_gather may add in another
// order than its all_reduce.
static void reduce_scatter_and_all_gather_are_all_reduce(void **state)
{
    (void)state;
    carry_halves(&ring);
}

static void a_thread_changes_no_bit(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        carry_threads(both[i]);
}

static void two_groups_can_be_interleaved(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        carry_groups(both[i]);
}

static void a_missing_member_is_named(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        carry_missing(both[i]);
}

static void pairs_send_and_receive(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        carry_pairs(both[i]);
}

static void chunks_may_have_any_length(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        carry_uneven(both[i]);
}

static void all_to_all_moves_each_part(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        carry_all_to_all(both[i]);
}

// ---- cases of this file alone

static int run(const struct carried *c, enum fake_fault fault, double timeout_s,
               int (*body)(struct member *m), uint64_t *results)
{
    struct carry_setup s = {.world = 2,
                            .grain = 1,
                            .pairs = true,
                            .timeout_s = timeout_s};
    fake_nccl_fault(fault);
    int bad = carry_run(c, &s, body, results);
    fake_nccl_fault(FAKE_FINE);
    return bad;
}

static int post_sum(struct member *m, struct trial *t)
{
    *t = (struct trial){
        .op = trial_op(m, GROUP_ALL_REDUCE, 1000, DTYPE_F32, DTYPE_F32, 0)};
    trial_fill(m, t);
    return trial_post(m, m->group, t);
}

// ---- a member dies

static int killed_body(struct member *m)
{
    struct trial t;
    if (post_sum(m, &t) || group_await(m->group, t.ticket))
        return -1;
    if (m->rank == 1)
        raise(SIGKILL);
    if (!post_sum(m, &t) && !group_await(m->group, t.ticket))
        return fail("succeeds without rank 1");
    return strstr(fail_message(), "dp: waited 1.5 s for the other ranks: "
                                  "cluster: rank 1")
               ? 0
               : fail("does not name rank 1: %.200s", fail_message());
}

static void a_killed_member_is_named(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        assert_int_equal(run(both[i], FAKE_FINE, 1.5, killed_body, NULL), 1);
}

// ---- errors that NCCL reports

static int has_no_id(struct member *m)
{
    if (cluster_barrier(m->cluster))
        return -1;
    fake_nccl_fault(FAKE_NO_ID);
    struct group *g = member_open(m, "tp");
    if (g) {
        group_close(&g);
        return fail("opened without an id");
    }
    return strstr(fail_message(), "tp: NCCL starts no communicator on rank 0: "
                                  "unhandled system error")
               ? 0
               : fail("says: %.200s", fail_message());
}

static int never_joins(struct member *m)
{
    if (cluster_barrier(m->cluster))
        return -1;
    fake_nccl_fault(FAKE_NEVER_JOINS);
    struct group *g = member_open(m, "tp");
    if (g) {
        group_close(&g);
        return fail("opened, though no rank joined");
    }
    return fake_nccl_said("tp: joining the ranks: not done within 1.5 s");
}

static int bad_call(struct member *m)
{
    struct trial t;
    if (!post_sum(m, &t))
        return fail("the sum succeeded");
    return fake_nccl_said("dp: all_reduce: invalid argument");
}

static int lost_peer(struct member *m)
{
    struct trial t;
    if (cluster_barrier(m->cluster)) // both are open
        return -1;
    if (m->rank == 1)
        return cluster_barrier(m->cluster); // rank 0 asks all ranks
    if (post_sum(m, &t))
        return -1;
    fake_nccl_fault(FAKE_LOST_PEER);
    if (!group_await(m->group, t.ticket))
        return fail("succeeds, though its peer is lost");
    return fake_nccl_said("dp: a peer is lost (remote process exited)");
}

static void errors_of_nccl_are_reported(void **state)
{
    (void)state;
    assert_int_equal(run(&ring, FAKE_FINE, 5, has_no_id, NULL), 0);
    assert_int_equal(run(&ring, FAKE_FINE, 1.5, never_joins, NULL), 0);
    assert_int_equal(run(&library, FAKE_BAD_CALL, 5, bad_call, NULL), 0);
    assert_int_equal(run(&library, FAKE_FINE, 5, lost_peer, NULL), 0);
}

// ---- after each call a communicator is "in progress" for a while

static int sleeps; // of this process

void __real_sleep_ns(uint64_t ns);
void __wrap_sleep_ns(uint64_t ns);

void __wrap_sleep_ns(uint64_t ns)
{
    sleeps++;
    __real_sleep_ns(ns);
}

static int posts(struct member *m)
{
    struct trial t;
    fake_nccl_looks(100);
    sleeps = 0;
    if (post_sum(m, &t))
        return -1;
    m->result = (uint64_t)sleeps;
    fake_nccl_looks(3);
    if (prctl(PR_GET_TIMERSLACK) != 1)
        return fail("sleeps last %d ns longer", prctl(PR_GET_TIMERSLACK));
    return group_await(m->group, t.ticket) || trial_check(m, &t) ? -1 : 0;
}

static void posting_does_not_sleep(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        uint64_t slept[CARRY_MANY];
        assert_int_equal(run(both[i], FAKE_FINE, 0, posts, slept), 0);
        assert_true(slept[0] == 0 && slept[1] == 0);
    }
}

// ---- one GPU for two members

static void same(const struct device *d, unsigned char id[DEVICE_ID])
{
    (void)d;
    memset(id, 7, DEVICE_ID);
}

static int shares(struct member *m)
{
    static struct device_ops ops;
    struct device twin = *m->dev;
    struct group_job job = {.cluster = m->cluster, .dev = m->dev};
    char why[128] = "";
    if (ring_nccl.is_supported(&job, why) != 1)
        return fail("two devices are refused: %s", why);
    ops = *m->dev->ops;
    ops.identity = same;
    twin.ops = &ops;
    job.dev = &twin;
    if (library_nccl.is_supported(&job, why) != 0)
        return fail("one device for two ranks is accepted");
    if (strcmp(why, "ranks 0 and 1 share a GPU, which NCCL refuses"))
        return fail("the reason is: %s", why);
    ops.host = true;
    return ring_nccl.is_supported(&job, why) ? fail("host memory works") : 0;
}

static void one_gpu_for_two_members_is_refused(void **state)
{
    (void)state;
    assert_int_equal(run(&ring, FAKE_FINE, 0, shares, NULL), 0);
}

// ---- busy time

// Device time is the number of commands on the queue here.
static int measured(struct member *m)
{
    struct trial t;
    struct busy_step s;
    if (busy_open(m->dev))
        return -1;
    busy_step_begin(m->dev);
    int rc = post_sum(m, &t) || group_await(m->group, t.ticket);
    busy_step_end(m->dev);
    device_finish(m->dev);
    if (rc || !busy_take(m->dev, &s))
        return fail("no step was measured: %s", fail_message());
    m->result = s.at[DEVICE_COMM];
    busy_close(m->dev);
    return s.at[DEVICE_DOWN] || s.at[DEVICE_UP] ? fail("copied") : 0;
}

static void verbs_are_measured(void **state)
{
    (void)state;
    uint64_t busy[CARRY_MANY];
    assert_int_equal(run(&library, FAKE_FINE, 0, measured, busy), 0);
    assert_true(busy[0] == 1 && busy[1] == 1);
    assert_int_equal(run(&ring, FAKE_FINE, 0, measured, busy), 0);
    assert_true(busy[0] == 3 && busy[1] == 3); // two messages and an addition
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verbs_give_exact_results),
        cmocka_unit_test(large_vectors_travel_in_pieces),
        cmocka_unit_test(reduce_scatter_and_all_gather_are_all_reduce),
        cmocka_unit_test(a_thread_changes_no_bit),
        cmocka_unit_test(two_groups_can_be_interleaved),
        cmocka_unit_test(a_missing_member_is_named),
        cmocka_unit_test(pairs_send_and_receive),
        cmocka_unit_test(chunks_may_have_any_length),
        cmocka_unit_test(all_to_all_moves_each_part),
        cmocka_unit_test(a_killed_member_is_named),
        cmocka_unit_test(errors_of_nccl_are_reported),
        cmocka_unit_test(posting_does_not_sleep),
        cmocka_unit_test(one_gpu_for_two_members_is_refused),
        cmocka_unit_test(verbs_are_measured),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    fake_nccl_setup();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
