// test_ps_client.c - tests a worker's client. A thread of the test plays the
// server.

#include "ps_worker/client.h"

#include "base/base.h"
#include "cluster/cluster.h"

#include <pthread.h>

#include "tests/test.h"

enum { SLICE = 1 << 14, ROWS = 200, N = SLICE * ROWS };
static const double timeout_s = 20;

static void answer(struct endpoint *e, const struct message_peer *to,
                   struct ps_head h, const void *data, size_t bytes)
{
    uint8_t raw[PS_HEAD];
    struct payload d = {.at = data, .bytes = bytes};
    h.bytes = bytes;
    ps_head_put(raw, &h);
    // endpoint_send() returns 1 if the client has left, with all its answers.
    CHECK(endpoint_send(e, to, raw, PS_HEAD, &d) >= 0);
}

// Sends the sums, the end of the step, and at once the end of the job.
static void answer_all(struct endpoint *e, const struct message_peer *to)
{
    static const float ones[SLICE] = {1};
    static const char why[] = "worker rank 1 is gone";
    uint8_t raw[PS_RESULT_BYTES];
    ps_result_put(raw, &(struct ps_result){.norm = 1});
    answer(e, to, (struct ps_head){.kind = PS_RESULT}, raw, sizeof raw);
    for (uint32_t row = 0; row < ROWS; row++)
        answer(e, to,
               (struct ps_head){.kind = PS_SLICE, .what = PS_GRADS, .row = row},
               ones, sizeof ones);
    answer(e, to, (struct ps_head){.kind = PS_ERROR}, why, strlen(why));
}

static void *play(void *arg)
{
    struct endpoint *e = arg;
    int rows = 0;
    for (bool over = false; !over; endpoint_wait(e, 100))
        for (struct message *m; (m = endpoint_receive(e)); message_drop(m)) {
            struct ps_head h = {0};
            CHECK(ps_head_get(&h, m->head, m->head_bytes) == 0);
            if (h.kind == PS_HELLO)
                answer(e, &m->from, (struct ps_head){.kind = PS_WELCOME}, NULL,
                       0);
            if (h.kind == PS_PUSH) {
                answer(e, &m->from,
                       (struct ps_head){.kind = PS_CREDIT, .row = h.row}, NULL,
                       0);
                if (++rows == ROWS)
                    answer_all(e, &m->from);
            }
            over = over || h.kind == PS_BYE;
        }
    return NULL;
}

// A step is done when all its answers are here, even if the job ends right
// after them. The next step fails, and says why.
static void a_step_with_all_answers_is_done(void **state)
{
    (void)state;
    struct endpoint *e;
    struct endpoint_config end = {.bind = "tcp://127.0.0.1:0",
                                  .curve = "",
                                  .timeout_s = timeout_s};
    pthread_t thread;
    float *v = mem_alloc(N, sizeof *v);
    struct cluster cluster = {.world = 1, .timeout_s = timeout_s, .curve = ""};
    struct sync_job sync = {.cluster = &cluster, .params = v, .grads = v};
    struct ps_job job = {.world = 1,
                         .servers = 1,
                         .n = N,
                         .slice = SLICE,
                         .worker_updates = true,
                         .timeout_s = timeout_s};
    struct ps_step step = {.step = 1, .lr = 1, .grad_scale = 1};
    struct client *c = mem_alloc(1, sizeof *c);
    assert_int_equal(endpoint_open(&e, &message_zmq, &end), 0);
    assert_int_equal(pthread_create(&thread, NULL, play, e), 0);
    assert_int_equal(client_open(c, &job, &message_zmq, e->address, &sync), 0);
    int first = client_round(c, &step);
    if (first)
        print_message("%s\n", fail_message());
    assert_int_equal(first, 0);
    assert_true(v[N - SLICE] == 1);
    assert_int_equal(client_round(c, &step), -1);
    assert_non_null(strstr(fail_message(), "worker rank 1 is gone"));
    client_close(c);
    pthread_join(thread, NULL);
    endpoint_close(&e);
    mem_free(c);
    mem_free(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_with_all_answers_is_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
