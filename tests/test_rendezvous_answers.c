// test_rendezvous_answers.c - what the rendezvous server answers, without
// sockets: to late, dead, silent and malformed peers.

#include "base/base.h"
#include "cluster/rendezvous.h"

#include "tests/test.h"

static bool count_answers(void *ctx, const struct message_peer *to,
                          const uint8_t raw[RENDEZVOUS_HEAD], const void *data,
                          size_t bytes)
{
    int *answers = ctx;
    struct rendezvous_head h;
    (void)to;
    (void)data;
    (void)bytes;
    assert_int_equal(rendezvous_head_get(&h, raw, RENDEZVOUS_HEAD), 0);
    answers[h.kind]++;
    return false;
}

// A parameter server hears of a worker that still trains, and says so. Then the
// others wait for it, and for no longer than the deadline once it is silent.
static void who_is_heard_of_is_waited_for(void **state)
{
    (void)state;
    struct rendezvous *h;
    struct rendezvous_head give = {.kind = RENDEZVOUS_GIVE,
                                   .world = 2,
                                   .timeout_ms = 400,
                                   .bytes = 1};
    struct message_peer peer = {.n = 1};
    uint8_t raw[RENDEZVOUS_HEAD];
    int answers[RENDEZVOUS_KINDS] = {0};
    assert_int_equal(rendezvous_open(&h, count_answers, answers), 0);
    rendezvous_head_put(raw, &give);
    assert_int_equal(rendezvous_receive(h, &peer, raw, sizeof raw, "x", 1), 0);
    for (uint64_t end = now_ns() + 1200000000; now_ns() < end;) {
        rendezvous_heard(h, 1);
        rendezvous_tick(h);
        sleep_ns(10000000);
    }
    assert_in_range(answers[RENDEZVOUS_WAIT], 4, 12);
    assert_int_equal(answers[RENDEZVOUS_ERROR], 0);
    uint64_t silent = now_ns();
    while (!answers[RENDEZVOUS_ERROR] && now_ns() < silent + 5000000000) {
        rendezvous_tick(h);
        sleep_ns(10000000);
    }
    assert_in_range(now_ns() - silent, 300000000, 2000000000);
    rendezvous_close(&h);
}

struct inbox {
    bool gone; // its peer has died
    int count;
    struct rendezvous_head head;
    uint8_t data[256];
};

static bool collect(void *ctx, const struct message_peer *to,
                    const uint8_t head[RENDEZVOUS_HEAD], const void *data,
                    size_t bytes)
{
    struct inbox *in = &((struct inbox *)ctx)[to->id[0]];
    in->count++;
    assert_int_equal(rendezvous_head_get(&in->head, head, RENDEZVOUS_HEAD), 0);
    memcpy(in->data, data, bytes < sizeof in->data ? bytes : sizeof in->data);
    return in->gone;
}

static int say(struct rendezvous *h, uint8_t id, uint32_t kind, uint32_t rank,
               uint64_t k, uint8_t piece)
{
    uint8_t head[RENDEZVOUS_HEAD];
    struct message_peer from = {.n = 1, .id = {id}};
    struct rendezvous_head m = {.kind = kind,
                                .rank = rank,
                                .world = 3,
                                .timeout_ms = 1000,
                                .exchange = k,
                                .bytes = kind == RENDEZVOUS_GIVE};
    rendezvous_head_put(head, &m);
    return rendezvous_receive(h, &from, head, RENDEZVOUS_HEAD, &piece, m.bytes);
}

