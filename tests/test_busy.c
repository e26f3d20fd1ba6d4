// test_busy.c - busy time: through a device whose clock a test turns, through
// queues that are threads, and through the CPU device.

#include "device/busy.h"

#include "base/base.h"
#include "device/staging.h"
#include "tests/queue_device.h"

#include "tests/test.h"

// ---- a clock that a test turns

// An event happens at the moment it is recorded, and is known to have happened
// once the device has got there.
static uint64_t hand, there;

static int hand_record(struct device *d, struct device_event *e,
                       enum device_queue q)
{
    (void)d, (void)q;
    e->ns = hand;
    return 0;
}

static int hand_reached(struct device *d, const struct device_event *e)
{
    (void)d;
    return e->ns <= there;
}

static void work(struct device *d, enum device_queue q, uint64_t ns)
{
    assert_int_equal(busy_begin(d, q), 0);
    hand += ns;
    assert_int_equal(busy_end(d, q), 0);
}

static void hand_device(struct device_ops *ops, struct device *d)
{
    *ops = device_cpu;
    ops->record = hand_record;
    ops->reached = hand_reached;
    *d = (struct device){.ops = ops};
    hand = 1000;
    there = 0;
    assert_int_equal(busy_open(d), 0);
}

static void a_step_is_told_when_it_is_over(void **state)
{
    (void)state;
    struct device_ops ops;
    struct device d;
    struct busy_step s;
    uint64_t before = now_ns();
    hand_device(&ops, &d);
    assert_int_equal(busy_take(&d, &s), 0); // there is none
    for (int step = 1; step <= 2; step++) {
        hand += 100; // between steps: nobody's
        assert_int_equal(busy_step_begin(&d), 0);
        work(&d, DEVICE_COMPUTE, 30 * (uint64_t)step);
        hand += 5;
        work(&d, DEVICE_COMPUTE, 10);
        work(&d, DEVICE_DOWN, 7);
        assert_int_equal(busy_step_end(&d), 0);
    }
    assert_int_equal(busy_take(&d, &s), 0);
    there = hand - 1; // the end of the second step is still to come
    assert_int_equal(busy_take(&d, &s), 1);
    assert_int_equal(s.ns, 52);
    assert_int_equal(s.at[DEVICE_COMPUTE], 40);
    assert_int_equal(s.at[DEVICE_DOWN], 7);
    assert_int_equal(s.at[DEVICE_COMM], 0);
    assert_true(s.ended_ns >= before && s.ended_ns <= now_ns());
    assert_int_equal(busy_take(&d, &s), 0);
    there = hand;
    assert_int_equal(busy_take(&d, &s), 1);
    assert_int_equal(s.ns, 82);
    assert_int_equal(s.at[DEVICE_COMPUTE], 70);
    assert_int_equal(busy_take(&d, &s), 0);
    busy_close(&d);
    busy_close(&d);
}

// A copy that ends behind its step is that step's all the same.
static void a_step_waits_for_all_queues(void **state)
{
    (void)state;
    struct device_ops ops;
    struct device d;
    struct busy_step s;
    hand_device(&ops, &d);
    assert_int_equal(busy_step_begin(&d), 0);
    assert_int_equal(busy_begin(&d, DEVICE_UP), 0);
    hand += 20;
    uint64_t copied = hand + 50;
    hand = copied;
    assert_int_equal(busy_end(&d, DEVICE_UP), 0);
    hand -= 50;
    assert_int_equal(busy_step_end(&d), 0);
    there = hand;
    assert_int_equal(busy_take(&d, &s), 0);
    there = copied;
    assert_int_equal(busy_take(&d, &s), 1);
    assert_int_equal(s.ns, 20);
    assert_int_equal(s.at[DEVICE_UP], 70);
    busy_close(&d);
}

static void what_does_not_fit_makes_the_last_longer(void **state)
{
    (void)state;
    struct device_ops ops;
    struct device d;
    struct busy_step s;
    hand_device(&ops, &d);
    assert_int_equal(busy_step_begin(&d), 0);
    for (int i = 0; i < BUSY_STRETCHES + 10; i++) {
        work(&d, DEVICE_COMM, 2);
        hand += 1;
    }
    assert_int_equal(busy_step_end(&d), 0);
    for (int i = 0; i < BUSY_STEPS; i++) { // one more than fit
        assert_int_equal(busy_step_begin(&d), 0);
        hand += 3;
        assert_int_equal(busy_step_end(&d), 0);
    }
    there = hand;
    assert_int_equal(busy_take(&d, &s), 1);
    // the last stretch holds those that came later, and the gaps between
    assert_int_equal(s.at[DEVICE_COMM], 2 * (BUSY_STRETCHES + 10) + 10);
    for (int i = 1; i < BUSY_STEPS; i++) {
        assert_int_equal(busy_take(&d, &s), 1);
        assert_int_equal(s.ns, i < BUSY_STEPS - 1 ? 3 : 6);
    }
    assert_int_equal(busy_take(&d, &s), 0);
    work(&d, DEVICE_COMM, 2); // and there is room again
    busy_close(&d);
}

// ---- queues that are threads: device time is what was asked of a queue

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
    assert_int_equal(busy_step_begin(d), 0);
    for (int p = 0; p < PIECES; p++)
        assert_int_equal(staging_down(staging, p, (size_t)p * PIECE, PIECE), 0);
    assert_int_equal(staging_up(staging, 0, N), 0);
    assert_int_equal(staging_settle(staging), 0);
    assert_int_equal(busy_step_end(d), 0);
    assert_int_equal(device_finish(d), 0);
    assert_int_equal(busy_take(d, &s), 1);
    assert_int_equal(s.at[DEVICE_DOWN], PIECES); // not what they wait for
    assert_int_equal(s.at[DEVICE_UP], 1);
    assert_int_equal(s.at[DEVICE_COMM], 0);
    staging_close(&staging);
    busy_close(d);
    device_close(&d);
    assert_null(d);
}

// ---- the CPU device

static void on_the_cpu_every_step_is_over(void **state)
{
    (void)state;
    struct device *d = NULL;
    struct busy_step s;
    assert_int_equal(device_open(&d, "cpu"), 0);
    assert_int_equal(busy_begin(d, DEVICE_COMPUTE), 0); // nobody measures
    assert_int_equal(busy_end(d, DEVICE_COMPUTE), 0);
    assert_int_equal(busy_step_begin(d), 0);
    assert_int_equal(busy_step_end(d), 0);
    assert_int_equal(busy_take(d, &s), 0);
    assert_int_equal(busy_open(d), 0);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(busy_step_begin(d), 0);
        assert_int_equal(busy_begin(d, DEVICE_COMPUTE), 0);
        assert_int_equal(busy_end(d, DEVICE_COMPUTE), 0);
        assert_int_equal(busy_step_end(d), 0);
        assert_int_equal(busy_take(d, &s), 1);
        assert_true(s.at[DEVICE_COMPUTE] <= s.ns);
    }
    busy_close(d);
    device_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_is_told_when_it_is_over),
        cmocka_unit_test(a_step_waits_for_all_queues),
        cmocka_unit_test(what_does_not_fit_makes_the_last_longer),
        cmocka_unit_test(copies_are_measured),
        cmocka_unit_test(on_the_cpu_every_step_is_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
