// test_nvml.c - the functions that read NVML for the sampler. CTest puts our
// own library of NVML's name (fake_nvml.c) first in the library path.

#include "telemetry/nvml.h"

#include "base/base.h"
#include "telemetry/sampler.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tests/test.h"

static const unsigned char uuid[NVML_UUID] = {0x00, 0x11, 0x22, 0x33,
                                              0x44, 0x55, 0x66, 0x77,
                                              0x88, 0x99, 0xaa, 0xbb,
                                              0xcc, 0xdd, 0xee, 0xff};
static int (*users)(void), (*samples)(void);

static void the_gpu_of_the_uuid_is_read(void **state)
{
    (void)state;
    double v[NVML_METRICS];
    struct nvml *n = nvml_open(uuid);
    assert_non_null(n);
    assert_int_equal(users(), 1);
    nvml_read(n, v);
    assert_true(v[NVML_UTIL] == 0.37 && v[NVML_MEMORY] == 3000000);
    assert_true(v[NVML_POWER] == 250.5 && v[NVML_CLOCK] == 1380);
    nvml_close(&n);
    assert_null(n);
    assert_int_equal(users(), 0);
}

static void another_gpu_is_not_found(void **state)
{
    (void)state;
    unsigned char other[NVML_UUID];
    memcpy(other, uuid, sizeof other);
    other[NVML_UUID - 1] = 0;
    assert_null(nvml_open(other));
    assert_int_equal(users(), 0);
}

static void without_a_driver_no_gpu_is_found(void **state)
{
    (void)state;
    setenv("FAKE_NVML", "init", 1);
    assert_null(nvml_open(uuid));
    assert_int_equal(users(), 0);
    unsetenv("FAKE_NVML");
}

static void unknown_values_are_nan(void **state)
{
    (void)state;
    double v[NVML_METRICS];
    setenv("FAKE_NVML", "power", 1);
    struct nvml *n = nvml_open(uuid);
    assert_non_null(n);
    nvml_read(n, v);
    assert_true(v[NVML_UTIL] == 0.37 && isnan(v[NVML_POWER]));
    nvml_close(&n);
    unsetenv("FAKE_NVML");
}

static void energy_counts_from_the_open(void **state)
{
    (void)state;
    double v[NVML_METRICS];
    struct nvml *n = nvml_open(uuid);
    assert_non_null(n);
    for (int i = 1; i <= 2; i++) {
        nvml_read(n, v);
        assert_true(v[NVML_ENERGY] == i);
    }
    nvml_close(&n);
}

static void power_and_heat_limits_are_told_apart(void **state)
{
    (void)state;
    // NVML's bits, in hex. 1: idle; 2: clocks of applications; 8: slowed by
    // hardware for any cause. Power: 4 by software, 80 by the brake. Heat: 20
    // by software, 40 by hardware.
    static const struct {
        const char *bits;
        double power, heat;
    } cases[] = {{"0x3", 0, 0},  {"0x4", 1, 0},  {"0x88", 1, 0},
                 {"0x20", 0, 1}, {"0x48", 0, 1}, {"0x64", 1, 1}};
    double v[NVML_METRICS];
    struct nvml *n = nvml_open(uuid);
    assert_non_null(n);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setenv("FAKE_REASONS", cases[i].bits, 1);
        nvml_read(n, v);
        assert_true(v[NVML_POWER_LIMITED] == cases[i].power);
        assert_true(v[NVML_HEAT_LIMITED] == cases[i].heat);
    }
    unsetenv("FAKE_REASONS");
    nvml_close(&n);
}

// A value is the difference between two successive samples. Each counter of the
// fake grows by its own number with each sample, so the difference shows which
// counter was read, and that no sample lies between the two.
static void counters_compare_successive_samples(void **state)
{
    (void)state;
    double v[NVML_METRICS];
    struct nvml *n = nvml_open(uuid);
    assert_non_null(n);
    assert_int_equal(samples(), 2);
    nvml_read(n, v);
    assert_true(isnan(v[NVML_SM]) && isnan(v[NVML_NVLINK_IN]));
    for (int i = 0; i < 3; i++) {
        nvml_read(n, v);
        assert_true(v[NVML_SM] == 0.02 && v[NVML_OCCUPANCY] == 0.03);
        assert_true(v[NVML_TENSOR] == 0.05 && v[NVML_DRAM] == 0.1);
        assert_true(v[NVML_NVLINK_IN] == 60.0 * 1048576);
        assert_true(v[NVML_NVLINK_OUT] == 61.0 * 1048576);
    }
    nvml_close(&n);
    assert_int_equal(samples(), 0);
}

