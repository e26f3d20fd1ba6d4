// test_staging.c - staging, on the CPU device and on a device that copies as
// late as possible.

#include "device/staging.h"

#include "base/base.h"
#include "base/rng.h"

#include <math.h>

#include "tests/test.h"

enum { N = 1000, PIECES = 4, PIECE = N / PIECES };

// ---- a device that copies as late as possible
//
// Its memory is the host's. It records each copy, and copies only when the host
// waits for a later event. So if a wait is missing, the test reads old numbers.

enum { LATE_MOST = 64 };

struct late_copy {
    enum device_queue q;
    void *dst;
    const void *src;
    size_t bytes;
    bool done;
};

struct late {
    struct late_copy copies[LATE_MOST];
    int n;
};

static void late_copy(struct device *d, enum device_queue q, void *dst,
                      const void *src, size_t bytes)
{
    struct late *l = d->state;
    CHECK(l->n < LATE_MOST);
    l->copies[l->n++] = (struct late_copy){q, dst, src, bytes, false};
}

// An event is the number of copies recorded before it.
static void late_record(struct device *d, struct device_event *e,
                        enum device_queue q)
{
    const struct late *l = d->state;
    (void)q;
    e->ns = (uint64_t)l->n;
}

static void late_wait(struct device *d, const struct device_event *e)
{
    struct late *l = d->state;
    for (uint64_t i = 0; i < e->ns; i++) {
        struct late_copy *c = &l->copies[i];
        if (!c->done)
            memcpy(c->dst, c->src, c->bytes);
        c->done = true;
    }
}

static void late_finish(struct device *d)
{
    const struct late *l = d->state;
    struct device_event all = {.ns = (uint64_t)l->n};
    late_wait(d, &all);
}

static struct device late_device(struct device_ops *ops, struct late *state)
{
    *ops = device_cpu;
    ops->host = false;
    ops->copy = late_copy;
    ops->record = late_record;
    ops->wait = late_wait;
    ops->finish = late_finish;
    *state = (struct late){0};
    return (struct device){.ops = ops, .state = state};
}

// ---- staging

static void on_the_cpu_it_is_the_vector_itself(void **state)
{
    (void)state;
    float v[N] = {0};
    struct device *d = NULL;
    struct staging *s = NULL;
    assert_int_equal(device_open(&d, "cpu"), 0);
    assert_int_equal(staging_open(&s, d, v, N, PIECES, false), 0);
    assert_ptr_equal(staging_host(s), v);
    staging_down(s, 0, 0, N);
    staging_await(s, 0);
    staging_up(s, 0, N);
    staging_settle(s);
    staging_close(&s);
    assert_null(s);
    device_close(&d);
}

static void pieces_come_down_and_go_up(struct device *d)
{
    float v[N];
    struct staging *s = NULL;
    for (int i = 0; i < N; i++)
        v[i] = (float)i;
    assert_int_equal(staging_open(&s, d, v, N, PIECES, true), 0);
    float *host = staging_host(s);
    assert_ptr_not_equal(host, v);
    for (int p = 0; p < PIECES; p++) // from the end, like backward
        staging_down(s, p, (size_t)(N - (p + 1) * PIECE), PIECE);
    for (int p = 0; p < PIECES; p++) {
        staging_await(s, p);
        size_t off = (size_t)(N - (p + 1) * PIECE);
        for (size_t i = off; i < off + PIECE; i++) {
            assert_true(host[i] == (float)i);
            host[i] += 0.5f;
        }
        staging_up(s, off, PIECE);
    }
    staging_settle(s);
    device_finish(d);
    for (int i = 0; i < N; i++)
        assert_true(v[i] == (float)i + 0.5f);
    staging_close(&s);
}

static void forced_copies_on_the_cpu(void **state)
{
    (void)state;
    struct device *d = NULL;
    assert_int_equal(device_open(&d, "cpu"), 0);
    pieces_come_down_and_go_up(d);
    device_close(&d);
}

static void copies_on_a_late_device(void **state)
{
    (void)state;
    struct device_ops ops;
    struct late late;
    struct device d = late_device(&ops, &late);
    pieces_come_down_and_go_up(&d);
}

static void a_piece_has_not_arrived_before_its_copy(void **state)
{
    (void)state;
    struct device_ops ops;
    struct late late;
    struct device d = late_device(&ops, &late);
    float v[N] = {1, 2};
    struct staging *s = NULL;
    assert_int_equal(staging_open(&s, &d, v, N, 2, false), 0);
    staging_down(s, 0, 0, 1);
    staging_down(s, 1, 1, 1);
    assert_false(late.copies[0].done);
    staging_await(s, 0);
    assert_true(staging_host(s)[0] == 1 && staging_host(s)[1] == 0);
    staging_close(&s); // waits for the copy that is not done
    assert_true(late.copies[1].done);
}

static void *no_memory(struct device *d, size_t n, size_t size)
{
    (void)d;
    fail("memory: %zu bytes", n * size);
    return NULL;
}

static void without_pinned_memory_it_fails(void **state)
{
    (void)state;
    struct device_ops ops;
    struct late late;
    struct device d = late_device(&ops, &late);
    struct staging *s = NULL;
    float v[N];
    ops.host_alloc = no_memory;
    assert_int_equal(staging_open(&s, &d, v, N, 2, false), -1);
    assert_null(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_the_cpu_it_is_the_vector_itself),
        cmocka_unit_test(forced_copies_on_the_cpu),
        cmocka_unit_test(copies_on_a_late_device),
        cmocka_unit_test(a_piece_has_not_arrived_before_its_copy),
        cmocka_unit_test(without_pinned_memory_it_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
