// test_virtual.c - the virtual cluster: the order of messages, deadlocks,
// killed ranks and mistakes.

#include "tests/virtual_run.h"

static int all_send_first(struct virtual_rank *r, void *arg)
{
    int w = *(int *)arg, me = virtual_id(r), x = me, y;
    if (send(r, (me + 1) % w, &x, sizeof x) ||
        receive(r, (me + w - 1) % w, &y, sizeof y))
        return -1;
    return y == (me + w - 1) % w ? 0 : fail("got %d", y);
}

static void deadlock_is_a_circle(void **state)
{
    (void)state;
    int w = 3;
    struct virtual_setup s = setup(w);
    struct virtual_result *v = run(&s, all_send_first, &w);
    assert_non_null(strstr(v->deadlock, "0 sends to 1 (message 1), 1 sends to "
                                        "2 (message 1), 2 sends to 0 (message "
                                        "1): nobody receives"));
    for (int r = 0; r < w; r++)
        assert_int_equal(v->rank[r].end, VIRTUAL_STUCK);
    virtual_close(&v);
    s.eager = sizeof(int);
    v = run(&s, all_send_first, &w);
    assert_clean(v);
    virtual_close(&v);
    s.eager = 0;
    s.deadline_s = 5;
    v = run(&s, all_send_first, &w);
    assert_string_equal(v->deadlock, "");
    assert_int_equal(v->rank[1].value, -1);
    assert_seconds(v->rank[1].ended_s, 5);
    assert_string_equal(v->rank[1].error, "rank 1 sends to 2 (message 1): not "
                                          "done within 5 s");
    virtual_close(&v);
}

static int two_wait_beside_a_circle(struct virtual_rank *r, void *arg)
{
    (void)arg;
    static const int peer[] = {1, 2, 3, 2, 0}; // 2 and 3 wait for each other
    int x;
    return receive(r, peer[virtual_id(r)], &x, sizeof x);
}

static int nobody_is_left(struct virtual_rank *r, void *arg)
{
    int x = 0;
    if (virtual_id(r) == 1)
        return *(bool *)arg ? send(r, 0, &x, sizeof x) : 0;
    return receive(r, 1, &x, sizeof x);
}

static void deadlock_names_the_cause(void **state)
{
    (void)state;
    struct virtual_setup s = setup(5);
    struct virtual_result *v = run(&s, two_wait_beside_a_circle, NULL);
    assert_string_equal(v->deadlock,
                        "deadlock at 0 s: 2 receives from 3 (message 1), 3 "
                        "receives from 2 (message 1): nobody sends");
    virtual_close(&v);
    s = setup(2);
    bool sends = false;
    v = run(&s, nobody_is_left, &sends);
    assert_string_equal(v->deadlock, "deadlock at 0 s: 0 receives from 1 "
                                     "(message 1), which has returned");
    virtual_close(&v);
    s.kill = (struct virtual_kill){.rank = 1, .call = 1};
    sends = true;
    v = run(&s, nobody_is_left, &sends);
    assert_string_equal(v->deadlock, "deadlock at 0 s: 0 receives from 1 "
                                     "(message 1), which was killed");
    virtual_close(&v);
}

static void death_is_noticed(void **state)
{
    (void)state;
    bool sends = true;
    struct virtual_setup s = setup(2);
    s.deadline_s = 3;
    s.kill = (struct virtual_kill){.rank = 1, .call = 1};
    struct virtual_result *v = run(&s, nobody_is_left, &sends);
    assert_int_equal(v->rank[1].end, VIRTUAL_KILLED);
    assert_int_equal(v->rank[0].value, -1);
    assert_seconds(v->rank[0].ended_s, 3);
    virtual_close(&v);
    s.kill.closed = true;
    v = run(&s, nobody_is_left, &sends);
    assert_int_equal(v->rank[0].value, -1);
    assert_true(v->rank[0].ended_s == 0);
    assert_string_equal(v->rank[0].error, "rank 0 receives from 1 (message 1): "
                                          "its links are closed");
    virtual_close(&v);
    // The second call of rank 1 is the wait: by then rank 0 has begun to
    // receive, and the message is taken back.
    s.kill.call = 2;
    s.kill.closed = false;
    v = run(&s, nobody_is_left, &sends);
    assert_int_equal(v->rank[0].value, -1);
    assert_int_equal(v->n_messages, 0);
    virtual_close(&v);
    s.kill.call = 3; // it makes only two calls
    v = run(&s, nobody_is_left, &sends);
    assert_clean(v);
    virtual_close(&v);
}

