// gelu.c - GELU in its tanh form: x/2 (1 + tanh u), u = sqrt(2/pi) (x + a x^3).
//
// Since 1 + tanh u = 2 / (1 + e^-2u), GELU is x s(2u) with the logistic
// function s. So it needs one exponential and one reciprocal. dW's product
// needs the output again. Backward computes it a second time, which is cheaper
// than storing it.
//
// A thread goes from the end of its rows to the start, in forward and backward.
// The product before this pass wrote from the start to the end, so its last
// rows are still in the cache. The product after this pass begins with the rows
// that this pass writes last. The input is in + bias if the product has not
// added the bias. Part of kernels.c.

#define GELU_2ROOT 1.59576912f // 2 sqrt(2/pi)
#define GELU_CUBE  0.044715f

// s(2u). The exponent is limited to 80: there s is below 2e-35, and is still a
// normal number of fp32.
static inline lanes gelu_logistic(lanes x, lanes x2)
{
    lanes minus2u = x * (-GELU_2ROOT - GELU_2ROOT * GELU_CUBE * x2);
    return lanes_reciprocal(1.0f +
                            lanes_exp(lanes_at_most(minus2u, 80.0f), -87.0f));
}

// Where the rows of thread t of the team begin.
static size_t rows_start(size_t rows, int t)
{
    return rows * (size_t)t / (size_t)omp_get_num_threads();
}

static void gelu(void *out_, const void *in_, const void *bias, size_t rows,
                 int C)
{
    real *out = out_;
    const real *in = in_;
#pragma omp parallel
    {
        int t = omp_get_thread_num();
        size_t from = rows_start(rows, t);
        for (size_t r = rows_start(rows, t + 1); r-- > from;)
            for (int c = (C - 1) / LANES * LANES; c >= 0; c -= LANES) {
                lanes x = lanes_biased(in + r * C, bias, c, C);
                lanes_put(out + r * C, c, C, x * gelu_logistic(x, x * x));
            }
    }
}

// With s = s(2u): d gelu / dx = s + x s (1 - s) d(2u)/dx.
static inline lanes gelu_both(lanes *out, lanes d, lanes x)
{
    lanes x2 = x * x, s = gelu_logistic(x, x2), xs = x * s;
    lanes slope = GELU_2ROOT + 3 * GELU_CUBE * GELU_2ROOT * x2;
    *out = xs;
    return d * (s + (xs - xs * s) * slope);
}

static void gelu_backward(void *d_, void *out_, const void *in_,
                          const void *bias, size_t rows, int C)
{
    real *d = d_, *out = out_;
    const real *in = in_;
#pragma omp parallel
    {
        int t = omp_get_thread_num();
        size_t from = rows_start(rows, t);
        for (size_t r = rows_start(rows, t + 1); r-- > from;)
            for (int c = (C - 1) / LANES * LANES; c >= 0; c -= LANES) {
                lanes y, x = lanes_biased(in + r * C, bias, c, C);
                lanes dx = gelu_both(&y, lanes_get(d + r * C, c, C), x);
                lanes_put(out + r * C, c, C, y);
                lanes_put(d + r * C, c, C, dx);
            }
    }
}
