// tile.c - small fp32 matrix products inside attention, in registers.
//
//     C (M x N) = (or +=) A (M x K) B (K x N)
//
// A block of STRIP_ROWS x 2 vectors of C stays in registers while k runs. A is
// read one number at a time, so it may be transposed at no cost: its strides
// are arguments. B and C have contiguous rows. M is a multiple of 8 and N of
// 16: attention pads its scratch with zeros. Part of kernels.c.

#if defined(__AVX512F__) || defined(__aarch64__) // 32 vector registers
enum { STRIP_ROWS = 8 };
#else
enum { STRIP_ROWS = 4 };
#endif

struct operand {
    const float *p;
    size_t row, col; // strides
};

// STRIP_ROWS x (vectors * LANES) of C; `vectors` is a constant where inlined.
static inline __attribute__((always_inline)) void
tile_block(float *c, size_t ldc, struct operand a, const float *b, size_t ldb,
           int K, bool add, const int vectors)
{
    lanes sum[STRIP_ROWS][2];
#pragma GCC unroll 8
    for (int i = 0; i < STRIP_ROWS; i++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            sum[i][v] = add ? *(lanes *)(c + i * ldc + v * LANES) : (lanes){0};
    for (int k = 0; k < K; k++) {
        const float *row = b + k * ldb, *left = a.p + k * a.col;
        lanes b0 = *(const lanes *)row;
        lanes b1 = vectors > 1 ? *(const lanes *)(row + LANES) : b0;
#pragma GCC unroll 8
        for (int i = 0; i < STRIP_ROWS; i++) {
            float x = left[i * a.row];
            sum[i][0] += x * b0;
            if (vectors > 1)
                sum[i][1] += x * b1;
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < STRIP_ROWS; i++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            *(lanes *)(c + i * ldc + v * LANES) = sum[i][v];
}

// Which part of a strip's product causality needs. The strip's queries begin at
// `t`.
enum causal {
    SCORES, // C is S: blocks right of the diagonal are not needed
    VALUES, // A is S: row i holds zeros from t + i + 1 on
    KEYS,   // A is S': row i holds zeros before query i - t
};

static void tile_product(float *c, size_t ldc, struct operand a, const float *b,
                         size_t ldb, int M, int N, int K, enum causal shape,
                         int t)
{
    bool add = shape == KEYS;
    for (int j = 0; j < N; j += 2 * LANES)
        for (int i = 0; i < M; i += STRIP_ROWS) {
            int end = t + i + STRIP_ROWS; // end of the visible keys
            int from = shape == KEYS && i > t ? i - t : 0;
            int to = shape == VALUES && end < K ? end : K;
            if (shape == SCORES && j >= end)
                continue;
            struct operand rows = {a.p + i * a.row + from * a.col, a.row,
                                   a.col};
            float *out = c + i * ldc + j;
            const float *right = b + from * ldb + j;
            if (j + 2 * LANES <= N)
                tile_block(out, ldc, rows, right, ldb, to - from, add, 2);
            else
                tile_block(out, ldc, rows, right, ldb, to - from, add, 1);
        }
}