// Rank 0 records the order in which it receives a message from each other rank.
static int take_all(struct virtual_rank *r, void *arg)
{
    int *order = arg, x = virtual_id(r);
    if (x)
        return send(r, 0, &x, sizeof x);
    for (int i = 1; i < 8; i++) {
        int from;
        size_t bytes;
        if (virtual_recv_any(r, &from, &bytes, &x, sizeof x))
            return -1;
        if (from != x || bytes != sizeof x)
            return fail("%d says %d, %zu bytes", from, x, bytes);
        order[i - 1] = from;
    }
    return 0;
}

static void seed_decides_among_equals(void **state)
{
    (void)state;
    int different = 0, first[7];
    for (int eager = 0; eager < 2; eager++)
        for (uint64_t seed = 0; seed < 10; seed++) {
            int order[2][7];
            struct virtual_setup s = setup(8);
            s.seed = seed;
            s.eager = eager ? 64 : 0;
            for (int again = 0; again < 2; again++) {
                struct virtual_result *v = run(&s, take_all, order[again]);
                assert_clean(v);
                virtual_close(&v);
            }
            assert_memory_equal(order[0], order[1], sizeof order[0]);
            if (seed == 0)
                memcpy(first, order[0], sizeof first);
            different += memcmp(first, order[0], sizeof first) != 0;
        }
    assert_true(different > 10);
}

// The slower a worker, the later it sends.
static int take_slow(struct virtual_rank *r, void *arg)
{
    if (virtual_id(r))
        virtual_compute(r, 1);
    if (virtual_id(r) && virtual_now(r) != 10 - virtual_id(r))
        return fail("it is %g s", virtual_now(r));
    return take_all(r, arg);
}

static void messages_arrive_in_order_of_time(void **state)
{
    (void)state;
    double slow[8];
    int order[7];
    for (int r = 0; r < 8; r++)
        slow[r] = 10 - r;
    for (int eager = 0; eager < 2; eager++) {
        struct virtual_setup s = setup(8);
        s.slow = slow;
        s.eager = eager ? 64 : 0;
        struct virtual_result *v = run(&s, take_slow, order);
        assert_clean(v);
        for (int i = 0; i < 7; i++)
            assert_int_equal(order[i], 7 - i);
        virtual_close(&v);
    }
}

// Five messages from one rank to another, small and large in turn, keep their
// order. A buffer is NaN until its message is complete.
static int keep_order(struct virtual_rank *r, void *arg)
{
    (void)arg;
    float v[5][8];
    struct virtual_req req[5];
    for (int i = 0; i < 5; i++) {
        size_t bytes = (i % 2 ? 1 : 8) * sizeof(float);
        for (int k = 0; k < 8; k++)
            v[i][k] = (float)(10 * i + k);
        if (virtual_id(r) ? virtual_irecv(r, 0, v[i], bytes, &req[i])
                          : virtual_isend(r, 1, v[i], bytes, &req[i]))
            return -1;
        if (virtual_id(r) && !isnan(v[i][0]))
            return fail("message %d is readable too early", i);
        if (virtual_id(r))
            v[i][0] = 0;
    }
    if (virtual_wait(r, req, 5))
        return -1;
    for (int i = 0; i < 5; i++)
        if (v[i][0] != (float)(10 * i) || v[i][7] != (float)(10 * i + 7))
            return fail("message %d holds %g", i, (double)v[i][0]);
    return 0;
}

