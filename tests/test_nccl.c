// test_nccl.c - the backends over NCCL pass the cases that every backend must
// pass, without a GPU: queues are threads, and a fake NCCL uses shared memory.
//
// This tests our code: which queue waits for which event, what is in a buffer
// when it is used again, the order of the ring's messages, deadlines, and what
// happens when a rank is missing, dies, or NCCL reports an error.

#include "allreduce/library_carriers.h"
#include "device/busy.h"
#include "horovod_ring/carriers.h"
#include "sync/bucket.h"
#include "sync/replicas.h"
#include "tests/fake_nccl.h"
#include "tests/queue_device.h"
#include "tests/sync_cases.h"

#include "base/base.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/test.h"

// The bytes that NCCL is given and returns: the whole vector each way.
static void allreduce_law(const struct sync_job *job, int rank, int world,
                          enum dtype wire, uint64_t *out, uint64_t *in)
{
    (void)rank;
    *out = *in = world > 1 ? job->n * dtype_bytes(wire) : 0;
}

static void ring_plan(const struct sync_job *job, int rank, int world,
                      enum dtype wire, uint64_t *out, uint64_t *in)
{
    struct bucket *cut = NULL;
    int n = bucket_align(&cut, job->buckets, job->nbuckets, ring_nccl.grain);
    assert_true(n > 0);
    *out = *in = 0;
    for (int b = 0; world > 1 && b < n; b++) {
        const struct plan p = {.rank = rank,
                               .world = world,
                               .grain = ring_nccl.grain};
        const struct group_op sum = {.vector.n = cut[b].n};
        *out += plan_elements(&p, &sum, OUT) * dtype_bytes(wire);
        *in += plan_elements(&p, &sum, IN) * dtype_bytes(wire);
    }
    mem_free(cut);
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

static void sums_and_bytes_are_right(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        case_integers(both[i]);
        case_bytes(both[i]);
    }
}

static void replicas_and_reruns_have_the_same_bits(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        case_replicas(both[i]);
        case_reruns(both[i]);
    }
}

static void one_overflow_skips_the_step(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        case_overflow(both[i]);
        case_divides_first(both[i]);
    }
}

static void parameters_and_state_are_moved(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        case_bcast(both[i]);
        case_state(both[i]);
    }
}

static void faults_are_named(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        case_missing(both[i]);
        case_killed(both[i]);
        case_disagree(both[i]);
    }
}

// ---- errors that NCCL reports

static int bad_call(struct worker *w)
{
    struct sync_out out;
    if (!worker_step(w, 1, &out))
        return fail("the step succeeded");
    return fake_nccl_said("all_reduce: invalid argument");
}

static void an_error_of_nccl_is_reported(void **state)
{
    (void)state;
    struct setup s = {
        .world = 2, .n = 1000, .first = 100, .bucket = 500, .timeout_s = 5};
    fake_nccl_fault(FAKE_BAD_CALL);
    assert_int_equal(world_run(&allreduce, &s, bad_call, NULL), 0);
    fake_nccl_fault(FAKE_FINE);
}

// ---- one GPU for two ranks

static void same(const struct device *d, unsigned char id[DEVICE_ID])
{
    (void)d;
    memset(id, 7, DEVICE_ID);
}

static int open_twin(struct device **d)
{
    static struct device_ops ops;
    if (queue_device_open(d))
        return -1;
    ops = *(*d)->ops;
    ops.identity = same;
    (*d)->ops = &ops;
    return 0;
}

// The carrier after NCCL in the list is used, and rank 0 says why.
static int goes_through_the_host(struct worker *w)
{
    char text[512] = "";
    FILE *log = tmpfile();
    int was = dup(2);
    if (!log || was < 0 || dup2(fileno(log), 2) < 0)
        return fail("no log");
    int rc = worker_begin(w);
    dup2(was, 2);
    close(was);
    rewind(log);
    text[fread(text, 1, sizeof text - 1, log)] = '\0';
    fclose(log);
    bool told = strstr(text, "ring: ranks 0 and 1 share a GPU, which NCCL "
                             "refuses: gradients go through host memory");
    if (rc)
        return -1;
    if (strcmp(w->sync->transport, "shm"))
        return fail("uses %s", w->sync->transport);
    return told == (w->rank == 0) ? 0 : fail("says: %s", text);
}

static void two_ranks_on_one_gpu_use_host_memory(void **state)
{
    (void)state;
    static const struct group_ops *const carriers[] = {&ring_nccl, &ring_shm,
                                                       NULL};
    struct fixture twins = ring;
    struct setup s = {
        .world = 2, .n = 1000, .first = 100, .bucket = 500, .closed = true};
    twins.carriers = carriers;
    twins.device = open_twin;
    assert_int_equal(world_run(&twins, &s, goes_through_the_host, NULL), 0);
}