// A worker that was started by hand dies before the others come, and is started
// again. One that lives is not replaced, nor is one after the first exchange.
static void who_died_before_the_others_came_may_come_again(void **state)
{
    (void)state;
    struct rendezvous *h;
    struct inbox in[8] = {0};
    assert_int_equal(rendezvous_open(&h, collect, in), 0);
    assert_int_equal(say(h, 0, RENDEZVOUS_GIVE, 0, 0, 10), 0);
    assert_int_equal(say(h, 3, RENDEZVOUS_GIVE, 0, 0, 13), -1);
    assert_non_null(strstr(fail_message(), "there are two workers of rank 0"));
    in[0].gone = true;
    assert_int_equal(say(h, 3, RENDEZVOUS_GIVE, 0, 0, 13), 0);
    for (uint8_t r = 1; r < 3; r++)
        assert_int_equal(say(h, r, RENDEZVOUS_GIVE, r, 0, 10 + r), 0);
    assert_memory_equal(in[3].data, ((uint8_t[]){13, 11, 12}), 3);
    in[3].gone = true;
    assert_int_equal(say(h, 4, RENDEZVOUS_GIVE, 0, 1, 14), -1);
    rendezvous_close(&h);
}

// A dead worker contributes zeros. A worker that joins later receives the
// earlier results.
static void elastic_exchanges_leave_out_the_dead(void **state)
{
    (void)state;
    struct rendezvous *h;
    struct inbox in[8] = {0};
    assert_int_equal(rendezvous_open(&h, collect, in), 0);
    rendezvous_set_elastic(h, true);
    for (uint8_t r = 0; r < 3; r++)
        assert_int_equal(say(h, r, RENDEZVOUS_GIVE, r, 0, 10 + r), 0);
    for (int r = 0; r < 3; r++)
        assert_memory_equal(in[r].data, ((uint8_t[]){10, 11, 12}), 3);
    assert_int_equal(say(h, 0, RENDEZVOUS_GIVE, 0, 1, 20), 0);
    assert_int_equal(say(h, 2, RENDEZVOUS_GIVE, 2, 1, 22), 0);
    assert_int_equal(in[0].count, 1);
    rendezvous_lost(h, 1);
    assert_int_equal(in[0].count, 2);
    assert_memory_equal(in[0].data, ((uint8_t[]){20, 0, 22}), 3);
    assert_int_equal(say(h, 5, RENDEZVOUS_GIVE, 1, 0, 99), 0); // rank 1 again
    assert_memory_equal(in[5].data, ((uint8_t[]){10, 11, 12}), 3);
    assert_int_equal(say(h, 5, RENDEZVOUS_GIVE, 1, 1, 99), 0);
    assert_memory_equal(in[5].data, ((uint8_t[]){20, 0, 22}), 3);
    for (uint8_t r = 0; r < 3; r++)
        assert_int_equal(say(h, r == 1 ? 5 : r, RENDEZVOUS_GIVE, r, 2, 30 + r),
                         0);
    assert_memory_equal(in[5].data, ((uint8_t[]){30, 31, 32}), 3);
    rendezvous_close(&h);
}

// A successor may come before the death of its worker is noticed. What the
// first one gave counts no more.
static void elastic_workers_may_come_again_early(void **state)
{
    (void)state;
    struct rendezvous *h;
    struct inbox in[8] = {0};
    assert_int_equal(rendezvous_open(&h, collect, in), 0);
    rendezvous_set_elastic(h, true);
    for (uint8_t r = 0; r < 2; r++)
        assert_int_equal(say(h, r, RENDEZVOUS_GIVE, r, 0, 10 + r), 0);
    assert_int_equal(say(h, 5, RENDEZVOUS_GIVE, 1, 0, 99), 0); // rank 1 again
    assert_int_equal(say(h, 2, RENDEZVOUS_GIVE, 2, 0, 12), 0);
    for (int id = 0; id < 6; id++)
        assert_int_equal(in[id].count, id == 0 || id == 2 || id == 5);
    assert_memory_equal(in[5].data, ((uint8_t[]){10, 99, 12}), 3);
    rendezvous_close(&h);
}

