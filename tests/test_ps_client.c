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

// ---- a worker dies while we save or send the optimiser's state

enum { FEW = 3 };

struct script {
    struct endpoint *e;
    enum ps_what instead; // answers every PULL with this vector; PS_WHATS: no
    enum ps_kind unasked; // sent before the first answer to a PULL; 0: nothing
    int pulls, sets;      // received
};

// Row `row` of vector `what` is all what + 1.
static void send_slice(const struct script *s, const struct message_peer *to,
                       enum ps_what what, uint32_t row)
{
    float v[SLICE];
    for (int i = 0; i < SLICE; i++)
        v[i] = (float)what + 1;
    answer(s->e, to,
           (struct ps_head){.kind = PS_SLICE, .what = what, .row = row}, v,
           sizeof v);
}

// Round 1 restarts between the first and the second answer.
static void answer_script(struct script *s, const struct message_peer *to,
                          const struct ps_head *h)
{
    struct ps_head again = {.kind = PS_AGAIN, .round = 1, .epoch = 1};
    if (h->kind == PS_HELLO)
        answer(s->e, to, (struct ps_head){.kind = PS_WELCOME}, NULL, 0);
    if (h->kind == PS_SET) {
        struct ps_head credit = {.kind = PS_CREDIT, .row = h->row};
        answer(s->e, to, credit, NULL, 0);
        if (s->sets++ == 0)
            answer(s->e, to, again, NULL, 0);
    }
    if (h->kind != PS_PULL)
        return;
    s->pulls++;
    if (s->unasked)
        answer(s->e, to, (struct ps_head){.kind = s->unasked, .version = 1},
               NULL, 0);
    for (uint32_t row = 0; row < FEW; row++) {
        send_slice(s, to, s->instead < PS_WHATS ? s->instead : h->what, row);
        if (row == 0)
            answer(s->e, to, again, NULL, 0);
    }
}

static void *play_script(void *arg)
{
    struct script *s = arg;
    for (bool over = false; !over; endpoint_wait(s->e, 100))
        for (struct message *m; (m = endpoint_receive(s->e)); message_drop(m)) {
            struct ps_head h = {0};
            CHECK(ps_head_get(&h, m->head, m->head_bytes) == 0);
            answer_script(s, &m->from, &h);
            over = over || h.kind == PS_BYE;
        }
    return NULL;
}

static void with_script(struct script *s, void (*test)(struct client *c))
{
    struct endpoint_config end = {.bind = "tcp://127.0.0.1:0",
                                  .curve = "",
                                  .timeout_s = timeout_s};
    struct cluster cluster = {.world = 2, .timeout_s = timeout_s, .curve = ""};
    struct sync_job sync = {.cluster = &cluster};
    struct ps_job job = {.world = 2,
                         .servers = 1,
                         .n = SLICE * FEW,
                         .slice = SLICE,
                         .elastic = true,
                         .timeout_s = timeout_s};
    pthread_t thread;
    struct client *c = mem_alloc(1, sizeof *c);
    sync.params = mem_alloc(job.n, sizeof(float));
    sync.grads = mem_alloc(job.n, sizeof(float));
    assert_int_equal(endpoint_open(&s->e, &message_zmq, &end), 0);
    assert_int_equal(pthread_create(&thread, NULL, play_script, s), 0);
    assert_int_equal(client_open(c, &job, &message_zmq, s->e->address, &sync),
                     0);
    test(c);
    client_close(c);
    pthread_join(thread, NULL);
    endpoint_close(&s->e);
    mem_free(sync.params);
    mem_free(sync.grads);
    mem_free(c);
}

static void set_and_pull(struct client *c)
{
    static float v[SLICE * FEW];
    assert_int_equal(client_set(c, PS_SLOT0, v), 0);
    for (int what = PS_PARAMS; what <= PS_SLOT1; what++) {
        assert_int_equal(client_pull(c, (enum ps_what)what, v, 0, 0), 0);
        for (int i = 0; i < SLICE * FEW; i++)
            assert_true(v[i] == (float)what + 1);
    }
}

// A round that restarts meanwhile repeats no other task.
static void a_restarted_round_repeats_only_itself(void **state)
{
    (void)state;
    struct script s = {.instead = PS_WHATS};
    with_script(&s, set_and_pull);
    assert_int_equal(s.sets, FEW);
    assert_int_equal(s.pulls, 3);
}

static void pull_another(struct client *c)
{
    static float v[SLICE * FEW];
    assert_int_equal(client_pull(c, PS_SLOT1, v, 0, 0), -1);
    assert_non_null(strstr(fail_message(), "SLICE of row 0 of vector 1 out of "
                                           "order"));
    assert_true(v[0] == 0);
}

static void an_answer_with_another_vector_is_refused(void **state)
{
    (void)state;
    struct script s = {.instead = PS_SLOT0};
    with_script(&s, pull_another);
}

static void pull_params(struct client *c)
{
    static float v[SLICE * FEW];
    assert_int_equal(client_pull(c, PS_PARAMS, v, 0, 0), -1);
    assert_non_null(strstr(fail_message(), "out of order"));
    assert_true(v[0] == 0);
}

// Nothing was claimed, so that neither answer to a CLAIM may come.
static void an_unasked_turn_is_refused(void **state)
{
    (void)state;
    const enum ps_kind kinds[] = {PS_ADMIT, PS_LATE};
    for (int i = 0; i < 2; i++) {
        struct script s = {.instead = PS_WHATS, .unasked = kinds[i]};
        with_script(&s, pull_params);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_with_all_answers_is_done),
        cmocka_unit_test(a_restarted_round_repeats_only_itself),
        cmocka_unit_test(an_answer_with_another_vector_is_refused),
        cmocka_unit_test(an_unasked_turn_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
