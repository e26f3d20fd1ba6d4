// attention_rows.c - the parts of attention that are not products: the softmax
// of a row of scores, its gradient, loading and storing heads, and prefetching
// rows.
//
// A head's rows are further apart than the processor's own prefetcher reaches,
// so the code prefetches them: before its products the rows that a strip will
// write, during its softmax the rows that the next strip will read. Part of
// kernels.c.

enum { STEP = ATTENTION_STEP };

// The number, in the whole model, of the first row of probabilities of a
// sequence's head. Dropout's masks are numbered by it.
static uint64_t first_row(const struct attention *a, int bh)
{
    int heads = a->heads ? a->heads : a->NH;
    return ((uint64_t)(bh / a->NH) * heads + a->head + bh % a->NH) * a->T;
}

// Prefetches the D numbers at p. It is always inlined, because the compiler
// drops a call that only prefetches.
static inline __attribute__((always_inline)) void prefetch(const real *p, int D)
{
    for (int d = 0; d < D; d += 64 / (int)sizeof *p)
        __builtin_prefetch(p + d);
}

static void set_zero(float *s, int from, int to)
{
    for (int j = from; j < to; j += LANES)
        *(lanes *)(s + j) = (lanes){0};
}

// out (padded, Dp) = scale * in, rows of D numbers `stride` apart.
static void load_head(float *out, const real *in, size_t stride, int rows,
                      int padded, int D, int Dp, float scale)
{
    for (int r = 0; r < rows; r++) {
        float *o = out + (size_t)r * Dp;
        int d = 0;
        for (; d < D; d += LANES)
            *(lanes *)(o + d) = lanes_get(in + r * stride, d, D) * scale;
        set_zero(o, d, Dp);
    }
    memset(out + (size_t)rows * Dp, 0,
           (size_t)(padded - rows) * Dp * sizeof *out);
}

// out (columns, rows) = in (rows, columns) transposed, by squares that fit the
// registers.
static void transpose_head(float *out, const float *in, int rows, int columns)
{
    for (int r = 0; r < rows; r += LANES)
        for (int c = 0; c < columns; c += LANES)
            lanes_transpose(out + (size_t)c * rows + r, rows,
                            in + (size_t)r * columns + c, columns);
}

static void store_head(real *out, size_t stride, const float *in, int rows,
                       int D, int Dp, const float *scale, float factor)
{
    for (int r = 0; r < rows; r++) {
        float f = scale ? scale[r] : factor;
        for (int d = 0; d < D; d += LANES)
            lanes_put(out + r * stride, d, D,
                      *(const lanes *)(in + (size_t)r * Dp + d) * f);
    }
}

// Replaces the n scores of a row by e^(scale * s - max), times dropout's mask,
// and fills up with zeros to `keys`. The probabilities are these numbers times
// *inv. `first` is the position of the first key. Returns lse.
static float softmax_row(float *s, int n, int keys, float scale,
                         const struct mask *mask, uint64_t row, int first,
                         float *inv)
{
    lanes top = lanes_all(-1e30f), none = top, total = {0};
    for (int j = 0; j < n; j += LANES)
        top = lanes_max(top, lanes_choose(n - j, *(lanes *)(s + j), none));
    float max = lanes_largest(top) * scale;
    uint32_t key = mask_row(mask, row);
    int j = 0;
    for (; j < n; j += LANES) {
        lanes e = lanes_exp(*(lanes *)(s + j) * scale - max, -87.0f);
        e = lanes_choose(n - j, e, (lanes){0});
        total += e;
        if (mask->threshold > 0)
            e *= mask_lanes(mask, key, (uint32_t)(first + j));
        *(lanes *)(s + j) = e;
    }
    set_zero(s, j, keys);
    float sum = lanes_sum(total);
    *inv = 1 / sum;
    return max + logf(sum);
}

// One row. Before: unscaled scores in s, and dO V' in ds. After: masked
// probabilities P in s, and dS in ds.
static void softmax_row_backward(float *s, float *ds, int n, int keys,
                                 float scale, float lse, float row_sum,
                                 const struct mask *mask, uint64_t row,
                                 int first)
{
    uint32_t key = mask_row(mask, row);
    int j = 0;
    for (; j < n; j += LANES) {
        lanes p = lanes_exp(*(lanes *)(s + j) * scale - lse, -87.0f);
        lanes d = *(lanes *)(ds + j), keep = lanes_all(1);
        if (mask->threshold > 0)
            keep = mask_lanes(mask, key, (uint32_t)(first + j));
        *(lanes *)(s + j) = lanes_choose(n - j, p * keep, (lanes){0});
        *(lanes *)(ds + j) =
            lanes_choose(n - j, p * (d * keep - row_sum), (lanes){0});
    }
    set_zero(s, j, keys);
    set_zero(ds, j, keys);
}

// sum(dO * O) of one row of n numbers.
static float row_dot(const real *d, const real *o, int n)
{
    lanes sum = {0};
    for (int i = 0; i < n; i += LANES)
        sum += lanes_get(d, i, n) * lanes_get(o, i, n);
    return lanes_sum(sum);
}

// Prefetch row t of dk and dv, and what the next strip reads at that place.
static inline __attribute__((always_inline)) void
prefetch_strip(int D, int t, const real *dqkv, const real *dout,
               const real *out, const real *qkv, size_t C)
{
    prefetch(dqkv + t * (3 * C) + C, D);
    prefetch(dqkv + t * (3 * C) + 2 * C, D);
    prefetch(qkv + (t + STEP) * (3 * C), D);
    prefetch(dout + (t + STEP) * C, D);
    prefetch(out + (t + STEP) * C, D);
}
