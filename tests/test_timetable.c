// test_timetable.c - the schedules of a pipeline are complete and free of
// deadlock, and have the idle time and the slots of the formulas.

#include "pipeline/timetable.h"

#include "base/base.h"

#include <math.h>
#include <stdio.h>

#include "tests/test.h"

enum { STAGES = 8, MICRO = 32, CHUNKS = 4 };
enum { MOST = STAGES * MICRO * CHUNKS * 2 };

static struct timetable_entry entries[MOST];

// Calls a check with all pipelines of up to 8 stages, 16 micro-batches and 4
// chunks.
static void on_all(void (*check)(const struct pipeline *p))
{
    for (int kind = 0; kind < PIPELINE_KINDS; kind++)
        for (int stages = 1; stages <= STAGES; stages++)
            for (int micro = 1; micro <= 16; micro++)
                for (int chunks = 1; chunks <= CHUNKS; chunks++) {
                    struct pipeline p = {kind, stages, micro, chunks, 0};
                    for (; p.ahead < 3; p.ahead++)
                        if (!pipeline_check(&p))
                            check(&p);
                }
}

// The seconds of a step in which a forward takes f s, a backward b s and a
// message `hop` s.
static double run(const struct pipeline *p, double f, double b, double hop)
{
    double fs[STAGES], bs[STAGES];
    for (int s = 0; s < STAGES; s++) {
        fs[s] = f;
        bs[s] = b;
    }
    struct pipeline_times t = {fs, bs, hop, NULL};
    double seconds = timetable_run(p, &t, entries);
    if (seconds < 0)
        print_message("%s, %d stages, %d micro-batches, %d chunks, ahead %d: "
                      "no end\n",
                      pipeline_names[p->kind], p->stages, p->micro, p->chunks,
                      p->ahead);
    assert_true(seconds >= 0);
    return seconds;
}

// ---- each stage's actions

static void check_whole(const struct pipeline *p)
{
    for (int s = 0; s < p->stages; s++) {
        int seen[2][MICRO][CHUNKS] = {0}, held = 0, most = 0;
        int next[2][CHUNKS] = {0};
        for (int k = 0; k < timetable_length(p); k++) {
            struct action a = timetable_action(p, s, k);
            assert_in_range(a.micro, 0, p->micro - 1);
            assert_in_range(a.chunk, 0, p->chunks - 1);
            assert_int_equal(seen[a.kind][a.micro][a.chunk]++, 0);
            // micro-batches are in order, so that sums of gradients are, too
            assert_int_equal(a.micro, next[a.kind][a.chunk]++);
            if (a.kind == ACTION_BACKWARD)
                assert_int_equal(seen[ACTION_FORWARD][a.micro][a.chunk], 1);
            held += a.kind == ACTION_FORWARD ? 1 : -1;
            most = held > most ? held : most;
        }
        assert_int_equal(held, 0);
        assert_int_equal(most, timetable_slots(p, s));
    }
}

static void every_micro_batch_once_and_in_order(void **state)
{
    (void)state;
    on_all(check_whole);
}

static void one_stage_is_accumulation(void **state)
{
    (void)state;
    for (int kind = 0; kind < PIPELINE_KINDS; kind++) {
        struct pipeline p = {kind, 1, 5, 1, 0};
        for (int k = 0; kind != PIPELINE_GPIPE && k < 10; k++) {
            struct action a = timetable_action(&p, 0, k);
            assert_int_equal(a.kind, k % 2);
            assert_int_equal(a.micro, k / 2);
        }
    }
}

static void slots(void **state)
{
    (void)state;
    static const int interleaved[] = {11, 9, 7, 5};
    struct pipeline p = {PIPELINE_1F1B, 4, 8, 2, 0};
    for (int s = 0; s < 4; s++) {
        p.chunks = 2;
        assert_int_equal(timetable_slots(&p, s), interleaved[s]);
        p.chunks = 1;
        assert_int_equal(timetable_slots(&p, s), 4 - s);
        p.ahead = 1;
        assert_int_equal(timetable_slots(&p, s), 2 * (4 - s) - 1);
        p.ahead = 0;
    }
    p.kind = PIPELINE_GPIPE;
    assert_int_equal(timetable_slots(&p, 0), 8);
    p.kind = PIPELINE_NAIVE;
    assert_int_equal(timetable_slots(&p, 0), 1);
}

// ---- times, compared with the formulas

// Times are whole numbers of seconds, so that sums have no rounding.
static void check_bubble(const struct pipeline *p)
{
    double seconds = run(p, 1, 2, 0);
    double busy = 3.0 * p->micro * p->chunks;
    assert_true(fabs(1 - busy / seconds - timetable_bubble(p)) < 1e-12);
}

