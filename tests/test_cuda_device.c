// test_cuda_device.c - tests the memory and the events of the CUDA device, and
// that its conversions and sums equal the CPU's to the bit. Skipped on a
// machine without a GPU.

#include "device/device.h"
#include "device/staging.h"

#include "base/base.h"
#include "base/rng.h"

#include <cuda_runtime_api.h>

#include "tests/test.h"

enum { N = 70001 };

static struct device *gpu, *cpu;

static float any_float(uint64_t key, uint64_t i)
{
    uint64_t r = rng_u64(key, i);
    switch (r >> 61) {
    case 0: // too large for fp16: infinite there, but no sum is inf - inf
        return 1e6f * (float)rng_normal(key, i);
    case 1:
        return (float)((int)(r & 0x1fff) - 4096) * 0x1p-25f; // fp16's ties
    case 2:
        return 65504.0f + (float)((int)(r & 63) - 16);
    default:
        return (float)rng_normal(key, i);
    }
}

struct pair {
    void *cpu, *gpu;
};

static struct pair pair_open(uint64_t key)
{
    struct pair p = {device_alloc(cpu, N, 4), device_alloc(gpu, N, 4)};
    assert_true(p.cpu && p.gpu);
    for (size_t i = 0; i < N; i++)
        ((float *)p.cpu)[i] = any_float(key, i);
    device_copy(gpu, p.gpu, p.cpu, N * sizeof(float));
    return p;
}

static void pair_close(struct pair *p)
{
    device_free(cpu, p->cpu);
    device_free(gpu, p->gpu);
}

static void assert_same(const struct pair *p, size_t bytes)
{
    static char back[N * sizeof(float)];
    device_copy(gpu, back, p->gpu, bytes);
    assert_memory_equal(back, p->cpu, bytes);
}

static void memory_is_zeroed_and_copied(void **state)
{
    (void)state;
    static float back[N];
    float *x = device_alloc(gpu, N, sizeof *x);
    assert_non_null(x);
    device_copy(gpu, back, x, sizeof back);
    for (int i = 0; i < N; i++)
        assert_true(back[i] == 0);
    device_free(gpu, x);
    assert_null(device_alloc(gpu, (size_t)1 << 60, 1));
    assert_non_null(strstr(fail_message(), "memory of GPU"));
}

static void cast_and_add_to_the_bit(void **state)
{
    (void)state;
    for (enum dtype t = DTYPE_F32; t <= DTYPE_BF16; t++) {
        struct pair a = pair_open(1), b = pair_open(2), w = pair_open(3);
        struct device *devices[] = {cpu, gpu};
        for (int i = 0; i < 2; i++) {
            struct device *d = devices[i];
            float *av = i ? a.gpu : a.cpu, *bv = i ? b.gpu : b.cpu;
            void *wv = i ? w.gpu : w.cpu;
            device_cast_on(d, DEVICE_COMM, wv, t, av, DTYPE_F32, 0.25f, N);
            device_add_into_wire(d, DEVICE_COMM, wv, t, bv, N);
            device_add_on(d, DEVICE_COMM, bv, wv, t, N);
            device_cast_on(d, DEVICE_COMM, av, DTYPE_F32, wv, t, 1, N);
            device_finish(d);
        }
        assert_same(&w, N * dtype_bytes(t));
        assert_same(&a, N * sizeof(float));
        assert_same(&b, N * sizeof(float));
        pair_close(&a);
        pair_close(&b);
        pair_close(&w);
    }
}

static void adds_doubles(void **state)
{
    (void)state;
    static double x[N], y[N], sum[N];
    double *dx = device_alloc(gpu, N, sizeof *dx);
    double *dy = device_alloc(gpu, N, sizeof *dy);
    assert_true(dx && dy);
    for (int i = 0; i < N; i++) {
        x[i] = 1.0 / (i + 1);
        y[i] = i;
    }
    device_copy(gpu, dx, x, sizeof x);
    device_copy(gpu, dy, y, sizeof y);
    device_add_on(gpu, DEVICE_COMPUTE, dy, dx, DTYPE_F64, N);
    device_copy(gpu, sum, dy, sizeof sum);
    for (int i = 0; i < N; i++)
        assert_true(sum[i] == y[i] + x[i]);
    device_free(gpu, dx);
    device_free(gpu, dy);
}

