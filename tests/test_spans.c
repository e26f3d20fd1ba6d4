// test_spans.c - lanes of spans: nesting, totals, the ring buffer, and a reader
// at the same time as a writer.

#include "telemetry/shares.h"
#include "telemetry/span.h"

#include "base/base.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "tests/test.h"

enum { MOST = 4096 };

struct list {
    struct span_record at[MOST];
    int n;
};

static void collect(void *ctx, const struct span_record *r)
{
    struct list *list = ctx;
    assert_true(list->n < MOST);
    list->at[list->n++] = *r;
}

static void nap(long us)
{
    struct timespec t = {.tv_nsec = us * 1000};
    nanosleep(&t, NULL);
}

static uint64_t sum(const uint64_t v[SPAN_KINDS])
{
    uint64_t all = 0;
    for (int k = 0; k < SPAN_KINDS; k++)
        all += v[k];
    return all;
}

static void nested(void **state)
{
    (void)state;
    struct spans *s;
    static struct list list;
    uint64_t before = now_ns();
    assert_int_equal(spans_open(&s, 100), 0);
    struct span_lane *l = spans_compute(s);
    span_begin(l, SPAN_STEP, 7);
    span_begin(l, SPAN_FORWARD, -1);
    span_begin(l, SPAN_FORWARD, 3);
    nap(2000);
    span_end(l);
    span_end(l);
    span_begin(l, SPAN_WAIT, -1);
    nap(3000);
    uint64_t from = now_ns();
    nap(2000);
    uint64_t to = now_ns();
    span_add(l, SPAN_UPDATE, -1, from, to);
    span_count(l, COUNTER_LOSS, 2.5);
    span_end(l);
    span_end(l);

    list.n = 0;
    assert_int_equal(span_each(l, collect, &list), 0);
    assert_int_equal(list.n, 6);
    const struct span_record *r = list.at;
    assert_true(r[0].kind == SPAN_FORWARD && r[0].index == 3);
    assert_true(r[0].depth == 2 && r[1].depth == 1 && r[5].depth == 0);
    assert_true(r[1].begin_ns <= r[0].begin_ns && r[0].end_ns <= r[1].end_ns);
    assert_true(r[2].kind == SPAN_UPDATE && r[2].begin_ns == from);
    assert_true(r[3].is_counter && r[3].value == 2.5);
    assert_true(r[4].kind == SPAN_WAIT && r[4].end_ns >= to);
    assert_true(r[5].kind == SPAN_STEP && r[5].index == 7);

    uint64_t t[SPAN_KINDS];
    span_totals(l, t);
    assert_true(t[SPAN_UPDATE] == to - from);
    assert_true(t[SPAN_WAIT] + t[SPAN_UPDATE] <=
                r[4].end_ns - r[4].begin_ns + 1);
    assert_true(t[SPAN_WAIT] >= 3000000);
    assert_true(t[SPAN_FORWARD] >= 2000000);
    assert_true(sum(t) <= now_ns() - before);
    spans_close(&s);
    assert_null(s);
}

static void counts_what_is_open(void **state)
{
    (void)state;
    struct spans *s;
    uint64_t t[SPAN_KINDS];
    assert_int_equal(spans_open(&s, 100), 0);
    span_begin(spans_compute(s), SPAN_BACKWARD, -1);
    nap(2000);
    span_totals(spans_compute(s), t);
    assert_true(t[SPAN_BACKWARD] >= 2000000);
    spans_close(&s);
}

static void keeps_the_newest(void **state)
{
    (void)state;
    struct spans *s;
    static struct list list;
    assert_int_equal(spans_open(&s, 64), 0);
    struct span_lane *l = spans_lane(s, "communication");
    for (int i = 0; i < 1000; i++) {
        span_begin(l, SPAN_SEND, i);
        span_end(l);
    }
    list.n = 0;
    uint64_t lost = span_each(l, collect, &list);
    assert_true(lost > 0 && lost + (uint64_t)list.n == 1000);
    for (int i = 0; i < list.n; i++)
        assert_int_equal(list.at[i].index, (int)lost + i);
    assert_int_equal(spans_nlanes(s), 2);
    assert_string_equal(span_lane_name(spans_at(s, 1)), "communication");
    spans_close(&s);
}

static void too_deep_is_left_out(void **state)
{
    (void)state;
    struct spans *s;
    static struct list list;
    assert_int_equal(spans_open(&s, 64), 0);
    struct span_lane *l = spans_compute(s);
    for (int i = 0; i < SPAN_DEPTH + 3; i++)
        span_begin(l, SPAN_STEP, i);
    span_add(l, SPAN_UPDATE, 0, now_ns(), now_ns());
    for (int i = 0; i < SPAN_DEPTH + 3; i++)
        span_end(l);
    list.n = 0;
    span_each(l, collect, &list);
    assert_int_equal(list.n, SPAN_DEPTH);
    assert_int_equal(list.at[0].index, SPAN_DEPTH - 1);
    spans_close(&s);
}

