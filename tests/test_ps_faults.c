// test_ps_faults.c - what servers and workers do when the other side dies,
// joins late, lies, or speaks nonsense. Servers and workers are processes.

#include "base/base.h"
#include "base/rng.h"
#include "cluster/cluster.h"
#include "cluster/curve.h"
#include "config/config.h"
#include "device/device.h"
#include "optim/optim.h"
#include "ps_wire/job.h"
#include "ps_wire/wire.h"
#include "ps_worker/ps_worker.h"
#include "sync/bucket.h"
#include "tests/ps_servers.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#include "tests/test.h"

enum { WORLD = 4, BUCKETS = 16, N = 3000 };

// What the processes of a test tell each other.
struct board {
    atomic_int step[WORLD]; // done by each worker
    atomic_int go;
    struct {
        int rc;
        uint64_t joined, hash;
        char why[512];
    } end[WORLD];
};

static struct board *board;

struct job {
    int world;
    const char *opts, *endpoints, *curve;
    double timeout_s;
    int steps, pause_us;
};

struct worker {
    const struct job *job;
    int rank;
    struct cluster cluster;
    struct sync_job sync_job;
    struct sync *sync;
};

static int no_gather(struct cluster *c, const void *in, void *out, size_t bytes)
{
    memset(out, 0, bytes * (size_t)c->world);
    memcpy(out, in, bytes);
    return 0;
}

static const struct cluster_ops nobody = {.name = "test",
                                          .allgather = no_gather};

static int worker_open(struct worker *w)
{
    static struct optim_config optim = {.kind = OPTIM_SGD};
    static struct bucket buckets[BUCKETS];
    const struct job *j = w->job;
    char text[1024];
    struct device *dev;
    struct opts *opts;
    int nb = bucket_cut(buckets, BUCKETS, N, N / 5 + 1, N / 3 + 1);
    w->cluster = (struct cluster){.ops = &nobody,
                                  .rank = w->rank,
                                  .world = j->world,
                                  .timeout_s = j->timeout_s,
                                  .curve = j->curve};
    if (text_into(text, sizeof text, "slice_kb=1,%s,servers=%s", j->opts,
                  j->endpoints) ||
        opts_open(&opts, text) || device_open(&dev, "cpu"))
        return -1;
    w->sync_job = (struct sync_job){
        .cluster = &w->cluster,
        .dev = dev,
        .params = mem_alloc(N, sizeof(float)),
        .grads = mem_alloc(N, sizeof(float)),
        .n = N,
        .buckets = buckets,
        .nbuckets = nb,
        .optim = &optim,
        .opts = opts,
    };
    for (int i = 0; i < N; i++)
        w->sync_job.params[i] = (float)i;
    w->sync = sync_open(strchr(j->endpoints, ',') ? &sync_dps : &sync_sps,
                        &w->sync_job);
    return w->sync && !sync_bcast(w->sync) ? 0 : -1;
}

// Steps in which every gradient is 1, so that each update takes 1 off every
// parameter, however many workers were in it.
static int train(struct worker *w)
{
    const struct job *j = w->job;
    if (worker_open(w))
        return -1;
    board->end[w->rank].joined = w->sync->joined;
    for (int step = (int)w->sync->joined + 1; step <= j->steps; step++) {
        struct sync_out out;
        struct sync_in in = {.step = step,
                             .lr = 1,
                             .grad_scale = 1.0f / (float)j->world};
        usleep((useconds_t)j->pause_us);
        for (int i = 0; i < N; i++)
            w->sync_job.grads[i] = 1;
        for (int b = 0; b < w->sync_job.nbuckets; b++)
            if (sync_ready(w->sync, b))
                return -1;
        if (sync_step(w->sync, &in, &out))
            return -1;
        if (strstr(j->opts, "consistency") == NULL)
            for (int i = 0; i < N; i++)
                if (w->sync_job.params[i] != (float)(i - step))
                    return fail("step %d: parameter %d is %g", step, i,
                                (double)w->sync_job.params[i]);
        atomic_store(&board->step[w->rank], step);
    }
    return 0;
}

