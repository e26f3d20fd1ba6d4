// test_nccl.c - the backends over NCCL against what every backend must pass,
// with no GPU: the queues are threads, and NCCL is our own over shared memory.
//
// What is tested is ours: which queue waits for which event, what is in a
// buffer when it is used again, the ring's timetable, deadlines, and what is
// done when a rank is missing, dies, or NCCL reports an error.

#include "allreduce/carriers.h"
#include "device/busy.h"
#include "group/nccl.h"
#include "horovod_ring/carriers.h"
#include "sync/replicas.h"
#include "tests/fake_nccl.h"
#include "tests/queue_device.h"
#include "tests/sync_cases.h"

#include "base/base.h"
#include "cluster/cluster.h"

#include <unistd.h>

#include "tests/test.h"

// Handed over: S out, S in.
static void allreduce_law(const struct sync_job *job, int rank, int world,
                          enum dtype wire, uint64_t *out, uint64_t *in)
{
    (void)rank;
    *out = *in = world > 1 ? job->n * dtype_bytes(wire) : 0;
}

static void ring_plan(const struct sync_job *job, int rank, int world,
                      enum dtype wire, uint64_t *out, uint64_t *in)
{
    *out = *in = 0;
    for (int b = 0; world > 1 && b < job->nbuckets; b++) {
        const struct plan p = {.rank = rank, .world = world, .grain = 1};
        const struct group_op sum = {.vector.n = job->buckets[b].n};
        *out += plan_elements(&p, &sum, OUT) * dtype_bytes(wire);
        *in += plan_elements(&p, &sum, IN) * dtype_bytes(wire);
    }
}

static const struct group_ops *const library[] = {&library_nccl, NULL};
static const struct group_ops *const own[] = {&ring_nccl, NULL};

static const struct fixture allreduce = {
    .sync = "allreduce",
    .ops = &sync_replicas,
    .carriers = library,
    .opts = "",
    .device = queue_device_open,
    .silent_deaths = true,
    .law = allreduce_law,
};

static const struct fixture ring = {
    .sync = "ring",
    .ops = &sync_replicas,
    .carriers = own,
    .opts = "",
    .device = queue_device_open,
    .silent_deaths = true,
    .law = ring_plan,
};

static const struct fixture *const both[] = {&allreduce, &ring};

static void sums(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        case_integers(both[i]);
        case_bytes(both[i]);
    }
}

static void replicas_and_reruns(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        case_replicas(both[i]);
        case_reruns(both[i]);
    }
}

static void overflow(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        case_overflow(both[i]);
        case_divides_first(both[i]);
    }
}

static void vectors(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        case_bcast(both[i]);
        case_state(both[i]);
    }
}

static void faults(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        case_missing(both[i]);
        case_killed(both[i]);
        case_disagree(both[i]);
    }
}

// ---- what NCCL reports

static int says(const char *what)
{
    if (!strstr(fail_message(), what))
        return fail("does not say \"%s\": %.200s", what, fail_message());
    if (fake_nccl_aborted() != 1)
        return fail("aborted %d times", fake_nccl_aborted());
    return 0;
}

static int never_joins(struct worker *w)
{
    if (!worker_begin(w))
        return fail("opened, though nobody joined");
    return says("joining the ranks: not done within 5 s");
}

static int bad_call(struct worker *w)
{
    struct sync_out out;
    if (!worker_step(w, 1, &out))
        return fail("worked");
    return says("all_reduce: invalid argument");
}

static int lost_peer(struct worker *w)
{
    struct device_event e;
    struct nccl n;
    if (nccl_open(&n, w->cluster, w->dev, "test") ||
        nccl_asked(&n,
                   ncclBroadcast(w->job.params, w->job.params,
                                 w->rank ? w->job.n : 0, ncclFloat32, 0, n.comm,
                                 n.stream),
                   "broadcast") ||
        device_record(w->dev, &e, DEVICE_COMM) || cluster_barrier(w->cluster))
        return -1;
    fake_nccl_fault(FAKE_LOST_PEER);
    int rc = 0;
    if (!w->rank)
        rc = cluster_barrier(w->cluster); // answers rank 1, who asks around
    else if (!nccl_await(&n, &e))
        rc = fail("came, though its peer is lost");
    else
        rc = says("a peer is lost (remote process exited)");
    device_finish(w->dev);
    n.lost = true; // rank 0's peer is not there to leave together
    nccl_close(&n);
    return rc;
}

static void run(enum fake_fault fault, int (*body)(struct worker *w),
                bool closed)
{
    struct setup s = {.world = 2,
                      .n = 1000,
                      .first = 100,
                      .bucket = 500,
                      .timeout_s = 5,
                      .closed = closed};
    fake_nccl_fault(fault);
    assert_int_equal(world_run(&allreduce, &s, body, NULL), 0);
    fake_nccl_fault(FAKE_FINE);
}

static void errors(void **state)
{
    (void)state;
    run(FAKE_NEVER_JOINS, never_joins, true);
    run(FAKE_BAD_CALL, bad_call, false);
    run(FAKE_FINE, lost_peer, true);
}

// ---- meters

// Device time is commands here: what was asked of the queue for the buckets.
static int measured(struct worker *w)
{
    struct sync_out out;
    struct busy_step s;
    if (busy_open(w->dev) || busy_step_begin(w->dev) ||
        worker_step(w, 1, &out) || busy_step_end(w->dev) ||
        device_finish(w->dev) || busy_take(w->dev, &s) != 1)
        return fail("no step was measured: %s", fail_message());
    busy_close(w->dev);
    w->result = s.at[DEVICE_COMM];
    return s.at[DEVICE_DOWN] || s.at[DEVICE_UP] ? fail("copies") : 0;
}

static void buckets_are_measured(void **state)
{
    (void)state;
    struct setup s = {.world = 2, .n = 1000, .first = 100, .bucket = 500};
    uint64_t busy[2];
    assert_int_equal(world_run(&allreduce, &s, measured, busy), 0);
    assert_true(busy[0] == 3 && busy[1] == 3); // one command a bucket
    assert_int_equal(world_run(&ring, &s, measured, busy), 0);
    assert_true(busy[0] > 3 && busy[1] > 3); // two messages and an addition
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums),
        cmocka_unit_test(replicas_and_reruns),
        cmocka_unit_test(overflow),
        cmocka_unit_test(vectors),
        cmocka_unit_test(faults),
        cmocka_unit_test(errors),
        cmocka_unit_test(buckets_are_measured),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    fake_nccl_setup();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