// A worker that came back and asks for past exchanges is waited for as soon as
// it trains. If it were not, the worker that is left would take itself for the
// one that saves.
static void elastic_workers_that_train_again_are_waited_for(void **state)
{
    (void)state;
    struct rendezvous *h;
    struct inbox in[8] = {0};
    assert_int_equal(rendezvous_open(&h, collect, in), 0);
    rendezvous_set_elastic(h, true);
    for (uint8_t r = 0; r < 3; r++)
        assert_int_equal(say(h, r, RENDEZVOUS_GIVE, r, 0, 10 + r), 0);
    rendezvous_lost(h, 0);
    assert_int_equal(say(h, 5, RENDEZVOUS_GIVE, 0, 0, 99), 0); // rank 0 again
    rendezvous_back(h, 0);
    assert_int_equal(say(h, 1, RENDEZVOUS_GIVE, 1, 1, 21), 0);
    assert_int_equal(say(h, 2, RENDEZVOUS_GIVE, 2, 1, 22), 0);
    assert_int_equal(in[1].count, 1);
    assert_int_equal(say(h, 5, RENDEZVOUS_GIVE, 0, 1, 20), 0);
    assert_memory_equal(in[1].data, ((uint8_t[]){20, 21, 22}), 3);
    rendezvous_close(&h);
}

// Nobody else says where the run begins. So a worker 0 that dies before it has
// set the parameters is waited for until it is back. Later the others go on
// without it.
static void worker_0_is_waited_for_until_the_job_has_begun(void **state)
{
    (void)state;
    struct rendezvous *h;
    struct inbox in[8] = {0};
    assert_int_equal(rendezvous_open(&h, collect, in), 0);
    rendezvous_set_elastic(h, true);
    for (uint8_t r = 0; r < 3; r++)
        assert_int_equal(say(h, r, RENDEZVOUS_GIVE, r, 0, 10 + r), 0);
    for (uint8_t r = 1; r < 3; r++)
        assert_int_equal(say(h, r, RENDEZVOUS_GIVE, r, 1, 20 + r), 0);
    rendezvous_lost(h, 0);
    assert_int_equal(in[1].count, 1);
    for (uint8_t k = 0; k < 2; k++) // worker 0 again
        assert_int_equal(say(h, 5, RENDEZVOUS_GIVE, 0, k, 20), 0);
    assert_memory_equal(in[1].data, ((uint8_t[]){20, 21, 22}), 3);
    rendezvous_begun(h);
    for (uint8_t r = 1; r < 3; r++)
        assert_int_equal(say(h, r, RENDEZVOUS_GIVE, r, 2, 30 + r), 0);
    rendezvous_lost(h, 0);
    assert_memory_equal(in[1].data, ((uint8_t[]){0, 31, 32}), 3);
    rendezvous_close(&h);
}

// Calls tick() until one more answer has come to this peer.
static void await_answer(struct rendezvous *h, const struct inbox *in)
{
    int before = in->count;
    for (uint64_t end = now_ns() + 20000000000;
         in->count == before && now_ns() < end;) {
        rendezvous_tick(h);
        sleep_ns(10000000);
    }
    assert_int_equal(in->count, before + 1);
}

// Worker 2 was stopped for so long that it comes after the deadline. In an
// elastic job that has begun, the others have gone on by then, and it catches
// up. Before that, no worker can do without another one.
static void who_is_silent_for_too_long_is_left_out(void **state)
{
    (void)state;
    struct rendezvous *h;
    struct inbox in[8] = {0};
    assert_int_equal(rendezvous_open(&h, collect, in), 0);
    rendezvous_set_elastic(h, true);
    for (int begun = 0; begun < 2; begun++) {
        for (uint8_t r = 0; r < 2; r++)
            assert_int_equal(say(h, r, RENDEZVOUS_GIVE, r, 0, 10 + r), 0);
        await_answer(h, &in[1]);
        assert_int_equal(in[1].head.kind,
                         begun ? RENDEZVOUS_ALL : RENDEZVOUS_ERROR);
        rendezvous_begun(h);
    }
    assert_int_equal(say(h, 2, RENDEZVOUS_GIVE, 2, 0, 12), 0);
    assert_memory_equal(in[2].data, ((uint8_t[]){10, 11, 0}), 3);
    for (uint8_t r = 3; r-- > 0;)
        assert_int_equal(say(h, r, RENDEZVOUS_GIVE, r, 1, 20 + r), 0);
    assert_memory_equal(in[2].data, ((uint8_t[]){20, 21, 22}), 3);
    rendezvous_close(&h);
}