static void events_order_queues(void **state)
{
    (void)state;
    struct device_event from = {0}, to = {0};
    struct pair p = pair_open(4);
    float *pinned = device_host_alloc(gpu, N, sizeof *pinned);
    assert_non_null(pinned);
    assert_int_equal(device_event_open_timed(gpu, &from), 0);
    assert_int_equal(device_event_open_timed(gpu, &to), 0);
    device_record(gpu, &from, DEVICE_COMPUTE);
    for (int i = 0; i < 100; i++) // an even number of changes of sign
        device_cast_on(gpu, DEVICE_COMPUTE, p.gpu, DTYPE_F32, p.gpu, DTYPE_F32,
                       -1, N);
    device_record(gpu, &to, DEVICE_COMPUTE);
    device_follow(gpu, DEVICE_DOWN, &to);
    device_copy_on(gpu, DEVICE_DOWN, pinned, p.gpu, N * sizeof(float));
    device_finish(gpu);
    assert_true(device_reached(gpu, &to));
    assert_true(device_between(gpu, &from, &to) > 0);
    assert_memory_equal(pinned, p.cpu, N * sizeof(float));
    device_event_close(gpu, &from);
    device_event_close(gpu, &to);
    device_host_free(gpu, pinned);
    pair_close(&p);
}

static void only_timed_events_have_a_time(void **state)
{
    (void)state;
    struct device_event e = {0}, timed = {0};
    float ms;
    assert_int_equal(device_event_open(gpu, &e), 0);
    assert_int_equal(device_event_open_timed(gpu, &timed), 0);
    device_record(gpu, &e, DEVICE_COMPUTE);
    device_record(gpu, &timed, DEVICE_COMPUTE);
    device_finish(gpu);
    assert_true(device_between(gpu, &timed, &timed) == 0);
    assert_int_equal(cudaEventElapsedTime(&ms, e.handle, timed.handle),
                     cudaErrorInvalidResourceHandle);
    cudaGetLastError();
    device_event_close(gpu, &e);
    device_event_close(gpu, &timed);
}

// Asking whether an event has happened must leave no error behind, also if it
// has not. Otherwise the launch of the next kernel would report that error as
// its own.
static void asking_for_an_event_leaves_no_error(void **state)
{
    (void)state;
    struct device_event e = {0};
    struct pair p = pair_open(6);
    assert_int_equal(device_event_open(gpu, &e), 0);
    for (int looks = 0; looks < 100; looks++) {
        device_cast_on(gpu, DEVICE_COMPUTE, p.gpu, DTYPE_F32, p.gpu, DTYPE_F32,
                       -1, N);
        device_record(gpu, &e, DEVICE_COMPUTE);
        device_reached(gpu, &e);
        assert_int_equal(cudaGetLastError(), cudaSuccess);
    }
    device_finish(gpu);
    assert_same(&p, N * sizeof(float));
    device_event_close(gpu, &e);
    pair_close(&p);
}

static void staging_brings_down_and_up(void **state)
{
    (void)state;
    struct pair p = pair_open(5);
    struct staging *s = NULL;
    assert_int_equal(staging_open(&s, gpu, p.gpu, N, 2, false), 0);
    staging_down(s, 0, N / 2, N - N / 2);
    staging_down(s, 1, 0, N / 2);
    staging_await(s, 0);
    staging_await(s, 1);
    float *host = staging_host(s), *want = p.cpu;
    assert_memory_equal(host, want, N * sizeof(float));
    for (int i = 0; i < N; i++)
        host[i] = want[i] = (float)i;
    staging_up(s, 0, N);
    staging_settle(s);
    device_finish(gpu);
    assert_same(&p, N * sizeof(float));
    staging_close(&s);
    pair_close(&p);
}

int main(void)
{
    if (device_open(&gpu, "cuda") || device_open(&cpu, "cpu")) {
        print_message("skipped: %s\n", fail_message());
        return TEST_SKIPPED;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_and_copied),
        cmocka_unit_test(cast_and_add_to_the_bit),
        cmocka_unit_test(adds_doubles),
        cmocka_unit_test(events_order_queues),
        cmocka_unit_test(only_timed_events_have_a_time),
        cmocka_unit_test(asking_for_an_event_leaves_no_error),
        cmocka_unit_test(staging_brings_down_and_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