static void messages_keep_their_order(void **state)
{
    (void)state;
    for (size_t eager = 0; eager <= 32; eager += 8) {
        struct virtual_setup s = setup(2);
        s.eager = eager;
        struct virtual_result *v = run(&s, keep_order, NULL);
        assert_clean(v);
        for (size_t i = 1; i < v->n_messages; i++)
            assert_true(v->messages[i].begin_s >= v->messages[i - 1].end_s);
        virtual_close(&v);
    }
}

enum mistake { NOBODY, ONESELF, LENGTH, LEFT_OPEN, TWICE, TOO_LONG };

static int err(struct virtual_rank *r, void *arg)
{
    enum mistake mistake = *(enum mistake *)arg;
    int x[2] = {0, 0}, from, me = virtual_id(r);
    size_t bytes;
    struct virtual_req req, old;
    switch (mistake) {
    case NOBODY:
        return me ? 0 : send(r, 2, x, 4);
    case ONESELF:
        return me ? 0 : receive(r, 0, x, 4);
    case LENGTH:
        return me ? send(r, 0, x, 8) : receive(r, 1, x, 4);
    case LEFT_OPEN:
        return me ? 0 : virtual_isend(r, 1, x, 4, &req);
    case TWICE:
        if (me)
            return send(r, 0, x, 4);
        if (virtual_irecv(r, 1, x, 4, &req))
            return -1;
        old = req;
        return virtual_wait(r, &req, 1) || virtual_wait(r, &req, 1) ||
                       virtual_wait(r, &old, 1)
                   ? -1
                   : 0;
    case TOO_LONG:
        return me ? send(r, 0, x, 8) : virtual_recv_any(r, &from, &bytes, x, 4);
    }
    return 0;
}

static void mistakes_are_named(void **state)
{
    (void)state;
    static const char *const says[] = {
        [NOBODY] = "rank 0 sends to 2: the ranks are 0 to 1",
        [ONESELF] = "rank 0 receives from itself: that would never end",
        [LENGTH] = "rank 0 receives 4 bytes from 1 (message 1), which sent 8",
        [LEFT_OPEN] =
            ("rank 0 returned before 1 of its messages were complete; "
             "try: wait for every request"),
        [TWICE] = "rank 0 waits for request 0 of 1, which is not under way",
        [TOO_LONG] = "rank 0 receives 4 bytes from 1 (message 1), which sent 8",
    };
    for (enum mistake m = NOBODY; m <= TOO_LONG; m++) {
        struct virtual_setup s = setup(2);
        struct virtual_result *v = run(&s, err, &m);
        assert_string_equal(v->rank[0].error, says[m]);
        assert_int_equal(v->rank[0].value, -1);
        assert_int_equal(v->rank[1].value, 0);
        virtual_close(&v);
    }
    struct virtual_setup none = setup(0);
    assert_null(virtual_run(&none, err, NULL));
    struct virtual_setup still = setup(2);
    still.bytes_per_s = 0;
    assert_null(virtual_run(&still, err, NULL));
}

// One of two requests fails. The error names it, and the other one has its
// data.
static int one_of_two(struct virtual_rank *r, void *arg)
{
    (void)arg;
    int x = 7, y = 8;
    struct virtual_req req[2];
    if (virtual_id(r))
        return virtual_id(r) == 1 ? send(r, 0, &x, sizeof x) : 0;
    if (virtual_irecv(r, 2, &x, sizeof x, &req[0]) ||
        virtual_irecv(r, 1, &y, sizeof y, &req[1]))
        return -1;
    return virtual_wait(r, req, 2) == -1 && req[0].err == -1 &&
                   req[1].err == 0 && y == 7
               ? 0
               : fail("%d, %d, %d", req[0].err, req[1].err, y);
}