static void missing_counters_are_nan(void **state)
{
    (void)state;
    static const char *const missing[] = {"gpm", "nvlink"};
    for (int i = 0; i < 2; i++) {
        double v[NVML_METRICS];
        setenv("FAKE_NVML", missing[i], 1);
        struct nvml *n = nvml_open(uuid);
        assert_non_null(n);
        nvml_read(n, v);
        nvml_read(n, v);
        assert_true(v[NVML_UTIL] == 0.37 && isnan(v[NVML_NVLINK_OUT]));
        assert_int_equal(isnan(v[NVML_SM]), i == 0);
        nvml_close(&n);
        unsetenv("FAKE_NVML");
    }
}

// Counts the rows of a metric in util.csv. Stores time and value of the last
// one.
static int rows_of(const char *path, const char *metric, double *t,
                   double *value)
{
    char line[128], name[64];
    double at, v;
    int n = 0;
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "%lf,0,%63[^,],%lf", &at, name, &v) == 3 &&
            !strcmp(name, metric)) {
            *t = at;
            *value = v;
            n++;
        }
    fclose(f);
    return n;
}

static void the_sampler_writes_values_of_the_gpu(void **state)
{
    (void)state;
    char path[] = "/tmp/lockstep-nvml-XXXXXX";
    struct sampler *s = NULL;
    struct timespec nap = {.tv_nsec = 100000000};
    double t, v;
    uint64_t zero = now_ns();
    close(mkstemp(path));
    setenv("FAKE_NVML", "power", 1);
    struct sampler_config config = {.path = path,
                                    .who = "0",
                                    .cores = 1,
                                    .per_s = 50,
                                    .zero_ns = zero,
                                    .gpu = uuid};
    assert_int_equal(sampler_open(&s, &config), 0);
    sampler_put(s, zero + 250000000, "gpu_compute_share", 0.75);
    sampler_put(NULL, zero, "nothing", 1);
    nanosleep(&nap, NULL);
    assert_int_equal(sampler_close(&s), 0);
    unsetenv("FAKE_NVML");
    assert_true(rows_of(path, "gpu_util_share", &t, &v) > 0 && v == 0.37);
    assert_true(rows_of(path, "gpu_memory_bytes", &t, &v) > 0);
    assert_true(v == 3000000);
    assert_true(rows_of(path, "gpu_clock_mhz", &t, &v) > 0 && v == 1380);
    assert_int_equal(rows_of(path, "gpu_power_w", &t, &v), 0);
    assert_true(rows_of(path, "gpu_energy_j", &t, &v) > 0 && v > 0);
    assert_true(rows_of(path, "gpu_heat_limited", &t, &v) > 0 && v == 0);
    assert_true(rows_of(path, "gpu_sm_share", &t, &v) > 0 && v == 0.02);
    assert_true(rows_of(path, "gpu_tensor_share", &t, &v) > 0 && v == 0.05);
    assert_true(rows_of(path, "gpu_dram_share", &t, &v) > 0 && v == 0.1);
    assert_true(rows_of(path, "gpu_nvlink_out_bytes_per_s", &t, &v) > 0);
    assert_int_equal(rows_of(path, "gpu_compute_share", &t, &v), 1);
    assert_true(t == 0.25 && v == 0.75);
    unlink(path);
}

int main(void)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    *(void **)&users = library ? dlsym(library, "fake_nvml_users") : NULL;
    *(void **)&samples = library ? dlsym(library, "fake_nvml_samples") : NULL;
    if (!users || !samples) {
        print_message("skipped: the fake libnvidia-ml.so.1 is not first in "
                      "LD_LIBRARY_PATH; try: ctest -R nvml\n");
        return TEST_SKIPPED;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_gpu_of_the_uuid_is_read),
        cmocka_unit_test(another_gpu_is_not_found),
        cmocka_unit_test(without_a_driver_no_gpu_is_found),
        cmocka_unit_test(unknown_values_are_nan),
        cmocka_unit_test(energy_counts_from_the_open),
        cmocka_unit_test(power_and_heat_limits_are_told_apart),
        cmocka_unit_test(counters_compare_successive_samples),
        cmocka_unit_test(missing_counters_are_nan),
        cmocka_unit_test(the_sampler_writes_values_of_the_gpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
