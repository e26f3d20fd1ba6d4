// test_ps_malformed.c - peers that break the protocol, send random bytes or
// come alone: the server says what was wrong, drops them, and serves the
// others.

#include "base/base.h"
#include "base/rng.h"
#include "message/auth.h"
#include "ps_wire/job.h"
#include "ps_wire/wire.h"
#include "tests/ps_servers.h"
#include "tests/ps_workers.h"

#include <zmq.h>

#include "tests/test.h"

static struct ps_progress *progress;

// A peer that sends what the test wants. The server admits it, since both run
// as the same user.
struct bad_peer {
    void *context, *socket;
};

static void bad_peer_open(struct bad_peer *l, const char *endpoint)
{
    int wait_ms = 30000, linger = 100;
    l->context = zmq_ctx_new();
    l->socket = zmq_socket(l->context, ZMQ_DEALER);
    zmq_setsockopt(l->socket, ZMQ_RCVTIMEO, &wait_ms, sizeof wait_ms);
    zmq_setsockopt(l->socket, ZMQ_SNDTIMEO, &wait_ms, sizeof wait_ms);
    zmq_setsockopt(l->socket, ZMQ_LINGER, &linger, sizeof linger);
    assert_int_equal(auth_join(l->socket, endpoint, ""), 0);
    assert_int_equal(zmq_connect(l->socket, endpoint), 0);
}

static void bad_peer_close(struct bad_peer *l)
{
    zmq_close(l->socket);
    zmq_ctx_term(l->context);
}

// Returns false if the job is over and no server receives any more.
static bool say(struct bad_peer *l, const void *head, size_t head_bytes,
                const void *data, size_t bytes)
{
    return zmq_send(l->socket, head, head_bytes, ZMQ_SNDMORE) >= 0 &&
           zmq_send(l->socket, data, bytes, 0) >= 0;
}

static void say_head(struct bad_peer *l, struct ps_head h, const void *data,
                     size_t bytes)
{
    uint8_t raw[PS_HEAD];
    ps_head_put(raw, &h);
    say(l, raw, PS_HEAD, data, bytes);
}

// Waits for the next ERROR. Its text must contain `want`.
static void expect_error(struct bad_peer *l, const char *want)
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

static void malformed_messages_do_not_disturb_the_job(void **state)
{
    (void)state;
    struct ps_servers s;
    struct bad_peer l;
    pid_t pids[2];
    uint8_t junk[600], raw[PS_JOB_BYTES];
    assert_int_equal(ps_servers_start(&s, 1, 1, 10, ""), 0);
    struct ps_workers j = {.progress = progress,
                           .world = 2,
                           .opts = "wire=fp32",
                           .endpoints = s.endpoints,
                           .curve = "",
                           .timeout_s = 10,
                           .pause_us = 2000};
    atomic_store(&progress->last, 0);
    for (int r = 0; r < 2; r++)
        pids[r] = ps_workers_start(&j, r);
    // The job has begun: a malformed HELLO of another peer cannot end it.
    ps_workers_await(&j, 0, 1);
    bad_peer_open(&l, s.endpoints);
    zmq_send(l.socket, "x", 1, 0);
    expect_error(&l, "too few");
    for (int i = 0; i < 5; i++)
        zmq_send(l.socket, "x", 1, i < 4 ? ZMQ_SNDMORE : 0);
    expect_error(&l, "too many");
    say(&l, "", 0, "", 0);
    expect_error(&l, "0 bytes");
    say_head(&l, (struct ps_head){.kind = PS_PUSH}, "", 0);
    expect_error(&l, "has not said HELLO");
    say_head(&l, (struct ps_head){.kind = PS_STEP, .bytes = 5}, "ab", 2);
    expect_error(&l, "announces 5 bytes and has 2");
    say_head(&l, (struct ps_head){.kind = PS_HELLO, .bytes = 3}, "abc", 3);
    expect_error(&l, "HELLO of 3 bytes");
    struct ps_job fake = {.world = 2,
                          .servers = 1,
                          .n = PS_WORKERS_N,
                          .slice = 256,
                          .timeout_s = 1};
    size_t bytes = ps_job_put(raw, &fake);
    say_head(&l, (struct ps_head){.kind = PS_HELLO, .bytes = bytes}, raw,
             bytes);
    expect_error(&l, "settings differ");
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
    ps_workers_finish(&j);
    for (int r = 0; r < 2; r++) {
        ps_workers_join(pids[r]);
        assert_int_equal(progress->end[r].rc, 0);
    }
    bad_peer_close(&l);
    assert_int_equal(ps_servers_stop(&s), 1);
}

