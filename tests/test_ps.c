// test_ps.c - sps and dps pass the cases that every backend must pass. There is
// one server, one beside each worker, or three. Servers update, or workers do.

#include "base/base.h"
#include "ps_worker/ps_worker.h"
#include "tests/ps_servers.h"
#include "tests/queue_device.h"
#include "tests/sync_cases.h"

#include "ps_wire/shard.h"
#include "ps_wire/wire.h"

#include <stdlib.h>

#include "tests/test.h"

static int start(int world, int n, char opts[CASE_TEXT], void **state)
{
    struct ps_servers *s = mem_alloc(1, sizeof *s);
    size_t at = strlen(opts);
    (void)world;
    *state = s;
    if (!s || ps_servers_start(s, n, n % 2 ? 1 : 2, 20, ""))
        return -1;
    return text_into(opts + at, CASE_TEXT - at, "%sservers=%s", at ? "," : "",
                     s->endpoints);
}

static int start_one(int world, char opts[CASE_TEXT], void **state)
{
    return start(world, 1, opts, state);
}

static int start_beside(int world, char opts[CASE_TEXT], void **state)
{
    return start(world, world, opts, state);
}

static int start_three(int world, char opts[CASE_TEXT], void **state)
{
    return start(world, 3, opts, state);
}

static void stop(void *state)
{
    ps_servers_stop(state);
    mem_free(state);
}

// The whole gradient goes out, and the whole sum comes in.
static void law_sps(const struct sync_job *job, int rank, int world,
                    enum dtype wire, uint64_t *out, uint64_t *in)
{
    (void)rank;
    (void)world;
    *out = *in = job->n * dtype_bytes(wire);
}

// The same, but parameters come back, and always as float32.
static void law_sps_update(const struct sync_job *job, int rank, int world,
                           enum dtype wire, uint64_t *out, uint64_t *in)
{
    law_sps(job, rank, world, wire, out, in);
    *in = job->n * sizeof(float);
}

// Counts the bytes of a host: those that its worker and the server beside it
// send to other hosts.
static void law_dps(const struct sync_job *job, int rank, int world,
                    enum dtype wire, uint64_t *out, uint64_t *in)
{
    struct shard s;
    size_t slice = (job->n + (size_t)world - 1) / (size_t)world;
    assert_int_equal(shard_make(&s, job->n, slice < 256 ? slice : 256, world,
                                rank),
                     0);
    size_t own = shard_elements(&s);
    *out = (job->n - own) * dtype_bytes(wire) +
           (size_t)(world - 1) * own * dtype_bytes(wire);
    *in = *out;
}

static const struct fixture sps = {
    .sync = "sps",
    .ops = &sync_servers,
    .opts = "slice_kb=1",
    .start = start_one,
    .stop = stop,
    .law = law_sps,
};

static const struct fixture sps_update = {
    .sync = "sps",
    .ops = &sync_servers,
    .opts = "slice_kb=1,update=server",
    .start = start_one,
    .stop = stop,
    .law = law_sps_update,
};

static const struct fixture dps = {
    .sync = "dps",
    .ops = &sync_servers,
    .opts = "slice_kb=1",
    .start = start_beside,
    .stop = stop,
    .law = law_dps,
};

static const struct fixture dps_three = {
    .sync = "dps",
    .ops = &sync_servers,
    .opts = "slice_kb=1",
    .start = start_three,
    .stop = stop,
};

static const struct fixture dps_worker = {
    .sync = "dps",
    .ops = &sync_servers,
    .opts = "slice_kb=1,update=worker,priority=0",
    .start = start_three,
    .stop = stop,
};

// Buffers are staged, as on a GPU.
static const struct fixture sps_staged = {
    .sync = "sps",
    .ops = &sync_servers,
    .opts = "slice_kb=1,update=server",
    .device = queue_device_open,
    .few = true,
    .start = start_one,
    .stop = stop,
    .law = law_sps_update,
};

static const struct fixture dps_staged = {
    .sync = "dps",
    .ops = &sync_servers,
    .opts = "slice_kb=1",
    .device = queue_device_open,
    .few = true,
    .start = start_beside,
    .stop = stop,
    .law = law_dps,
};