static void the_next_span_carries_bytes(void **state)
{
    (void)state;
    struct spans *s;
    static struct list list;
    assert_int_equal(spans_open(&s, 16), 0);
    struct span_lane *l = spans_compute(s);
    span_begin(l, SPAN_RECEIVE, 1);
    span_carries(l, 100);
    span_end(l);
    span_add(l, SPAN_ADD, 1, 1, 2);
    span_carries(l, 1ull << 40);
    span_add(l, SPAN_SEND, 2, 2, 3);
    span_each(l, collect, &list);
    assert_int_equal(list.n, 3);
    assert_true(list.at[0].value == 100);
    assert_true(list.at[1].value == 0);
    assert_true(list.at[2].value == 1099511627776.0);
    spans_close(&s);
    span_carries(NULL, 1);
}

// Without records the lane "compute" still measures.
static void totals_without_records(void **state)
{
    (void)state;
    struct spans *s;
    static struct list list;
    uint64_t t[SPAN_KINDS];
    assert_int_equal(spans_open(&s, 0), 0);
    struct span_lane *l = spans_compute(s);
    assert_null(spans_lane(s, "communication"));
    span_begin(l, SPAN_STEP, 1);
    span_begin(l, SPAN_DATA, -1);
    nap(2000);
    uint64_t data = span_end(l), now = now_ns();
    span_add(l, SPAN_UPDATE, -1, now, now);
    span_count(l, COUNTER_LOSS, 2.5);
    uint64_t step = span_end(l);
    span_totals(l, t);
    assert_true(data >= 2000000 && step >= data && t[SPAN_DATA] == data);
    assert_true(t[SPAN_STEP] + t[SPAN_DATA] + t[SPAN_UPDATE] == step);
    list.n = 0;
    assert_true(span_each(l, collect, &list) == 0 && list.n == 0);
    spans_close(&s);
}

static void off(void **state)
{
    (void)state;
    struct span_lane *l = spans_lane(NULL, "x");
    assert_null(l);
    assert_null(spans_compute(NULL));
    assert_int_equal(spans_nlanes(NULL), 0);
    span_begin(l, SPAN_STEP, 0);
    span_add(l, SPAN_UPDATE, 0, 1, 2);
    span_count(l, COUNTER_LAG, 1);
    assert_true(span_end(l) == 0);
}

static void lanes_run_out(void **state)
{
    (void)state;
    struct spans *s;
    assert_int_equal(spans_open(&s, 64), 0);
    for (int i = 1; i < SPAN_LANES; i++)
        assert_non_null(spans_lane(s, "server"));
    assert_null(spans_lane(s, "one too many"));
    spans_close(&s);
}

static void assert_shares(const double share[SPAN_KINDS])
{
    double all = 0;
    for (int k = 0; k < SPAN_KINDS; k++) {
        assert_true(share[k] >= 0 && share[k] <= 1);
        all += share[k];
    }
    assert_true(fabs(all - 1) < 1e-9);
}

// A sample counts some time as `wait`. Later the same time turns out to be an
// update, so the total of `wait` falls. No update may be lost, and no wait may
// be counted twice.
static void totals_that_fall(void **state)
{
    (void)state;
    struct shares s;
    uint64_t t[SPAN_KINDS] = {0};
    double share[SPAN_KINDS], waited = 0, updated = 0;
    shares_begin(&s, t);
    const struct {
        uint64_t wait, update;
        double wait_share, update_share;
    } looks[] = {
        {100, 0, 1, 0},     // all 100 seem to be waiting
        {20, 180, 0, 1},    // 80 were update; of its 180, 100 fit in here
        {120, 180, .2, .8}, // 20 of new waiting, and the other 80 of update
        {150, 180, 1, 0},
    };
    uint64_t before = 0;
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
        t[SPAN_WAIT] = looks[i].wait;
        t[SPAN_UPDATE] = looks[i].update;
        shares_take(&s, t, share);
        assert_shares(share);
        assert_true(fabs(share[SPAN_WAIT] - looks[i].wait_share) < 1e-9);
        assert_true(fabs(share[SPAN_UPDATE] - looks[i].update_share) < 1e-9);
        waited += share[SPAN_WAIT] * (double)(sum(t) - before);
        updated += share[SPAN_UPDATE] * (double)(sum(t) - before);
        before = sum(t);
    }
    assert_true(fabs(waited - 150) < 1e-6 && fabs(updated - 180) < 1e-6);
    shares_take(&s, t, share); // no time has passed
    assert_true(share[SPAN_WAIT] == 0 && share[SPAN_UPDATE] == 0);
}

