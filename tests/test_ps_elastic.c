// test_ps_elastic.c - workers leave and join: what a server sends to each. A
// fake transport gives the server one message after the other.

#include "base/base.h"
#include "ps_server/server.h"
#include "ps_wire/job.h"
#include "ps_wire/wire.h"

#include <math.h>
#include <string.h>

#include "tests/test.h"

enum { N = 8, MOST = 128 };

// What the server has sent.
struct sent {
    int rank;
    struct ps_head head;
    struct ps_result result; // of RESULT
};

static struct {
    struct server *server;
    int said, taken; // messages that the test has put in; that were received
    struct message in[MOST];
    uint8_t head[MOST][PS_HEAD], data[MOST][PS_JOB_BYTES];
    int nsent;
    struct sent sent[4 * MOST];
} fake;

// ---- the transport

static int fake_open(struct endpoint *m, const struct endpoint_config *c)
{
    (void)m;
    (void)c;
    return 0;
}

static int fake_send(struct endpoint *m, const struct message_peer *to,
                     const void *head, size_t head_bytes,
                     const struct payload *data)
{
    struct sent *s = &fake.sent[fake.nsent];
    (void)m;
    assert_int_equal(ps_head_get(&s->head, head, head_bytes), 0);
    if (s->head.kind == PS_RESULT)
        assert_int_equal(ps_result_get(&s->result, data->at, data->bytes), 0);
    if (data->sent)
        data->sent((void *)(uintptr_t)data->at, data->hint);
    if (s->head.kind == PS_PING)
        return 0;
    s->rank = to->id[0];
    fake.nsent++;
    assert_true(fake.nsent < 4 * MOST);
    return 0;
}

static struct message *fake_receive(struct endpoint *m)
{
    if (fake.taken == fake.said) {
        server_stop(fake.server);
        return NULL;
    }
    fake.in[fake.taken].endpoint = m;
    return &fake.in[fake.taken++];
}

static void fake_drop(struct message *p)
{
    (void)p;
}

static void fake_wait(struct endpoint *m, int ms)
{
    (void)m;
    (void)ms;
}

static void fake_close(struct endpoint *m)
{
    (void)m;
}

static const struct message_ops fake_transport = {
    .name = "fake",
    .state_size = 1,
    .open = fake_open,
    .send = fake_send,
    .receive = fake_receive,
    .drop = fake_drop,
    .wait = fake_wait,
    .close = fake_close,
};

// ---- what workers say

static void say(int rank, struct ps_head h, const void *data, size_t bytes)
{
    int k = fake.said++;
    assert_true(k < MOST && bytes <= sizeof fake.data[k]);
    h.rank = (uint32_t)rank;
    h.bytes = bytes;
    ps_head_put(fake.head[k], &h);
    memcpy(fake.data[k], data, bytes);
    fake.in[k] = (struct message){.server = -1,
                                  .head = fake.head[k],
                                  .head_bytes = PS_HEAD,
                                  .data = fake.data[k],
                                  .bytes = bytes};
    fake.in[k].from.n = 1;
    fake.in[k].from.id[0] = (uint8_t)rank;
}

static struct ps_job job; // of all workers

static void hello(int rank)
{
    uint8_t raw[PS_JOB_BYTES];
    job.rank = rank;
    size_t bytes = ps_job_put(raw, &job);
    say(rank, (struct ps_head){.kind = PS_HELLO}, raw, bytes);
}

// The server drops a worker that sends this, as if it had died.
static void dies(int rank)
{
    say(rank, (struct ps_head){.kind = PS_WELCOME}, "", 0);
}

static void join(int rank, uint64_t round)
{
    say(rank, (struct ps_head){.kind = PS_JOIN, .round = round}, "", 0);
}

static void set_row(uint32_t row)
{
    static const float ones[N] = {1, 1, 1, 1, 1, 1, 1, 1};
    say(0, (struct ps_head){.kind = PS_SET, .row = row}, ones,
        (size_t)job.slice * sizeof *ones);
}

static void set_params(void)
{
    set_row(0);
}

static void pull(int rank, uint64_t version)
{
    say(rank, (struct ps_head){.kind = PS_PULL, .round = 1, .version = version},
        "", 0);
}

static void step(int rank, uint64_t round, uint32_t epoch, bool skip)
{
    struct ps_step step = {.step = (uint32_t)round,
                           .lr = 1,
                           .grad_scale = 1,
                           .skip = skip};
    uint8_t raw[PS_STEP_BYTES];
    ps_step_put(raw, &step);
    say(rank, (struct ps_head){.kind = PS_STEP, .round = round, .epoch = epoch},
        raw, sizeof raw);
}

// A whole gradient. Under bsp a NaN in it makes the update skip.
static void push(int rank, uint64_t round, uint32_t epoch, float x)
{
    const float grads[N] = {x, 1, 1, 1, 1, 1, 1, 1};
    struct ps_head h = {.kind = PS_PUSH,
                        .what = PS_GRADS,
                        .round = round,
                        .epoch = epoch};
    step(rank, round, epoch, false);
    say(rank, h, grads,
        (size_t)(job.n / (uint64_t)job.servers) * sizeof *grads);
}