static void equal_stages_idle_by_the_formula(void **state)
{
    (void)state;
    on_all(check_bubble);
}

static void check_causes(const struct pipeline *p)
{
    int length = timetable_length(p);
    double seconds = run(p, 2, 3, 1);
    for (int s = 0; s < p->stages; s++)
        for (int k = 0; k < length; k++) {
            const struct timetable_entry *e = &entries[s * length + k];
            assert_int_equal(e->stage, s);
            assert_true(e->end_s <= seconds);
            assert_true(k == 0 || e[-1].end_s <= e->begin_s);
            if (e->action.kind == ACTION_FORWARD && e->action.chunk == 0)
                assert_true(e->begin_s >= 3 * s); // s stages and s hops earlier
        }
}

static void nothing_begins_before_its_cause(void **state)
{
    (void)state;
    on_all(check_causes);
}

// gpipe: all forwards at the pace of the slowest stage, then all backwards.
static void unequal_stages(void **state)
{
    (void)state;
    unsigned seed = 1;
    for (int i = 0; i < 1000; i++) {
        double f[STAGES], b[STAGES], sum = 0, most = 0;
        struct pipeline p = {PIPELINE_GPIPE, 2 + i % 5, 1 + i % 16, 1, 0};
        for (int s = 0; s < p.stages; s++) {
            seed = seed * 1103515245 + 12345;
            f[s] = 5 + (seed >> 16) % 11;
            b[s] = 2 * f[s];
            sum += 3 * f[s];
            most = fmax(most, f[s]);
        }
        struct pipeline_times t = {f, b, 0, NULL};
        assert_true(timetable_run(&p, &t, entries) ==
                    sum + (p.micro - 1) * 3 * most);
        p.kind = PIPELINE_1F1B; // has no formula; only a lower bound
        assert_true(timetable_run(&p, &t, entries) >= sum);
    }
}

// Two stages of 26 ms forward and 51 ms backward, four of half as much, and
// eight of a quarter, with messages of 8.8 ms.
static void slow_links(void **state)
{
    (void)state;
    static const struct {
        int stages, micro;
        double gpipe, f1b, ahead; // in ms
    } want[] = {{2, 8, 710.6, 763.4, 710.6},
                {4, 32, 1400.3, 1805.1, 1400.3},
                {8, 32, 873.95, 1349.15, 873.95}};
    for (int i = 0; i < 3; i++) {
        double f = 52.0 / want[i].stages, b = 102.0 / want[i].stages;
        struct pipeline p = {PIPELINE_GPIPE, want[i].stages, want[i].micro, 1,
                             0};
        assert_true(fabs(run(&p, f, b, 8.8) - want[i].gpipe) < 1e-9);
        p.kind = PIPELINE_1F1B;
        assert_true(fabs(run(&p, f, b, 8.8) - want[i].f1b) < 1e-9);
        p.ahead = 1;
        assert_true(fabs(run(&p, f, b, 8.8) - want[i].ahead) < 1e-9);
    }
}

// ---- pipelines that are refused

static void refuses(const struct pipeline *p, const char *why)
{
    assert_int_equal(pipeline_check(p), -1);
    if (!strstr(fail_message(), why))
        print_message("said: %s\nwanted: %s\n", fail_message(), why);
    assert_non_null(strstr(fail_message(), why));
}

static void impossible_pipelines_are_refused(void **state)
{
    (void)state;
    refuses(&(struct pipeline){PIPELINE_1F1B, 4, 6, 2, 0},
            "try: 8 micro-batches");
    refuses(&(struct pipeline){PIPELINE_1F1B, 1, 6, 2, 0}, "chunks=2");
    refuses(&(struct pipeline){PIPELINE_GPIPE, 2, 6, 2, 0}, "chunks=2");
    refuses(&(struct pipeline){PIPELINE_GPIPE, 2, 6, 1, 1}, "ahead=1");
    refuses(&(struct pipeline){PIPELINE_1F1B, 2, 6, 2, 1}, "ahead=1");
    refuses(&(struct pipeline){PIPELINE_1F1B, 0, 6, 1, 0}, "stages=0");
    refuses(&(struct pipeline){PIPELINE_1F1B, 2, 0, 1, 0}, "micro=0");
    refuses(&(struct pipeline){PIPELINE_1F1B, 2, 2, 17, 0}, "chunks=17");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_micro_batch_once_and_in_order),
        cmocka_unit_test(one_stage_is_accumulation),
        cmocka_unit_test(slots),
        cmocka_unit_test(equal_stages_idle_by_the_formula),
        cmocka_unit_test(nothing_begins_before_its_cause),
        cmocka_unit_test(unequal_stages),
        cmocka_unit_test(slow_links),
        cmocka_unit_test(impossible_pipelines_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
