// test_busy.c - measures the busy time of three devices: one whose clock the
// test sets, one whose queues are threads (queue_device.h), and the CPU.

#include "device/busy.h"

#include "base/base.h"
#include "device/staging.h"
#include "tests/queue_device.h"

#include "tests/test.h"

// ---- a clock that the test sets

// The time of an event is the value that clock_ns has when the event is
// recorded. The device has reached the event once progress_ns is not less than
// this time.
static uint64_t clock_ns, progress_ns;

static void fake_record(struct device *d, struct device_event *e,
                        enum device_queue q)
{
    (void)d, (void)q;
    e->ns = clock_ns;
}

static bool fake_reached(struct device *d, const struct device_event *e)
{
    (void)d;
    return e->ns <= progress_ns;
}

static void work(struct device *d, enum device_queue q, uint64_t ns)
{
    busy_begin(d, q);
    clock_ns += ns;
    busy_end(d, q);
}

static void fake_device(struct device_ops *ops, struct device *d)
{
    *ops = device_cpu;
    ops->record = fake_record;
    ops->reached = fake_reached;
    *d = (struct device){.ops = ops};
    clock_ns = 1000;
    progress_ns = 0;
    assert_int_equal(busy_open(d), 0);
}

static void a_step_is_reported_when_it_is_over(void **state)
{
    (void)state;
    struct device_ops ops;
    struct device d;
    struct busy_step s;
    uint64_t before = now_ns();
    fake_device(&ops, &d);
    assert_false(busy_take(&d, &s)); // no step is over
    for (int step = 1; step <= 2; step++) {
        clock_ns += 100; // between steps: counts for none
        busy_step_begin(&d);
        work(&d, DEVICE_COMPUTE, 30 * (uint64_t)step);
        clock_ns += 5;
        work(&d, DEVICE_COMPUTE, 10);
        work(&d, DEVICE_DOWN, 7);
        busy_step_end(&d);
    }
    assert_false(busy_take(&d, &s));
    progress_ns = clock_ns - 1; // the end of the second step is still to come
    assert_true(busy_take(&d, &s));
    assert_int_equal(s.ns, 52);
    assert_int_equal(s.at[DEVICE_COMPUTE], 40);
    assert_int_equal(s.at[DEVICE_DOWN], 7);
    assert_int_equal(s.at[DEVICE_COMM], 0);
    assert_true(s.ended_ns >= before && s.ended_ns <= now_ns());
    assert_false(busy_take(&d, &s));
    progress_ns = clock_ns;
    assert_true(busy_take(&d, &s));
    assert_int_equal(s.ns, 82);
    assert_int_equal(s.at[DEVICE_COMPUTE], 70);
    assert_false(busy_take(&d, &s));
    busy_close(&d);
    busy_close(&d);
}

// A copy that ends after its step counts for that step.
static void a_step_waits_for_all_queues(void **state)
{
    (void)state;
    struct device_ops ops;
    struct device d;
    struct busy_step s;
    fake_device(&ops, &d);
    busy_step_begin(&d);
    busy_begin(&d, DEVICE_UP);
    clock_ns += 20;
    uint64_t copied = clock_ns + 50;
    clock_ns = copied;
    busy_end(&d, DEVICE_UP);
    clock_ns -= 50;
    busy_step_end(&d);
    progress_ns = clock_ns;
    assert_false(busy_take(&d, &s));
    progress_ns = copied;
    assert_true(busy_take(&d, &s));
    assert_int_equal(s.ns, 20);
    assert_int_equal(s.at[DEVICE_UP], 70);
    busy_close(&d);
}

static void stretches_that_do_not_fit_extend_the_last(void **state)
{
    (void)state;
    struct device_ops ops;
    struct device d;
    struct busy_step s;
    fake_device(&ops, &d);
    busy_step_begin(&d);
    for (int i = 0; i < BUSY_STRETCHES + 10; i++) {
        work(&d, DEVICE_COMM, 2);
        clock_ns += 1;
    }
    busy_step_end(&d);
    for (int i = 0; i < BUSY_STEPS; i++) { // one more than fit
        busy_step_begin(&d);
        clock_ns += 3;
        busy_step_end(&d);
    }
    progress_ns = clock_ns;
    assert_true(busy_take(&d, &s));
    // the last stretch also covers the ten later ones and the gaps before them
    assert_int_equal(s.at[DEVICE_COMM], 2 * (BUSY_STRETCHES + 10) + 10);
    for (int i = 1; i < BUSY_STEPS; i++) {
        assert_true(busy_take(&d, &s));
        assert_int_equal(s.ns, i < BUSY_STEPS - 1 ? 3 : 6);
    }
    assert_false(busy_take(&d, &s));
    work(&d, DEVICE_COMM, 2); // stretches fit again
    busy_close(&d);
}

// ---- queues that are threads: device time is the number of operations

static void copies_are_measured(void **state)
{
    (void)state;
    enum { N = 1000, PIECES = 4, PIECE = N / PIECES };
    float v[N] = {0};
    struct device *d = NULL;
    struct staging *staging = NULL;
    struct busy_step s;
    assert_int_equal(queue_device_open(&d), 0);
    assert_int_equal(busy_open(d), 0);
    assert_int_equal(staging_open(&staging, d, v, N, PIECES, false), 0);
    busy_step_begin(d);
    for (int p = 0; p < PIECES; p++)
        staging_down(staging, p, (size_t)p * PIECE, PIECE);
    staging_up(staging, 0, N);
    staging_settle(staging);
    busy_step_end(d);
    device_finish(d);
    assert_true(busy_take(d, &s));
    assert_int_equal(s.at[DEVICE_DOWN], PIECES); // waits do not count
    assert_int_equal(s.at[DEVICE_UP], 1);
    assert_int_equal(s.at[DEVICE_COMM], 0);
    staging_close(&staging);
    busy_close(d);
    device_close(&d);
    assert_null(d);
}

// ---- the CPU device

static void on_the_cpu_a_step_is_over_at_once(void **state)
{
    (void)state;
    struct device *d = NULL;
    struct busy_step s;
    assert_int_equal(device_open(&d, "cpu"), 0);
    busy_begin(d, DEVICE_COMPUTE); // measures nothing yet
    busy_end(d, DEVICE_COMPUTE);
    busy_step_begin(d);
    busy_step_end(d);
    assert_false(busy_take(d, &s));
    assert_int_equal(busy_open(d), 0);
    for (int i = 0; i < 10; i++) {
        busy_step_begin(d);
        busy_begin(d, DEVICE_COMPUTE);
        busy_end(d, DEVICE_COMPUTE);
        busy_step_end(d);
        assert_true(busy_take(d, &s));
        assert_true(s.at[DEVICE_COMPUTE] <= s.ns);
    }
    busy_close(d);
    device_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_is_reported_when_it_is_over),
        cmocka_unit_test(a_step_waits_for_all_queues),
        cmocka_unit_test(stretches_that_do_not_fit_extend_the_last),
        cmocka_unit_test(copies_are_measured),
        cmocka_unit_test(on_the_cpu_a_step_is_over_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