// A silent worker 0 may still load the state of the run, or rewind its folder.
// The others go on without it only after the first gradient.
static void a_silent_worker_0_is_waited_for_until_they_train(void **state)
{
    (void)state;
    struct rendezvous *h;
    struct inbox in[8] = {0};
    assert_int_equal(rendezvous_open(&h, collect, in), 0);
    rendezvous_set_elastic(h, true);
    rendezvous_begun(h);
    for (int train = 0; train < 2; train++) {
        for (uint8_t r = 1; r < 3; r++)
            assert_int_equal(say(h, r, RENDEZVOUS_GIVE, r, 0, 10 + r), 0);
        await_answer(h, &in[1]);
        assert_int_equal(in[1].head.kind,
                         train ? RENDEZVOUS_ALL : RENDEZVOUS_ERROR);
        rendezvous_back(h, 1);
    }
    rendezvous_close(&h);
}

static void malformed_messages_are_refused(void **state)
{
    (void)state;
    struct rendezvous *h;
    struct inbox in[8] = {0};
    struct message_peer from = {.n = 1, .id = {1}};
    uint8_t junk[RENDEZVOUS_HEAD + 1] = {1, 2, 3};
    assert_int_equal(rendezvous_open(&h, collect, in), 0);
    for (size_t n = 0; n <= sizeof junk; n++)
        assert_int_equal(rendezvous_receive(h, &from, junk, n, "", 0), -1);
    assert_int_equal(say(h, 0, RENDEZVOUS_GIVE, 3, 0, 0), -1); // no such rank
    assert_int_equal(say(h, 0, RENDEZVOUS_ALL, 0, 0, 0), -1); // not for workers
    assert_int_equal(say(h, 0, RENDEZVOUS_GIVE, 0, 7, 0), -1); // too early
    assert_int_equal(say(h, 0, RENDEZVOUS_GIVE, 0, 0, 0), 0);
    assert_int_equal(say(h, 0, RENDEZVOUS_GIVE, 0, 0, 0), -1); // twice
    assert_int_equal(in[0].head.kind, RENDEZVOUS_ERROR);
    assert_int_equal(say(h, 1, RENDEZVOUS_GIVE, 0, 0, 0), -1); // another peer
    assert_int_equal(in[1].head.kind, RENDEZVOUS_ERROR);
    // A peer that never reads is sent a bounded number of answers.
    for (int i = 0; i < 20000; i++)
        assert_int_equal(say(h, 2, RENDEZVOUS_ALL, 0, 0, 0), -1);
    assert_in_range(in[2].count, 1000, 5000);
    // Each tick allows one more answer, however many messages came before it.
    int answers = in[2].count;
    rendezvous_tick(h);
    for (int i = 0; i < 3; i++)
        assert_int_equal(say(h, 2, RENDEZVOUS_ALL, 0, 0, 0), -1);
    assert_int_equal(in[2].count, answers + 1);
    rendezvous_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_heard_of_is_waited_for),
        cmocka_unit_test(who_died_before_the_others_came_may_come_again),
        cmocka_unit_test(elastic_exchanges_leave_out_the_dead),
        cmocka_unit_test(elastic_workers_may_come_again_early),
        cmocka_unit_test(elastic_workers_that_train_again_are_waited_for),
        cmocka_unit_test(worker_0_is_waited_for_until_the_job_has_begun),
        cmocka_unit_test(a_silent_worker_0_is_waited_for_until_they_train),
        cmocka_unit_test(who_is_silent_for_too_long_is_left_out),
        cmocka_unit_test(malformed_messages_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
