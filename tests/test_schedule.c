// test_schedule.c - runs the textbooks' broadcast, reduce, scatter and gather,
// with all members of a world in one process, round by round.

#include "textbook/schedule.h"

#include "base/base.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/test.h"

enum { WORLDS = 17, LONGEST = 103 };

// Calls a check with every schedule, for several worlds and lengths.
static void on_all(void (*check)(const struct schedule *s))
{
    static const size_t pieces[] = {1, 7, 34, 200};
    for (int world = 2; world <= WORLDS; world++) {
        size_t sizes[] = {(size_t)world, 64, LONGEST};
        for (int i = 0; i < 3 * SCHEDULE_OPS * 4; i++) {
            struct schedule s = {.op = i / 3 % SCHEDULE_OPS,
                                 .world = world,
                                 .n = sizes[i % 3],
                                 .piece = pieces[i / 3 / SCHEDULE_OPS]};
            for (int a = 0; a < SCHEDULE_ALGORITHMS; a++) {
                s.algorithm = a;
                if (schedule_exists(s.op, s.algorithm))
                    check(&s);
            }
        }
    }
}

// ---- the numbers

static float value(int rank, size_t i)
{
    return (float)((i * 7 + (size_t)rank * 31) % 97);
}

static float expected(const struct schedule *s, size_t i)
{
    float sum = 0, own = 0;
    for (int r = 0; r < s->world; r++) {
        struct group_chunk c = group_chunk(s->n, 1, s->world, r);
        sum += value(r, i);
        if (i >= c.off && i < c.off + c.n)
            own = value(r, i);
    }
    return s->op == SCHEDULE_REDUCE   ? sum
           : s->op == SCHEDULE_GATHER ? own
                                      : value(0, i);
}

// The receive that matches *m, a send by member `from`.
static struct move matching(const struct schedule *s, int from,
                            const struct move *m)
{
    struct move in;
    for (int k = 0; schedule_move(s, m->peer, k, &in); k++)
        if (!in.sends && in.peer == from && in.round == m->round)
            return in;
    print_message("%s %s, %d members: no member receives what %d sends in "
                  "round %d\n",
                  schedule_op_names[s->op],
                  schedule_algorithm_names[s->algorithm], s->world, from,
                  m->round);
    assert_true(false);
    return in;
}

// All messages of a round are sent at the same time: each holds the numbers
// that its sender had before the round.
static void run_round(const struct schedule *s, int round,
                      float now[WORLDS][LONGEST])
{
    static float then[WORLDS][LONGEST];
    struct move out;
    memcpy(then, now, sizeof then);
    for (int r = 0; r < s->world; r++) {
        for (int k = 0; schedule_move(s, r, k, &out); k++) {
            if (!out.sends || out.round != round)
                continue;
            struct move in = matching(s, r, &out);
            assert_int_equal(in.span.off, out.span.off);
            assert_int_equal(in.span.n, out.span.n);
            for (size_t i = in.span.off; i < in.span.off + in.span.n; i++)
                now[out.peer][i] =
                    then[r][i] + (in.adds ? now[out.peer][i] : 0);
        }
    }
}

static void check_numbers(const struct schedule *s)
{
    static float v[WORLDS][LONGEST];
    for (int r = 0; r < s->world; r++)
        for (size_t i = 0; i < s->n; i++)
            v[r][i] = value(r, i);
    for (int round = 0; round < schedule_rounds(s); round++)
        run_round(s, round, v);
    for (int r = 0; r < s->world; r++) {
        struct group_chunk c = schedule_result(s, r);
        for (size_t i = c.off; i < c.off + c.n; i++)
            assert_true(v[r][i] == expected(s, i));
    }
}

static void numbers(void **state)
{
    (void)state;
    on_all(check_numbers);
}

static void results(void **state)
{
    (void)state;
    const size_t all = 10, third = 3;
    static const bool whole[SCHEDULE_OPS][2] = {
        [SCHEDULE_BROADCAST] = {true, true},
        [SCHEDULE_REDUCE] = {true, false},
        [SCHEDULE_GATHER] = {true, false},
    };
    for (int op = 0; op < SCHEDULE_OPS; op++) {
        struct schedule s = {.op = op, .world = 3, .n = all};
        bool cuts = op == SCHEDULE_SCATTER;
        size_t root = schedule_result(&s, 0).n, last = schedule_result(&s, 2).n;
        assert_int_equal(root, whole[op][0] ? all : cuts ? third + 1 : 0);
        assert_int_equal(last, whole[op][1] ? all : cuts ? third : 0);
    }
}