// ---- what the server answers

static void describe(int world, int servers, int rows,
                     enum consistency consistency)
{
    memset(&fake, 0, sizeof fake);
    job = (struct ps_job){.world = world,
                          .servers = servers,
                          .n = N,
                          .slice = N / (uint64_t)(servers * rows),
                          .consistency = consistency,
                          .elastic = true,
                          .timeout_s = 60,
                          .optim = {.kind = OPTIM_SGD}};
}

static void begin_rows(int world, int servers, int rows,
                       enum consistency consistency)
{
    describe(world, servers, rows, consistency);
    for (int r = 0; r < world; r++)
        hello(r);
}

static void begin(int world, int servers, enum consistency consistency)
{
    begin_rows(world, servers, 1, consistency);
}

// Hands all messages over. Then fake.sent has all answers. Returns whether the
// job was done.
static bool serve(void)
{
    struct server_config config = {.transport = &fake_transport,
                                   .bind = "",
                                   .curve = "",
                                   .index = -1,
                                   .threads = 1,
                                   .timeout_s = 60};
    assert_int_equal(server_open(&fake.server, &config), 0);
    assert_int_equal(server_run(fake.server), 0);
    assert_false(fake.server->failed);
    bool done = fake.server->done;
    server_close(&fake.server);
    return done;
}

// The last message of that kind to that worker; NULL if there was none.
static const struct sent *last(int rank, enum ps_kind kind)
{
    for (int i = fake.nsent - 1; i >= 0; i--)
        if (fake.sent[i].rank == rank && fake.sent[i].head.kind == kind)
            return &fake.sent[i];
    return NULL;
}

static int count(int rank, enum ps_kind kind)
{
    int n = 0;
    for (int i = 0; i < fake.nsent; i++)
        n += fake.sent[i].rank == rank && fake.sent[i].head.kind == kind;
    return n;
}

// ---- bsp

// A worker dies before the others are here. It is waited for as before.
static void one_may_die_before_all_are_here(void **state)
{
    (void)state;
    describe(2, 1, 1, CONSISTENCY_BSP);
    hello(1);
    dies(1);
    hello(0);
    hello(1);
    set_params();
    push(0, 1, 0, 1);
    push(1, 1, 0, 1);
    serve();
    assert_int_equal(count(0, PS_WELCOME), 1);
    assert_int_equal(last(1, PS_RESULT)->result.used, 2);
}

// Worker 0 dies before it has set the parameters. When it is back, the job
// begins with it.
static void worker_0_may_die_before_the_beginning(void **state)
{
    (void)state;
    begin(2, 1, CONSISTENCY_BSP);
    pull(1, 0);
    dies(0);
    hello(0);
    set_params();
    push(0, 1, 1, 1);
    push(1, 1, 1, 1);
    serve();
    assert_int_equal(last(0, PS_WELCOME)->head.version, 0);
    assert_int_equal(last(0, PS_WELCOME)->head.epoch, 1);
    assert_int_equal(count(1, PS_SLICE), 2); // PULL and round 1
    assert_int_equal(last(0, PS_RESULT)->result.used, 2);
}

// The same when it has set a part of them.
static void worker_0_may_die_while_it_sets(void **state)
{
    (void)state;
    begin_rows(2, 1, 2, CONSISTENCY_ASP);
    set_row(0);
    dies(0);
    hello(0);
    set_row(0);
    set_row(1);
    pull(1, 0);
    serve();
    assert_int_equal(count(1, PS_SLICE), 2);
}

// Rank 2 has asked to join round 2. Then round 1 restarts again. It must learn
// that, too, or the server takes all its messages for old ones.
static void one_that_joins_learns_the_epoch(void **state)
{
    (void)state;
    begin(3, 1, CONSISTENCY_BSP);
    push(0, 1, 0, 1);
    dies(2);
    hello(2);
    join(2, 2);
    dies(1);
    push(0, 1, 2, 1);
    push(0, 2, 2, 1);
    push(2, 2, 2, 1);
    serve();
    assert_int_equal(last(2, PS_WELCOME)->head.round, 2);
    assert_int_equal(last(0, PS_AGAIN)->head.epoch, 2);
    assert_int_equal(last(2, PS_AGAIN)->head.epoch, 2);
    assert_int_equal(last(2, PS_RESULT)->head.round, 2);
    assert_int_equal(count(0, PS_RESULT), 2);
}

// All others leave before the round that a worker has asked to join.
static void the_last_one_goes_on_alone(void **state)
{
    (void)state;
    begin(2, 1, CONSISTENCY_BSP);
    set_params();
    push(0, 1, 0, 1);
    dies(1);
    hello(1);
    join(1, 2);
    pull(1, 1);
    dies(0);
    push(1, 2, 2, 1);
    serve();
    assert_int_equal(count(1, PS_SLICE), 2); // PULL and round 2
    assert_int_equal(last(1, PS_RESULT)->head.round, 2);
}

