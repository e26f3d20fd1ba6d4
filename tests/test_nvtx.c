// test_nvtx.c - spans are ranges of NVTX, which profilers record.

#include "telemetry/span.h"

#include "tests/fake_nvtx.h"

#include "tests/test.h"

static void spans_are_ranges(void **state)
{
    (void)state;
    struct spans *s = NULL;
    assert_int_equal(spans_open(&s, 64), 0);
    struct span_lane *l = spans_compute(s);
    span_begin(l, SPAN_STEP, 3);
    span_begin(l, SPAN_FORWARD, 0);
    span_begin(l, SPAN_FORWARD, 11);
    span_end(l);
    span_end(l);
    span_add(l, SPAN_UPDATE, -1, 1, 2); // already over: no range
    span_begin(l, SPAN_READY, 7);
    span_end(l);
    span_end(l);
    assert_string_equal(fake_nvtx_text(),
                        "lockstep: step(3) { forward(0) { forward(11) { } } "
                        "ready(7) { } } ");
    spans_close(&s);
}

static void ranges_beyond_the_depth_stay_balanced(void **state)
{
    (void)state;
    struct spans *s = NULL;
    assert_int_equal(spans_open(&s, 64), 0);
    struct span_lane *l = spans_compute(s);
    for (int i = 0; i < SPAN_DEPTH + 2; i++)
        span_begin(l, SPAN_ADD, i);
    for (int i = 0; i < SPAN_DEPTH + 2; i++)
        span_end(l);
    int depth = 0;
    for (const char *p = fake_nvtx_text(); *p; p++)
        depth += (*p == '{') - (*p == '}');
    assert_int_equal(depth, 0);
    spans_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_are_ranges),
        cmocka_unit_test(ranges_beyond_the_depth_stay_balanced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