static pid_t worker_start(const struct job *j, int rank)
{
    board->end[rank].rc = 99;
    atomic_store(&board->step[rank], 0);
    pid_t pid = fork();
    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    log_set_rank(rank);
    struct worker w = {.job = j, .rank = rank};
    int rc = train(&w);
    if (rc)
        snprintf(board->end[rank].why, sizeof board->end[rank].why, "%s",
                 fail_message());
    else
        board->end[rank].hash =
            hash_bytes(w.sync_job.params, N * sizeof(float));
    sync_close(&w.sync);
    board->end[rank].rc = rc;
    _exit(rc ? 1 : 0);
}

static void await_step(int rank, int step)
{
    for (int ms = 0; atomic_load(&board->step[rank]) < step; ms++) {
        assert_true(ms < 20000);
        usleep(1000);
    }
}

static void join(pid_t pid)
{
    int status;
    for (int ms = 0; waitpid(pid, &status, WNOHANG) == 0; ms++) {
        assert_true(ms < 30000);
        usleep(1000);
    }
}

// ---- elastic: a worker dies, the others go on; one joins later

static void dies_and_joins(const char *opts, int servers)
{
    struct ps_servers s;
    pid_t pids[WORLD];
    assert_int_equal(ps_servers_start(&s, servers, 1, 20, ""), 0);
    struct job j = {.world = 3,
                    .opts = opts,
                    .endpoints = s.endpoints,
                    .curve = "",
                    .timeout_s = 15,
                    .steps = 150,
                    .pause_us = 3000};
    for (int r = 0; r < 3; r++)
        pids[r] = worker_start(&j, r);
    await_step(1, 20);
    kill(pids[1], SIGKILL);
    join(pids[1]);
    int at = atomic_load(&board->step[0]);
    await_step(0, at + 20); // they go on
    pids[1] = worker_start(&j, 1);
    for (int r = 0; r < 3; r++)
        join(pids[r]);
    for (int r = 0; r < 3; r++) {
        if (board->end[r].rc)
            print_message("rank %d: %s\n", r, board->end[r].why);
        assert_int_equal(board->end[r].rc, 0);
    }
    print_message("rank 1 joined after %llu updates\n",
                  (unsigned long long)board->end[1].joined);
    assert_true(board->end[1].joined >= 20);
    assert_true(board->end[1].joined < 150);
    if (!strstr(opts, "consistency")) // the replicas are equal again
        assert_true(board->end[0].hash == board->end[1].hash &&
                    board->end[0].hash == board->end[2].hash);
    assert_int_equal(ps_servers_stop(&s), servers);
}

static void elastic_bsp(void **state)
{
    (void)state;
    dies_and_joins("elastic=1", 1);
    dies_and_joins("elastic=1", 3);
    dies_and_joins("elastic=1,wire=fp16", 2);
}

static void elastic_async(void **state)
{
    (void)state;
    dies_and_joins("elastic=1,consistency=ssp:2", 1);
    dies_and_joins("elastic=1,consistency=asp", 2);
}

// Killed at any moment: again and again, with several servers.
static void elastic_at_any_moment(void **state)
{
    (void)state;
    for (int round = 0; round < 12; round++) {
        struct ps_servers s;
        pid_t pids[WORLD];
        assert_int_equal(ps_servers_start(&s, 1 + round % 3, 1, 20, ""), 0);
        struct job j = {.world = 3,
                        .opts = "elastic=1",
                        .endpoints = s.endpoints,
                        .curve = "",
                        .timeout_s = 10,
                        .steps = 40,
                        .pause_us = 0};
        for (int r = 0; r < 3; r++)
            pids[r] = worker_start(&j, r);
        int victim = round % 3;
        await_step(victim, 2);
        usleep((useconds_t)rng_below(5, (uint64_t)round, 8000));
        kill(pids[victim], SIGKILL);
        for (int r = 0; r < 3; r++)
            join(pids[r]);
        for (int r = 0; r < 3; r++) {
            if (r != victim && board->end[r].rc)
                print_message("rank %d: %s\n", r, board->end[r].why);
            assert_true(r == victim || board->end[r].rc == 0);
        }
        assert_int_equal(ps_servers_stop(&s), 1 + round % 3);
    }
}

