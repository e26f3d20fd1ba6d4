// test_law.c - the law's times, and the link that is fitted to measured ones.

#include "sync/law.h"

#include <math.h>

#include "tests/test.h"

static void times(void **state)
{
    (void)state;
    const struct link gigabit = {.alpha_s = 50e-6, .bytes_per_s = 125e6};
    struct law ring = law_ring(4), server = law_servers(4, 1);
    // 6 messages; 1.5 times the bytes, against 4 times
    double t = law_seconds(&ring, &gigabit, 1e6);
    assert_true(fabs(t - (6 * 50e-6 + 1.5e6 / 125e6)) < 1e-12);
    t = law_seconds(&server, &gigabit, 1e6);
    assert_true(fabs(t - (2 * 50e-6 + 4e6 / 125e6)) < 1e-12);
    // the ring's bytes in two messages
    struct law shards = law_shards(4);
    t = law_seconds(&shards, &gigabit, 1e6);
    assert_true(fabs(t - (2 * 50e-6 + 1.5e6 / 125e6)) < 1e-12);
}

static void fit(void **state)
{
    (void)state;
    enum { N = 6 };
    const struct link want = {.alpha_s = 12e-6, .bytes_per_s = 4.7e9};
    const double bytes[N] = {4, 1e3, 1e5, 1e6, 1e7, 1e9};
    double seconds[N];
    struct law law = law_ring(3);
    struct link got = {0};
    for (int i = 0; i < N; i++)
        seconds[i] = law_seconds(&law, &want, bytes[i]);
    law_fit(&law, bytes, seconds, N, &got);
    assert_true(fabs(got.alpha_s / want.alpha_s - 1) < 1e-6);
    assert_true(fabs(got.bytes_per_s / want.bytes_per_s - 1) < 1e-6);
    // 5% of noise moves neither by much more
    for (int i = 0; i < N; i++)
        seconds[i] *= i % 2 ? 1.05 : 0.95;
    law_fit(&law, bytes, seconds, N, &got);
    assert_true(fabs(got.alpha_s / want.alpha_s - 1) < 0.1);
    assert_true(fabs(got.bytes_per_s / want.bytes_per_s - 1) < 0.1);
    // one size does not tell latency from bandwidth
    got = want;
    law_fit(&law, bytes + 2, seconds + 2, 1, &got);
    assert_memory_equal(&got, &want, sizeof got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times),
        cmocka_unit_test(fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