#define CASES(name)                                                            \
    static void name##_cases_integers(void **state)                            \
    {                                                                          \
        (void)state;                                                           \
        case_integers(&name);                                                  \
        case_many(&name);                                                      \
    }                                                                          \
    static void name##_cases_rest(void **state)                                \
    {                                                                          \
        (void)state;                                                           \
        case_replicas(&name);                                                  \
        case_reruns(&name);                                                    \
        case_overflow(&name);                                                  \
        case_divides_first(&name);                                             \
        case_bcast(&name);                                                     \
        case_state(&name);                                                     \
        if (name.law)                                                          \
            case_bytes(&name);                                                 \
    }                                                                          \
    static void name##_cases_faults(void **state)                              \
    {                                                                          \
        (void)state;                                                           \
        case_missing(&name);                                                   \
        case_killed(&name);                                                    \
        case_disagree(&name);                                                  \
    }

// The bytes of the heads that a worker sends in a step: one head for each row,
// and for each server a STEP with its numbers. Worker 0 adds up the norms of
// several servers, and sends each server a COMMIT. The test does not count the
// heads that come in: PINGs are among them, and these depend on the clock.
static size_t heads_sent(const struct worker *w, int servers)
{
    size_t heads = 0, most = (w->job.n + (size_t)servers - 1) / (size_t)servers;
    for (int i = 0; i < servers; i++) {
        struct shard s;
        if (!strcmp(w->fixture->sync, "dps") && servers == w->world &&
            i == w->rank)
            continue; // beside this worker
        assert_int_equal(shard_make(&s, w->job.n, most < 256 ? most : 256,
                                    servers, i),
                         0);
        heads += (size_t)shard_rows(&s) * PS_HEAD + PS_HEAD + PS_STEP_BYTES;
        if (w->rank == 0 && servers > 1)
            heads += PS_HEAD;
    }
    return heads;
}

static int heads_body(struct worker *w)
{
    int servers = 0;
    for (const char *p = w->text; (p = strstr(p, "://")); p++)
        servers++;
    for (int step = 1; step <= 3; step++) {
        struct sync_out out;
        uint64_t before = w->sync->stats.head_out;
        worker_normals(w, step);
        if (worker_step(w, step, &out))
            return -1;
        uint64_t sent = w->sync->stats.head_out - before;
        if (sent != heads_sent(w, servers))
            return fail("rank %d of %d, %d servers: %llu bytes of heads, "
                        "want %zu",
                        w->rank, w->world, servers, (unsigned long long)sent,
                        heads_sent(w, servers));
    }
    return 0;
}

static void heads(const struct fixture *f)
{
    for (int world = 1; world <= CASE_WORLDS; world++) {
        struct setup s = {.world = world, .n = 5003, .bucket = 1500};
        assert_int_equal(world_run(f, &s, heads_body, NULL), 0);
    }
}

static void sps_cases_heads(void **state)
{
    (void)state;
    heads(&sps_update);
}

static void dps_cases_heads(void **state)
{
    (void)state;
    heads(&dps);
    heads(&dps_three);
}

static void staged(const struct fixture *f)
{
    case_integers(f);
    case_overflow(f);
    case_bcast(f);
    case_state(f);
    case_bytes(f);
}

static void sps_cases_staged(void **state)
{
    (void)state;
    staged(&sps_staged);
}

static void dps_cases_staged(void **state)
{
    (void)state;
    staged(&dps_staged);
}

CASES(sps)
CASES(sps_update)
CASES(dps)
CASES(dps_worker)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sps_cases_integers),
        cmocka_unit_test(sps_cases_rest),
        cmocka_unit_test(sps_cases_faults),
        cmocka_unit_test(sps_cases_heads),
        cmocka_unit_test(sps_cases_staged),
        cmocka_unit_test(dps_cases_integers),
        cmocka_unit_test(dps_cases_rest),
        cmocka_unit_test(dps_cases_faults),
        cmocka_unit_test(dps_cases_heads),
        cmocka_unit_test(dps_cases_staged),
        cmocka_unit_test(sps_update_cases_integers),
        cmocka_unit_test(sps_update_cases_rest),
        cmocka_unit_test(sps_update_cases_faults),
        cmocka_unit_test(dps_worker_cases_integers),
        cmocka_unit_test(dps_worker_cases_rest),
        cmocka_unit_test(dps_worker_cases_faults),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : "sps_cases*");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