// ---- without it the job ends, and everybody knows why

static void server_dies(void **state)
{
    (void)state;
    for (int servers = 1; servers <= 2; servers++) {
        struct ps_servers s;
        pid_t pids[2];
        assert_int_equal(ps_servers_start(&s, servers, 1, 5, ""), 0);
        struct job j = {.world = 2,
                        .opts = "wire=fp32",
                        .endpoints = s.endpoints,
                        .curve = "",
                        .timeout_s = 5,
                        .steps = 100000,
                        .pause_us = 1000};
        for (int r = 0; r < 2; r++)
            pids[r] = worker_start(&j, r);
        await_step(1, 5);
        kill(s.pids[servers - 1], SIGKILL);
        for (int r = 0; r < 2; r++) {
            join(pids[r]);
            assert_int_equal(board->end[r].rc, -1);
            print_message("rank %d: %s\n", r, board->end[r].why);
            assert_non_null(strstr(board->end[r].why, "127.0.0.1"));
        }
        ps_servers_stop(&s);
    }
}

static void nobody_there(void **state)
{
    (void)state;
    struct job j = {.world = 1,
                    .opts = "wire=fp32",
                    .endpoints = "tcp://127.0.0.1:9",
                    .curve = "",
                    .timeout_s = 0.5};
    join(worker_start(&j, 0));
    assert_non_null(strstr(board->end[0].why, "tcp://127.0.0.1:9"));
    assert_non_null(strstr(board->end[0].why, "0.5 s"));

    struct ps_servers s; // and one of two workers missing
    assert_int_equal(ps_servers_start(&s, 1, 1, 5, ""), 0);
    j.endpoints = s.endpoints;
    j.world = 2;
    j.timeout_s = 1;
    join(worker_start(&j, 0));
    print_message("%s\n", board->end[0].why);
    assert_non_null(strstr(board->end[0].why, "rank 1"));
    assert_int_equal(ps_servers_stop(&s), 0);
}

static void same_rank_twice(void **state)
{
    (void)state;
    struct ps_servers s;
    pid_t pids[2];
    assert_int_equal(ps_servers_start(&s, 1, 1, 5, ""), 0);
    struct job j = {.world = 2,
                    .opts = "wire=fp32",
                    .endpoints = s.endpoints,
                    .curve = "",
                    .timeout_s = 2,
                    .steps = 1};
    pids[0] = worker_start(&j, 0);
    usleep(300000);
    pids[1] = worker_start(&j, 0);
    join(pids[1]);
    assert_non_null(strstr(board->end[0].why, "rank 0 already"));
    pids[1] = worker_start(&j, 1);
    join(pids[0]);
    join(pids[1]);
    assert_int_equal(board->end[0].rc, 0);
    ps_servers_stop(&s);
}

// ---- keys

static void remove_keys(const char *dir)
{
    const char *names[] = {"server.public", "server.secret", "worker.public",
                           "worker.secret"};
    char path[256];
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        unlink(path);
    }
    rmdir(dir);
}

static void keys(void **state)
{
    (void)state;
    char dir[] = "/tmp/keysXXXXXX", other[] = "/tmp/keysXXXXXX";
    struct ps_servers s;
    pid_t pids[2];
    assert_non_null(mkdtemp(dir));
    assert_non_null(mkdtemp(other));
    assert_int_equal(curve_make(dir), 0);
    assert_int_equal(curve_make(other), 0);
    assert_int_equal(ps_servers_start(&s, 2, 1, 5, dir), 0);
    struct job j = {.world = 2,
                    .opts = "wire=fp32",
                    .endpoints = s.endpoints,
                    .curve = "",
                    .timeout_s = 1,
                    .steps = 3};
    join(worker_start(&j, 0)); // no key
    assert_int_equal(board->end[0].rc, -1);
    print_message("no key: %s\n", board->end[0].why);
    j.curve = other;
    join(worker_start(&j, 0)); // a wrong one
    assert_int_equal(board->end[0].rc, -1);
    print_message("a wrong key: %s\n", board->end[0].why);
    j.curve = dir;
    j.timeout_s = 10;
    for (int r = 0; r < 2; r++)
        pids[r] = worker_start(&j, r);
    for (int r = 0; r < 2; r++) {
        join(pids[r]);
        assert_int_equal(board->end[r].rc, 0);
    }
    assert_int_equal(ps_servers_stop(&s), 2);
    remove_keys(dir);
    remove_keys(other);
}

