// gelu.c - GELU in its tanh form: x/2 (1 + tanh u), u = sqrt(2/pi) (x + a x^3).
//
// Since 1 + tanh u = 2 / (1 + e^-2u), it is x s(2u) with the logistic function
// s, and needs one exponential and one reciprocal. Backward computes the output
// again, which dW's product needs: cheaper than storing it. In both a thread
// walks from the end of its share to the start: the product before wrote upwards,
// so its last rows are still in the cache, and the product behind begins with
// the rows done last. Part of kernels.c.

#define GELU_2ROOT 1.59576912f // 2 sqrt(2/pi)
#define GELU_CUBE  0.044715f

// s(2u); e^80 is far beyond where s is 0 in fp32, and its reciprocal is normal.
static inline lanes gelu_logistic(lanes x, lanes x2)
{
    lanes minus2u = x * (-GELU_2ROOT - GELU_2ROOT * GELU_CUBE * x2);
    return lanes_reciprocal(1.0f +
                            lanes_exp(lanes_at_most(minus2u, 80.0f), -87.0f));
}

static void gelu(void *out_, const void *in_, size_t n)
{
    real *out = out_;
    const real *in = in_;
    size_t whole = n / LANES * LANES;
#pragma omp parallel
    {
        int t = omp_get_thread_num();
        size_t from = share_start(whole, t);
        for (size_t i = share_start(whole, t + 1); i > from;) {
            i -= LANES;
            lanes x = lanes_load(in + i);
            lanes_store(out + i, x * gelu_logistic(x, x * x));
        }
    }
    int rest = (int)(n - whole);
    lanes x = lanes_load_part(in + whole, rest);
    lanes_store_part(out + whole, x * gelu_logistic(x, x * x), rest);
}

// With s = s(2u): d gelu / dx = s + x s (1 - s) d(2u)/dx.
static inline lanes gelu_both(lanes *out, lanes d, lanes x)
{
    lanes x2 = x * x, s = gelu_logistic(x, x2), xs = x * s;
    lanes slope = GELU_2ROOT + 3 * GELU_CUBE * GELU_2ROOT * x2;
    *out = xs;
    return d * (s + (xs - xs * s) * slope);
}

static void gelu_backward(void *d_, void *out_, const void *in_, size_t n)
{
    real *d = d_, *out = out_;
    const real *in = in_;
    size_t whole = n / LANES * LANES;
    lanes y;
#pragma omp parallel private(y)
    {
        int t = omp_get_thread_num();
        size_t from = share_start(whole, t);
        for (size_t i = share_start(whole, t + 1); i > from;) {
            i -= LANES;
            lanes dx = gelu_both(&y, lanes_load(d + i), lanes_load(in + i));
            lanes_store(out + i, y);
            lanes_store(d + i, dx);
        }
    }
    int rest = (int)(n - whole);
    lanes dx = gelu_both(&y, lanes_load_part(d + whole, rest),
                         lanes_load_part(in + whole, rest));
    lanes_store_part(out + whole, y, rest);
    lanes_store_part(d + whole, dx, rest);
}