// ---- order: a member has one message a round and direction, and each message
// has a sender and a receiver

static void check_order(const struct schedule *s)
{
    int sends = 0, receives = 0;
    for (int r = 0; r < s->world; r++) {
        struct move m[2];
        int round = -1;
        for (int k = 0, n; (n = schedule_next(s, r, k, m)) > 0; k += n) {
            assert_true(m[0].round > round);
            assert_true(n == 1 || (!m[0].sends && m[1].sends));
            round = m[0].round;
            for (int i = 0; i < n; i++) {
                assert_true(m[i].peer >= 0 && m[i].peer < s->world &&
                            m[i].peer != r && m[i].span.n > 0);
                sends += m[i].sends;
                receives += !m[i].sends;
            }
        }
        assert_true(round < schedule_rounds(s));
    }
    assert_int_equal(sends, receives);
}

static void order(void **state)
{
    (void)state;
    on_all(check_order);
}

// ---- bytes

// Checks the number of elements that all members send. In a broadcast or a
// reduce it is n for each member but one. In a scatter or a gather each chunk
// counts once for every message that carries it.
static void check_bytes(const struct schedule *s)
{
    size_t all = 0, tree = 0, others = (size_t)s->world - 1;
    bool whole = s->op == SCHEDULE_BROADCAST || s->op == SCHEDULE_REDUCE;
    for (int r = 0; r < s->world; r++)
        all += schedule_sends(s, r);
    size_t own = group_chunk(s->n, 1, s->world, 0).n;
    for (int r = 1; r < s->world; r++) { // a message for each bit 1 of r
        int bits = __builtin_popcount((unsigned)r);
        tree += (size_t)bits * group_chunk(s->n, 1, s->world, r).n;
    }
    size_t want = whole                             ? others * s->n
                  : s->algorithm == SCHEDULE_LINEAR ? s->n - own
                                                    : tree;
    assert_int_equal(all, want);
    if (s->op == SCHEDULE_BROADCAST && s->algorithm == SCHEDULE_CHAIN)
        for (int r = 0; r < s->world; r++)
            assert_int_equal(schedule_sends(s, r), r < s->world - 1 ? s->n : 0);
    if (s->op == SCHEDULE_BROADCAST && s->algorithm == SCHEDULE_TREE)
        assert_int_equal(schedule_sends(s, 0),
                         (size_t)schedule_rounds(s) * s->n);
}

static void bytes(void **state)
{
    (void)state;
    on_all(check_bytes);
}

// ---- time

// The law is the time of all rounds, each as long as its longest message.
static void check_law(const struct schedule *s)
{
    size_t longest[WORLDS + LONGEST] = {0}, sum = 0;
    struct law law = schedule_law(s);
    struct move m;
    for (int r = 0; r < s->world; r++)
        for (int k = 0; schedule_move(s, r, k, &m); k++)
            if (m.span.n > longest[m.round])
                longest[m.round] = m.span.n;
    for (int round = 0; round < schedule_rounds(s); round++)
        sum += longest[round];
    assert_true(law.hops == schedule_rounds(s));
    assert_true(fabs(law.share * (double)s->n - (double)sum) < 1e-6);
}

static void laws(void **state)
{
    (void)state;
    on_all(check_law);
}

// A broadcast of a file of 5 MB from one of 8 friends, at 1e6 bytes/s.
static void friends(void **state)
{
    (void)state;
    const struct link link = {.bytes_per_s = 1e6};
    struct schedule s = {.op = SCHEDULE_BROADCAST, .world = 8, .n = 1250000};
    struct law linear = schedule_law(&s);
    s.algorithm = SCHEDULE_TREE;
    struct law tree = schedule_law(&s);
    assert_true(fabs(law_seconds(&linear, &link, 5e6) - 35) < 1e-9);
    assert_true(fabs(law_seconds(&tree, &link, 5e6) - 15) < 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers), cmocka_unit_test(results),
        cmocka_unit_test(order),   cmocka_unit_test(bytes),
        cmocka_unit_test(laws),    cmocka_unit_test(friends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