static void failed_request_is_named(void **state)
{
    (void)state;
    struct virtual_setup s = setup(3);
    s.deadline_s = 2;
    struct virtual_result *v = run(&s, one_of_two, NULL);
    for (int r = 0; r < 3; r++)
        assert_int_equal(v->rank[r].value, 0);
    assert_string_equal(v->rank[0].error, "rank 0 receives from 2 (message 1): "
                                          "not done within 2 s");
    virtual_close(&v);
}

// Rank 2's message occupies rank 0's link for 10 s. So rank 1's first message
// waits until one side gives it up, 5 s after it began to wait. `enum dropped`
// is that side.
enum dropped { RECEIVE, SEND, SEND_BEFORE_STORED };

static int one_is_dropped(struct virtual_rank *r, void *arg)
{
    static char large[1000];
    enum dropped dropped = *(enum dropped *)arg;
    bool stored = dropped == SEND_BEFORE_STORED;
    int me = virtual_id(r), x[2] = {7, 7}, y = 8, z = 0;
    struct virtual_req first, second, hold;
    if (me == 2) {
        virtual_compute(r, stored);
        if (virtual_isend(r, 0, large, sizeof large, &hold))
            return -1;
        virtual_compute(r, 10);
        return virtual_wait(r, &hold, 1);
    }
    if (me == 1) {
        virtual_compute(r, !stored);
        if (virtual_isend(r, 0, x, stored ? 8 : 4, &first) ||
            (dropped != RECEIVE && virtual_isend(r, 0, &y, 4, &second)))
            return -1;
        if (dropped != RECEIVE && virtual_wait(r, &first, 1) != -1)
            return fail("the first message arrived");
        virtual_compute(r, dropped == RECEIVE ? 10 : 5);
        return virtual_wait(r, dropped == RECEIVE ? &first : &second, 1);
    }
    if (virtual_irecv(r, 2, large, sizeof large, &hold))
        return -1;
    virtual_compute(r, stored ? 2 : 0);
    if (virtual_irecv(r, 1, &z, 4, &second))
        return -1;
    if (dropped == RECEIVE) {
        first = second;
        if (virtual_irecv(r, 1, &z, 4, &second) ||
            virtual_wait(r, &first, 1) != -1)
            return fail("the first receive is complete");
    }
    virtual_compute(r, stored ? 0 : 9 - virtual_now(r));
    if (virtual_wait(r, &second, 1) || z != (dropped == RECEIVE ? 7 : 8))
        return fail("received %d", z);
    if (stored && virtual_now(r) != 5)
        return fail("it arrived at %g s, not at 5 s", virtual_now(r));
    virtual_compute(r, 12 - virtual_now(r));
    return virtual_wait(r, &hold, 1);
}

static void a_dropped_message_frees_the_link(void **state)
{
    (void)state;
    for (enum dropped d = RECEIVE; d <= SEND_BEFORE_STORED; d++) {
        struct virtual_setup s = {.ranks = 3,
                                  .alpha_s = 0.25,
                                  .bytes_per_s = 100,
                                  .deadline_s = 5,
                                  .eager = d == SEND_BEFORE_STORED ? 4 : 0};
        struct virtual_result *v = run(&s, one_is_dropped, &d);
        assert_string_equal(v->deadlock, "");
        for (int r = 0; r < 3; r++) {
            if (v->rank[r].value)
                print_error("%d: rank %d: %s\n", d, r, v->rank[r].error);
            assert_int_equal(v->rank[r].value, 0);
        }
        virtual_close(&v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deadlock_is_a_circle),
        cmocka_unit_test(deadlock_names_the_cause),
        cmocka_unit_test(death_is_noticed),
        cmocka_unit_test(seed_decides_among_equals),
        cmocka_unit_test(messages_arrive_in_order_of_time),
        cmocka_unit_test(messages_keep_their_order),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(failed_request_is_named),
        cmocka_unit_test(a_dropped_message_frees_the_link),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
