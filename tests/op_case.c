// op_case.c - tensors, random numbers and tolerances of the kernels' tests.

#include "tests/op_case.h"

#include "base/rng.h"
#include "tests/test.h"

#include <math.h>

const struct kernels *k;
double tolerance;
struct tensor3 in, in2, weight, bias, out, dout, extra;

const struct mask no_mask = {.keep = 1};
const struct mask some_mask = {.key = 77,
                               .threshold = 0x60000000,
                               .keep = 1.6f};

static double moved[MAX];

void for_all_tables(void (*test)(void))
{
    static const double tolerances[] = {2e-6, 6e-4, 5e-3}; // as enum dtype
    for (int i = 0; kernels_isa(i); i++)
        for (int format = 0; format < 3; format++) {
            k = kernels_named(format, kernels_isa(i));
            if (!k) {
                print_message("no %s on this processor\n", kernels_isa(i));
                continue;
            }
            assert_string_equal(k->isa, kernels_isa(i));
            assert_int_equal(k->format, format);
            tolerance = tolerances[format];
            test();
        }
}

void draw(struct tensor3 *t, int n, uint64_t key, double size)
{
    assert_true(n <= MAX);
    for (int i = 0; i < n; i++)
        t->f[i] = (float)(size * (2 * rng_uniform(key, i) - 1));
    k->cast_down(t->raw, t->f, n);
    k->cast_up(t->f, t->raw, n);
    for (int i = 0; i < n; i++)
        t->d[i] = t->f[i];
}

static double scale_of(const double *x, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sqrt(sum / n);
}

void near(const char *what, const float *got, const double *want, int n)
{
    double scale = scale_of(want, n), sum = 0, worst = 0;
    for (int i = 0; i < n; i++) {
        double e = fabs(got[i] - want[i]);
        if (!(e >= 0))
            e = INFINITY; // NaN
        sum += e * e;
        worst = fmax(worst, e);
    }
    double rms = sqrt(sum / n) / scale;
    bool right = rms <= tolerance && worst <= 30 * tolerance * scale;
    if (!right)
        print_error("%s (%s %s): off by %.3g rms, %.3g at worst, of %.3g\n",
                    what, k->isa, dtype_name(k->format), rms, worst / scale,
                    scale);
    assert_true(right);
}

void near_raw(const char *what, const void *got, const double *want, int n)
{
    static float wide[MAX];
    k->cast_up(wide, got, n);
    near(what, wide, want, n);
}

static double objective(void (*op)(void), int n_out)
{
    op();
    double sum = 0;
    for (int i = 0; i < n_out; i++)
        sum += out.d[i] * dout.d[i];
    return sum;
}

const double *differences(void (*op)(void), double *x, int n, int n_out)
{
    for (int i = 0; i < n; i++) {
        double at = x[i], h = 1e-5;
        x[i] = at + h;
        double up = objective(op, n_out);
        x[i] = at - h;
        moved[i] = (up - objective(op, n_out)) / (2 * h);
        x[i] = at;
    }
    return moved;
}
