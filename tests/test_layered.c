// test_layered.c - LARS and LAMB equal the numbers of tests/oracle/layered.py,
// with any number of threads, and a 16-bit copy follows.

#include "optim/rule.h"

#include "base/base.h"
#include "device/device.h"
#include "device/vector.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>

#include "tests/test.h"

#define GOLDEN "tests/golden/layered.txt"

enum { N = 9000, STEPS = 6, EVERY = 450, KEPT = N / EVERY };

static const struct {
    const char *name;
    enum optim_kind kind;
    float momentum;
} rules[] = {{"lars", OPTIM_LARS, 0.9f},
             {"lars_plain", OPTIM_LARS, 0},
             {"lamb", OPTIM_LAMB, 0}};

// The constants of the script.
static struct optim_config config_of(int i)
{
    return (struct optim_config){
        .kind = (uint32_t)rules[i].kind,
        .momentum = rules[i].momentum,
        .beta1 = 0.9f,
        .beta2 = 0.95f,
        .eps = 1e-6f,
        .weight_decay = 0.1f,
        .ndecay = 2,
        .decay = {{.off = 0, .n = 5000}, {.off = 5100, .n = 2900}},
    };
}

static void gradient(int step, float *g)
{
    for (int i = 0; i < N; i++)
        g[i] = (float)(cos(0.11 * i + 1.7 * step) * (1 + i % 3));
}

// Updates p STEPS times, and the copy in bf16.
static void run(const struct optim_config *c, float *p, void *copy)
{
    static float g[N];
    struct half_copy half = {.at = copy, .format = DTYPE_BF16};
    struct device *d = NULL;
    struct rule r;
    float norm;
    assert_int_equal(device_open(&d, "cpu"), 0);
    assert_int_equal(rule_open(&r, d, c, N, NULL), 0);
    for (int i = 0; i < N; i++)
        p[i] = i >= 5100 && i < 8000 ? 0 : (float)sin(0.37 * i);
    for (int step = 1; step <= STEPS; step++) {
        const struct rule_in in = {.step = step,
                                   .lr = 0.02f,
                                   .scale = 0.5f,
                                   .copy = &half};
        gradient(step, g);
        assert_int_equal(rule_step(&r, p, g, &in, &norm), 0);
    }
    assert_true(half.fresh);
    rule_close(&r);
    device_close(&d);
}

// The numbers of the rule's line, elements 0, EVERY, 2 EVERY, .. .
static void read_golden(const char *name, double out[KEPT])
{
    char line[1024], *rest;
    bool found = false;
    FILE *f = fopen(GOLDEN, "r");
    assert_non_null(f);
    while (!found && fgets(line, sizeof line, f)) {
        found = strcmp(strtok_r(line, " ", &rest), name) == 0;
        for (int k = 0; found && k < KEPT; k++)
            out[k] = strtod(strtok_r(NULL, " \n", &rest), NULL);
    }
    fclose(f);
    assert_true(found);
}

static void rules_equal_the_formulas(void **state)
{
    (void)state;
    static float p[N], alone[N];
    static uint16_t copy[N], want[N];
    double golden[KEPT];
    for (int i = 0; i < 3; i++) {
        struct optim_config c = config_of(i);
        assert_int_equal(optim_slots(&c), i == 0 ? 1 : i == 1 ? 0 : 2);
        run(&c, p, copy);
        read_golden(rules[i].name, golden);
        for (int k = 0; k < KEPT; k++)
            if (fabs(p[(size_t)k * EVERY] - golden[k]) > 2e-5)
                die("%s: element %d is %.8g, not %.8g", rules[i].name,
                    k * EVERY, (double)p[(size_t)k * EVERY], golden[k]);
        vector_cast(want, DTYPE_BF16, p, DTYPE_F32, N);
        assert_memory_equal(copy, want, sizeof want);
        omp_set_num_threads(1);
        run(&c, alone, copy);
        omp_set_num_threads(3);
        run(&c, p, copy);
        assert_memory_equal(p, alone, sizeof p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_equal_the_formulas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