// ---- nonsense

// A peer that says whatever we like.
struct liar {
    void *context, *socket;
};

static void liar_open(struct liar *l, const char *endpoint)
{
    int wait_ms = 3000, linger = 100;
    l->context = zmq_ctx_new();
    l->socket = zmq_socket(l->context, ZMQ_DEALER);
    zmq_setsockopt(l->socket, ZMQ_RCVTIMEO, &wait_ms, sizeof wait_ms);
    zmq_setsockopt(l->socket, ZMQ_SNDTIMEO, &wait_ms, sizeof wait_ms);
    zmq_setsockopt(l->socket, ZMQ_LINGER, &linger, sizeof linger);
    assert_int_equal(zmq_connect(l->socket, endpoint), 0);
}

static void liar_close(struct liar *l)
{
    zmq_close(l->socket);
    zmq_ctx_term(l->context);
}

// False where nobody takes it any more: the job is over.
static bool say(struct liar *l, const void *head, size_t head_bytes,
                const void *data, size_t bytes)
{
    return zmq_send(l->socket, head, head_bytes, ZMQ_SNDMORE) >= 0 &&
           zmq_send(l->socket, data, bytes, 0) >= 0;
}

static void say_head(struct liar *l, struct ps_head h, const void *data,
                     size_t bytes)
{
    uint8_t raw[PS_HEAD];
    ps_head_put(raw, &h);
    say(l, raw, PS_HEAD, data, bytes);
}

// The text of the next ERROR, passing over other messages.
static void hear_error(struct liar *l, const char *want)
{
    for (;;) {
        uint8_t raw[PS_HEAD];
        char text[1024];
        struct ps_head h;
        int n = zmq_recv(l->socket, raw, sizeof raw, 0);
        assert_true(n >= 0);
        int got = zmq_recv(l->socket, text, sizeof text - 1, 0);
        assert_true(got >= 0);
        assert_int_equal(ps_head_get(&h, raw, (size_t)n), 0);
        if (h.kind != PS_ERROR)
            continue;
        text[got] = '\0';
        if (!strstr(text, want))
            print_message("got: %s\n", text);
        assert_non_null(strstr(text, want));
        return;
    }
}

static void strangers_do_not_matter(void **state)
{
    (void)state;
    struct ps_servers s;
    struct liar l;
    pid_t pids[2];
    uint8_t junk[600], raw[PS_JOB_BYTES];
    assert_int_equal(ps_servers_start(&s, 1, 1, 10, ""), 0);
    struct job j = {.world = 2,
                    .opts = "wire=fp32",
                    .endpoints = s.endpoints,
                    .curve = "",
                    .timeout_s = 10,
                    .steps = 1500,
                    .pause_us = 2000};
    for (int r = 0; r < 2; r++)
        pids[r] = worker_start(&j, r);
    await_step(0, 1); // the job is a job: a stranger's HELLO cannot end it
    liar_open(&l, s.endpoints);
    zmq_send(l.socket, "x", 1, 0);
    hear_error(&l, "too few");
    for (int i = 0; i < 5; i++)
        zmq_send(l.socket, "x", 1, i < 4 ? ZMQ_SNDMORE : 0);
    hear_error(&l, "too many");
    say(&l, "", 0, "", 0);
    hear_error(&l, "0 bytes");
    say_head(&l, (struct ps_head){.kind = PS_PUSH}, "", 0);
    hear_error(&l, "has not said HELLO");
    say_head(&l, (struct ps_head){.kind = PS_STEP, .bytes = 5}, "ab", 2);
    hear_error(&l, "announces 5 bytes and brings 2");
    say_head(&l, (struct ps_head){.kind = PS_HELLO, .bytes = 3}, "abc", 3);
    hear_error(&l, "HELLO of 3 bytes");
    struct ps_job fake = {
        .world = 2, .servers = 1, .n = N, .slice = 256, .timeout_s = 1};
    size_t bytes = ps_job_put(raw, &fake);
    say_head(&l, (struct ps_head){.kind = PS_HELLO, .bytes = bytes}, raw,
             bytes);
    hear_error(&l, "settings differ");
    for (uint64_t i = 0; i < 3000; i++) {
        size_t n = rng_below(9, 2 * i, sizeof junk);
        for (size_t k = 0; k < n; k++)
            junk[k] = (uint8_t)rng_u64(i, k);
        if (i % 2 && n > PS_HEAD) // a good head, a random kind
            ps_head_put(junk, &(struct ps_head){
                                  .kind = 1 + (enum ps_kind)(i % PS_KINDS)});
        if (!say(&l, junk, n < PS_HEAD ? n : PS_HEAD, junk, n))
            break;
    }
    for (int r = 0; r < 2; r++) {
        join(pids[r]);
        assert_int_equal(board->end[r].rc, 0);
    }
    liar_close(&l);
    assert_int_equal(ps_servers_stop(&s), 1);
}