// Nobody is left in round 3: the first one back takes it.
static void no_step_is_lost_if_all_were_dead(void **state)
{
    (void)state;
    begin(1, 1, CONSISTENCY_BSP);
    set_params();
    push(0, 1, 0, 1);
    push(0, 2, 0, 1);
    dies(0);
    hello(0);
    join(0, 3);
    pull(0, 2);
    push(0, 3, 1, 1);
    serve();
    assert_int_equal(last(0, PS_WELCOME)->head.round, 3);
    assert_int_equal(count(0, PS_LATER), 0);
    assert_int_equal(last(0, PS_RESULT)->head.round, 3);
    assert_int_equal(last(0, PS_SLICE)->head.version, 3);
}

// One worker ends and another is lost. A server may hear of either first, and
// is done. If all were lost, it waits for them.
static void the_last_worker_may_be_lost(void **state)
{
    (void)state;
    static const char *const stories[] = {"DB", "BD", "BB", "DD"};
    for (int i = 0; i < 4; i++) {
        begin(2, 1, CONSISTENCY_BSP);
        set_params();
        push(0, 1, 0, 1);
        push(1, 1, 0, 1);
        for (int rank = 0; rank < 2; rank++)
            if (stories[i][rank] == 'B')
                say(rank, (struct ps_head){.kind = PS_BYE}, "", 0);
            else
                dies(rank);
        assert_int_equal(serve(), strchr(stories[i], 'B') != NULL);
    }
}

// The only worker dies before it has told the sum of the servers' norms.
static void a_round_without_a_commit_is_done_again(void **state)
{
    (void)state;
    begin(1, 2, CONSISTENCY_BSP);
    push(0, 1, 0, 1);
    dies(0);
    hello(0);
    join(0, 1);
    push(0, 1, 1, 1);
    serve();
    assert_int_equal(count(0, PS_NORM), 2);
    assert_int_equal(last(0, PS_NORM)->head.epoch, 1);
}

// The gradients in updates are counted: none of a dead worker, none if the
// update was skipped.
static void used_gradients_are_counted(void **state)
{
    (void)state;
    begin(3, 1, CONSISTENCY_BSP);
    for (int r = 0; r < 3; r++)
        push(r, 1, 0, 1);
    dies(2);
    for (int r = 0; r < 2; r++)
        push(r, 2, 1, r ? NAN : 1);
    for (int r = 0; r < 2; r++)
        push(r, 3, 1, 1);
    serve();
    assert_int_equal(last(2, PS_RESULT)->result.used, 3);
    assert_int_equal(last(0, PS_RESULT)->result.used, 5);
    assert_int_equal(last(1, PS_RESULT)->result.used, 5);
}

// ---- ssp and asp

static void all_were_dead_under(enum consistency consistency)
{
    begin(2, 1, consistency);
    push(0, 1, 0, 1);
    push(1, 1, 0, 1);
    push(0, 2, 0, 1);
    dies(0);
    dies(1);
    hello(1);
    push(1, 3, 0, 1);
    hello(0);
    serve();
    assert_int_equal(last(1, PS_WELCOME)->head.round, 3);
    assert_int_equal(last(1, PS_RESULT)->result.used, 4);
    assert_int_equal(last(0, PS_WELCOME)->head.round, 4);
}

// The first worker back goes on at the largest clock that was ever reached.
static void the_largest_clock_is_kept(void **state)
{
    (void)state;
    all_were_dead_under(CONSISTENCY_ASP);
    all_were_dead_under(CONSISTENCY_SSP);
}

static void expect_welcome(int rank, int round, int updates)
{
    serve();
    const struct ps_head *h = &last(rank, PS_WELCOME)->head;
    assert_int_equal(h->round, round);
    assert_float_equal(h->value, updates, 0);
}

// A worker that is back is told how many of its steps were updates. Those that
// it does again do not count.
static void skipped_steps_are_no_updates(void **state)
{
    (void)state;
    begin(1, 1, CONSISTENCY_ASP);
    push(0, 1, 0, 1);
    for (int round = 2; round < 42; round++)
        step(0, (uint64_t)round, 0, true);
    push(0, 42, 0, 1);
    dies(0);
    hello(0);
    expect_welcome(0, 43, 2);

    begin(2, 1, CONSISTENCY_ASP);
    push(0, 1, 0, 1);
    push(0, 2, 0, 1);
    step(1, 1, 0, true);
    push(1, 2, 0, 1);
    step(1, 3, 0, true);
    dies(1);
    hello(1);
    expect_welcome(1, 3, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_may_die_before_all_are_here),
        cmocka_unit_test(worker_0_may_die_before_the_beginning),
        cmocka_unit_test(worker_0_may_die_while_it_sets),
        cmocka_unit_test(one_that_joins_learns_the_epoch),
        cmocka_unit_test(the_last_one_goes_on_alone),
        cmocka_unit_test(no_step_is_lost_if_all_were_dead),
        cmocka_unit_test(the_last_worker_may_be_lost),
        cmocka_unit_test(a_round_without_a_commit_is_done_again),
        cmocka_unit_test(used_gradients_are_counted),
        cmocka_unit_test(the_largest_clock_is_kept),
        cmocka_unit_test(skipped_steps_are_no_updates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