// ---- pointers that NCCL can copy fast between

static int aligned(struct worker *w)
{
    struct sync_out out;
    if (worker_step(w, 1, &out))
        return -1;
    return fake_nccl_unaligned() ? fail("%d pointers are no multiples of 16",
                                        fake_nccl_unaligned())
                                 : 0;
}

static void buckets_are_aligned(void **state)
{
    (void)state;
    for (int world = 2; world <= 4; world++) {
        struct setup s = {.world = world,
                          .n = 3001,
                          .first = 50,
                          .bucket = 1111};
        for (int i = 0; i < 2; i++)
            assert_int_equal(world_run(both[i], &s, aligned, NULL), 0);
    }
}

// ---- thread blocks

static int asks_for_blocks(struct worker *w)
{
    int want = strstr(w->text, "ctas=12") ? 12 : 0;
    return fake_nccl_ctas() == want ? 0 : fail("%d blocks", fake_nccl_ctas());
}

static void ctas_sets_the_thread_blocks(void **state)
{
    (void)state;
    struct setup s = {.world = 2, .n = 100, .first = 100, .bucket = 100};
    for (int i = 0; i < 4; i++) {
        snprintf(s.opts, sizeof s.opts, "%s", i % 2 ? "ctas=12" : "");
        assert_int_equal(world_run(both[i / 2], &s, asks_for_blocks, NULL), 0);
    }
}

// ---- compute waits on the device, not on the host

// Replicas have no step of their own, since sync.c updates.
static int only_follow(struct sync *s, const struct sync_in *in,
                       struct sync_out *out)
{
    (void)in, (void)out;
    return sync_replicas.follow(s);
}

static int sums_ones(struct worker *w)
{
    struct sync_out out;
    for (size_t i = 0; i < w->job.n; i++)
        w->job.grads[i] = 1;
    if (worker_step(w, 1, &out))
        return -1;
    for (size_t i = 0; i < w->job.n; i++)
        if (w->job.grads[i] != (float)w->world)
            return fail("element %zu: %g", i, (double)w->job.grads[i]);
    w->result = w->sync->stats.bytes_out;
    return 0;
}

static void compute_follows_the_sum(void **state)
{
    (void)state;
    struct sync_ops ops = sync_replicas;
    struct setup s = {.world = 2, .n = 2000, .first = 500, .bucket = 700};
    ops.step = only_follow;
    for (int i = 0; i < 2; i++) {
        struct fixture f = *both[i];
        uint64_t bytes[2];
        f.ops = &ops;
        assert_int_equal(world_run(&f, &s, sums_ones, bytes), 0);
        assert_true(bytes[0] > 0 && bytes[1] > 0); // bytes are counted
    }
}

// ---- busy time

// Device time is the number of commands on the queue here.
static int measured(struct worker *w)
{
    struct sync_out out;
    struct busy_step s;
    if (busy_open(w->dev))
        return -1;
    busy_step_begin(w->dev);
    int rc = worker_step(w, 1, &out);
    busy_step_end(w->dev);
    device_finish(w->dev);
    if (rc || !busy_take(w->dev, &s))
        return fail("no step was measured: %s", fail_message());
    busy_close(w->dev);
    w->result = s.at[DEVICE_COMM];
    return s.at[DEVICE_DOWN] || s.at[DEVICE_UP] ? fail("copied") : 0;
}

static void buckets_are_measured(void **state)
{
    (void)state;
    struct setup s = {.world = 2, .n = 2000, .first = 500, .bucket = 1000};
    uint64_t busy[2];
    assert_int_equal(world_run(&allreduce, &s, measured, busy), 0);
    assert_true(busy[0] == 3 && busy[1] == 3); // one command a bucket
    assert_int_equal(world_run(&ring, &s, measured, busy), 0);
    assert_true(busy[0] > 3 && busy[1] > 3); // two messages and an addition
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_and_bytes_are_right),
        cmocka_unit_test(replicas_and_reruns_have_the_same_bits),
        cmocka_unit_test(one_overflow_skips_the_step),
        cmocka_unit_test(parameters_and_state_are_moved),
        cmocka_unit_test(faults_are_named),
        cmocka_unit_test(an_error_of_nccl_is_reported),
        cmocka_unit_test(two_ranks_on_one_gpu_use_host_memory),
        cmocka_unit_test(buckets_are_aligned),
        cmocka_unit_test(ctas_sets_the_thread_blocks),
        cmocka_unit_test(compute_follows_the_sum),
        cmocka_unit_test(buckets_are_measured),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    fake_nccl_setup();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