// The same with a real lane: an update ran inside a wait, and the lane learns
// of it when the update is over.
static void an_update_inside_a_wait(void **state)
{
    (void)state;
    struct spans *spans;
    struct shares s;
    uint64_t t[SPAN_KINDS], later[SPAN_KINDS];
    double share[SPAN_KINDS];
    assert_int_equal(spans_open(&spans, 64), 0);
    struct span_lane *l = spans_compute(spans);
    span_begin(l, SPAN_WAIT, -1);
    uint64_t from = now_ns(), hour = 3600000000000u;
    span_totals(l, t);
    shares_begin(&s, t);
    nap(5000);
    span_totals(l, t);
    shares_take(&s, t, share);
    assert_shares(share);
    assert_true(share[SPAN_WAIT] == 1);
    span_add(l, SPAN_UPDATE, -1, from, from + hour); // covers the whole wait
    span_totals(l, later);
    assert_true(later[SPAN_WAIT] < t[SPAN_WAIT]);
    shares_take(&s, later, share);
    assert_shares(share);
    assert_true(share[SPAN_WAIT] == 0 && share[SPAN_UPDATE] == 1);
    span_end(l);
    spans_close(&spans);
}

struct writer {
    struct span_lane *lane;
    _Atomic bool stop;
};

enum { CHAINED = 200000 };

static void *write_chain(void *arg)
{
    for (uint64_t i = 1; i <= CHAINED; i++) {
        span_carries(arg, i);
        span_add(arg, SPAN_ADD, (int)i, i, 2 * i);
    }
    return NULL;
}

struct chain {
    int last, seen;
};

static void follow(void *ctx, const struct span_record *r)
{
    struct chain *c = ctx;
    uint64_t i = (uint64_t)r->index;
    assert_true(r->index > c->last);
    assert_true(r->begin_ns == i && r->end_ns == 2 * i);
    assert_true(r->value == (double)i && r->kind == SPAN_ADD && !r->is_counter);
    c->last = r->index;
    c->seen++;
}

// Every record that a reader is given is whole, and later than the one before,
// though the writer comes around the ring thousands of times.
static void records_beside_writer(void **state)
{
    (void)state;
    struct spans *s;
    struct chain c;
    pthread_t thread;
    assert_int_equal(spans_open(&s, 32), 0);
    struct span_lane *l = spans_lane(s, "communication");
    assert_int_equal(pthread_create(&thread, NULL, write_chain, l), 0);
    do {
        c = (struct chain){0};
        span_each(l, follow, &c);
    } while (c.last < CHAINED);
    pthread_join(thread, NULL);
    c = (struct chain){0};
    assert_int_equal(span_each(l, follow, &c), CHAINED - 31);
    assert_int_equal(c.seen, 31);
    spans_close(&s);
}

static void *write_spans(void *arg)
{
    struct writer *w = arg;
    while (!w->stop) {
        span_begin(w->lane, SPAN_WAIT, -1);
        span_begin(w->lane, SPAN_SEND, -1);
        span_end(w->lane);
        uint64_t now = now_ns();
        span_add(w->lane, SPAN_ADD, -1, now, now_ns());
        span_end(w->lane);
    }
    return NULL;
}

// The sum of totals never falls, and never exceeds the time that has passed.
// Whenever a reader looks, shares are from 0 to 1 and add up to 1.
static void reader_beside_writer(void **state)
{
    (void)state;
    struct spans *s;
    uint64_t before = now_ns(), last[SPAN_KINDS] = {0}, t[SPAN_KINDS];
    assert_int_equal(spans_open(&s, 64), 0);
    struct writer w = {.lane = spans_lane(s, "communication")};
    double share[SPAN_KINDS];
    struct shares shares = {{0}};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, write_spans, &w), 0);
    for (int i = 0; i < 2000; i++) {
        span_totals(w.lane, t);
        assert_true(sum(t) <= now_ns() - before);
        assert_true(sum(t) >= sum(last));
        shares_take(&shares, t, share);
        if (sum(t) > sum(last))
            assert_shares(share);
        memcpy(last, t, sizeof t);
    }
    w.stop = true;
    pthread_join(thread, NULL);
    spans_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nested),
        cmocka_unit_test(counts_what_is_open),
        cmocka_unit_test(keeps_the_newest),
        cmocka_unit_test(too_deep_is_left_out),
        cmocka_unit_test(the_next_span_carries_bytes),
        cmocka_unit_test(totals_without_records),
        cmocka_unit_test(off),
        cmocka_unit_test(lanes_run_out),
        cmocka_unit_test(totals_that_fall),
        cmocka_unit_test(an_update_inside_a_wait),
        cmocka_unit_test(reader_beside_writer),
        cmocka_unit_test(records_beside_writer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
