// vector_ops.c - small passes over whole tensors: sums, masks, conversions.
// Part of kernels.c.

enum { STRIP = 64 }; // columns of a table that one thread adds up at a time

// Numbers c, c + 1, .. of a row of n, with the bias unless that is NULL.
static inline lanes lanes_biased(const real *row, const real *bias, int c,
                                 int n)
{
    lanes x = lanes_get(row, c, n);
    if (bias)
        x += lanes_get(bias, c, n);
    return x;
}

// mask_at() of elements i, i + 1, ...
static lanes mask_lanes(const struct mask *m, uint32_t row, uint32_t i)
{
    lanes keep;
    for (int k = 0; k < LANES; k++)
        keep[k] = mask_at(m, row, i + (uint32_t)k);
    return keep;
}

// out = (or +=) the sum of the threads' partial sums, in the threads' order.
static void add_partial(float *out, const float *partial, int threads,
                        size_t stride, int n, bool add)
{
    for (int c = 0; c < n; c++) {
        float sum = partial[c];
        for (int t = 1; t < threads; t++)
            sum += partial[t * stride + c];
        out[c] = add ? out[c] + sum : sum;
    }
}

// sum (partial_width(C)) += the sum of `rows` rows of in.
static void add_rows(float *sum, const real *in, int rows, int C)
{
    for (int c = 0; c < C; c += LANES) {
        lanes s = *(lanes *)(sum + c);
        for (int r = 0; r < rows; r++)
            s += lanes_get(in + (size_t)r * C, c, C);
        *(lanes *)(sum + c) = s;
    }
}

// Threads divide the rows, so that memory is read in order, once.
static void sum_rows(float *out, const void *in_, size_t rows, int C, bool add,
                     float *partial)
{
    enum { ROWS = 4 };
    const real *in = in_;
    size_t Cp = partial_width(C);
    int threads = 1;
#pragma omp parallel
    {
        float *sum = partial + (size_t)omp_get_thread_num() * Cp;
        memset(sum, 0, Cp * sizeof *sum);
#pragma omp single
        threads = omp_get_num_threads();
#pragma omp for schedule(static)
        for (size_t r = 0; r < rows; r += ROWS)
            add_rows(sum, in + r * C, rows - r < ROWS ? (int)(rows - r) : ROWS,
                     C);
    }
    add_partial(out, partial, threads, Cp, C, add);
}

static void mask_rows(void *out_, const void *in_, size_t rows, int C,
                      const struct mask *mask)
{
    real *out = out_;
    const real *in = in_;
#pragma omp parallel for
    for (size_t r = 0; r < rows; r++) {
        uint32_t key = mask_row(mask, r);
#pragma omp simd
        for (int c = 0; c < C; c++)
            out[r * C + c] =
                store(load(in[r * C + c]) * mask_at(mask, key, (uint32_t)c));
    }
}

static void fill_rows(float *out, const void *row_, size_t rows, int C)
{
    const real *row = row_;
#pragma omp parallel for
    for (size_t r = 0; r < rows; r++)
#pragma omp simd
        for (int c = 0; c < C; c++)
            out[r * C + c] = load(row[c]);
}

static void cast_up(float *out, const void *in_, size_t n)
{
    const real *in = in_;
#pragma omp parallel for simd
    for (size_t i = 0; i < n; i++)
        out[i] = load(in[i]);
}

// The same bits as from half.h, also for subnormal numbers.
static void cast_down(void *out_, const float *in, size_t n)
{
    real *out = out_;
#pragma omp parallel for simd
    for (size_t i = 0; i < n; i++)
        out[i] = store(in[i]);
}

static void copy_columns(void *out_, size_t out_row, const void *in_,
                         size_t in_row, size_t rows, size_t n)
{
    real *out = out_;
    const real *in = in_;
#pragma omp parallel for
    for (size_t r = 0; r < rows; r++)
        memcpy(out + r * out_row, in + r * in_row, n * sizeof *out);
}

static void zero(float *v, size_t n)
{
    memset(v, 0, n * sizeof *v);
}

static void settle(float *grad, const float *in, size_t n, bool add)
{
    if (add) {
#pragma omp parallel for simd
        for (size_t i = 0; i < n; i++)
            grad[i] += load(store(in[i]));
    } else {
#pragma omp parallel for simd
        for (size_t i = 0; i < n; i++)
            grad[i] = load(store(in[i]));
    }
}

static void add_gathered(float *out, const float *parts, int count, size_t n,
                         bool add)
{
    add_partial(out, parts, count, n, (int)n, add);
}

// out (LANES, LANES) = in', transposed in fp32.
static void transpose_square(real *out, size_t ldo, const real *in, size_t ldi)
{
#if REAL_FORMAT == REAL_FP32
    lanes_transpose(out, ldo, in, ldi);
#else
    float wide[LANES * LANES], transposed[LANES * LANES];
    for (int r = 0; r < LANES; r++)
        *(lanes *)(wide + r * LANES) = lanes_load(in + r * ldi);
    lanes_transpose(transposed, LANES, wide, LANES);
    for (int c = 0; c < LANES; c++)
        lanes_store(out + c * ldo, *(lanes *)(transposed + c * LANES));
#endif
}

static void transpose_part(real *out, size_t ldo, const real *in, size_t ldi,
                           int rows, int columns)
{
    for (int c = 0; c < columns; c++)
        for (int r = 0; r < rows; r++)
            out[c * ldo + r] = in[r * ldi + c];
}

// Threads divide the rows into bands, each of as many rows as a cache line has
// 16-bit numbers. So reads follow the rows of `in`, and cache lines of `out`
// are written whole.
static void transpose(void *out_, size_t ldo, const void *in_, int rows,
                      int columns)
{
    enum { BAND = 32 };
    real *out = out_;
    const real *in = in_;
#pragma omp parallel for
    for (int band = 0; band < rows; band += BAND) {
        int end = rows - band < BAND ? rows : band + BAND;
        for (int c = 0; c < columns; c += LANES)
            for (int r = band; r < end; r += LANES) {
                int nr = end - r < LANES ? end - r : LANES;
                int nc = columns - c < LANES ? columns - c : LANES;
                real *o = out + c * ldo + r;
                const real *i = in + (size_t)r * columns + c;
                if (nr == LANES && nc == LANES)
                    transpose_square(o, ldo, i, columns);
                else
                    transpose_part(o, ldo, i, columns, nr, nc);
            }
    }
}