// A member that breaks the rules is dropped with a line that says why; the
// server does not crash but ends the job of the others in order.
static void member_breaks_rules(void **state)
{
    (void)state;
    const struct {
        struct ps_head head;
        size_t bytes;
        const char *because;
    } cases[] = {
        {{.kind = PS_PUSH, .what = PS_GRADS, .round = 2}, 1024, "for step 2"},
        {{.kind = PS_PUSH, .round = 1, .row = 50}, 1024, "row 50"},
        {{.kind = PS_PUSH, .round = 1}, 1000, "1000 bytes"},
        {{.kind = PS_PUSH, .round = 1, .dtype = DTYPE_F16}, 1024, "fp16"},
        {{.kind = PS_STEP, .round = 1}, 7, "STEP of 7 bytes"},
        {{.kind = PS_COMMIT, .round = 1}, 0, "COMMIT"},
        {{.kind = PS_SET, .what = PS_PARAMS, .row = 3}, 1024, "row 0 is due"},
        {{.kind = PS_SET, .what = PS_GRADS}, 1024, "SET"},
        {{.kind = PS_PULL, .what = PS_GRADS}, 0, "PULL"},
        {{.kind = PS_CLAIM, .round = 1}, 0, "CLAIM"},
        {{.kind = PS_JOIN, .round = 1}, 0, "JOIN"},
        {{.kind = PS_DROP, .round = 1}, 0, "DROP"},
        {{.kind = PS_WELCOME}, 0, "not for servers"},
        {{.kind = PS_PUSH, .rank = 1, .round = 1}, 1024, "in the name"},
    };
    static uint8_t data[1024];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ps_servers s;
        struct liar l;
        uint8_t raw[PS_JOB_BYTES];
        struct ps_job job = {
            .world = 1, .servers = 1, .n = N, .slice = 256, .timeout_s = 10};
        assert_int_equal(ps_servers_start(&s, 1, 1, 10, ""), 0);
        liar_open(&l, s.endpoints);
        size_t bytes = ps_job_put(raw, &job);
        say_head(&l, (struct ps_head){.kind = PS_HELLO, .bytes = bytes}, raw,
                 bytes);
        struct ps_head h = cases[i].head;
        h.bytes = cases[i].bytes;
        say_head(&l, h, data, cases[i].bytes);
        hear_error(&l, cases[i].because);
        liar_close(&l);
        join(s.pids[0]);
        assert_int_equal(ps_servers_stop(&s), 0);
    }
}

int main(int argc, char **argv)
{
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elastic_bsp),
        cmocka_unit_test(elastic_async),
        cmocka_unit_test(elastic_at_any_moment),
        cmocka_unit_test(server_dies),
        cmocka_unit_test(nobody_there),
        cmocka_unit_test(same_rank_twice),
        cmocka_unit_test(keys),
        cmocka_unit_test(strangers_do_not_matter),
        cmocka_unit_test(member_breaks_rules),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