// A worker that breaks the protocol is dropped with a line that says why. The
// server does not crash, but ends the job in order.
static void a_worker_that_breaks_the_protocol_is_dropped(void **state)
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
        {{.kind = PS_PUSH, .what = PS_SQUEEZED, .round = 1}, 1024, "vector 5"},
        {{.kind = PS_PUSH, .what = PS_SQUEEZED, .round = 1},
         26 * 8,
         "the message of rank 0 for row 0: entry 0 of 26 has index"},
        {{.kind = PS_SET, .what = PS_RESIDUAL}, 1024, "SET"},
        {{.kind = PS_PULL, .what = PS_RESIDUAL}, 0, "PULL"},
        {{.kind = PS_STEP, .round = 1}, 7, "STEP of 7 bytes"},
        {{.kind = PS_COMMIT, .round = 1}, 0, "COMMIT"},
        {{.kind = PS_SET, .what = PS_PARAMS, .row = 3}, 1024, "row 0 is due"},
        {{.kind = PS_SET, .what = PS_GRADS}, 1024, "SET"},
        {{.kind = PS_PULL, .what = PS_GRADS}, 0, "PULL"},
        {{.kind = PS_CLAIM, .round = 1}, 0, "CLAIM"},
        {{.kind = PS_JOIN, .round = 1}, 0, "JOIN"},
        {{.kind = PS_DROP, .round = 1}, 0, "DROP"},
        {{.kind = PS_WELCOME}, 0, "not for servers"},
        {{.kind = PS_PUSH, .rank = 1, .round = 1}, 1024, "claims to be"},
    };
    static uint8_t data[1024] = {[3] = 0xff}; // an index that no entry has
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ps_servers s;
        struct bad_peer l;
        uint8_t raw[PS_JOB_BYTES];
        struct ps_job job = {.world = 1,
                             .servers = 1,
                             .n = PS_WORKERS_N,
                             .slice = 256,
                             .timeout_s = 10,
                             .worker_updates = true,
                             .squeeze = {.squeeze = SQUEEZE_TOPK,
                                         .density = 0.1,
                                         .levels = 1}};
        assert_int_equal(ps_servers_start(&s, 1, 1, 10, ""), 0);
        bad_peer_open(&l, s.endpoints);
        size_t bytes = ps_job_put(raw, &job);
        say_head(&l, (struct ps_head){.kind = PS_HELLO, .bytes = bytes}, raw,
                 bytes);
        struct ps_head h = cases[i].head;
        h.bytes = cases[i].bytes;
        say_head(&l, h, data, cases[i].bytes);
        expect_error(&l, cases[i].because);
        bad_peer_close(&l);
        ps_workers_join(s.pids[0]);
        assert_int_equal(ps_servers_stop(&s), 0);
    }
}

// Only one worker of two comes, and keeps the protocol. When the time is over,
// the server names the missing worker.
static void a_missing_worker_is_named(void **state)
{
    (void)state;
    struct ps_servers s;
    struct bad_peer l;
    uint8_t raw[PS_JOB_BYTES];
    struct ps_job job = {.world = 2,
                         .servers = 1,
                         .n = PS_WORKERS_N,
                         .slice = 256,
                         .timeout_s = 0.5};
    assert_int_equal(ps_servers_start(&s, 1, 1, 10, ""), 0);
    bad_peer_open(&l, s.endpoints);
    size_t bytes = ps_job_put(raw, &job);
    say_head(&l, (struct ps_head){.kind = PS_HELLO, .bytes = bytes}, raw,
             bytes);
    expect_error(&l, "1 of 2 workers did not come within 0.5 s: rank 1");
    bad_peer_close(&l);
    ps_workers_join(s.pids[0]);
    assert_int_equal(ps_servers_stop(&s), 0);
}

int main(int argc, char **argv)
{
    progress = ps_progress_make();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(malformed_messages_do_not_disturb_the_job),
        cmocka_unit_test(a_worker_that_breaks_the_protocol_is_dropped),
        cmocka_unit_test(a_missing_worker_is_named),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
