// attention_tiles.c - attention.c in bf16 with its products on tiles (tiles.h).
//
// The strips, the softmax and the limit at the diagonal are those of
// attention.c. Scores, O and the gradients of Q, K and V are accumulated in
// fp32. The factors of a product are in bf16: Q, K, V and dO as they are
// stored, P and dS rounded. A tile product reads its right factor by pairs of
// rows, so each head is laid out in this form once for all its strips:
//
//     S = Q K'    K' by pairs: pairs of K's columns, as 32-bit numbers that
//                 are transposed
//     dP = dO V'  V' likewise
//     O = P V     V by pairs of its rows;  dQ = dS K likewise
//     dK += dS' Q, dV += P' dO   the strip's Q, dO by pairs; dS', P' transposed
//
// Everything is padded with zeros: D to a multiple of 32, T to a multiple of
// STEP, which is the depth of a tile. Part of kernels.c.

enum { DEEP = ATTENTION_DEPTH };

_Static_assert((int)STEP % TILE_BLOCK == 0 && (int)DEEP == TILE_BLOCK,
               "strips are whole blocks of tiles");

// One head, and this thread's scratch for it.
struct head {
    int T, D, Tp, Dp; // tokens, channels; the same, padded
    size_t stride;    // between tokens of qkv: 3C
    uint64_t row0;    // number of the head's first row of probabilities
    float scale;      // 1 / sqrt(D)
    float *dk, *dv;   // (Tp, Dp)
    float *o;         // (STEP, Dp) O or dQ of a strip
    float *s, *ds;    // (STEP, Tp)
    real *rows;       // (Tp, Dp) K or V as it is
    real *kt, *vt;    // (Dp / 2, Tp) pairs: K', V'
    real *pairs;      // (Tp / 2, Dp) pairs: V in forward, K in backward
    real *q, *d;      // (STEP, Dp) of Q, dO
    real *qp, *dp;    // (STEP / 2, Dp) pairs of them
    real *p;          // (STEP, Tp) P in forward, dS in backward
    real *transposed; // (Tp, STEP) P' or dS'
};

static struct head head_at(const struct attention *a, int bh, float *p)
{
    int D = a->C / a->NH;
    struct head h = {.T = a->T, .D = D, .stride = 3 * (size_t)a->C};
    h.Tp = (a->T + STEP - 1) / STEP * STEP;
    h.Dp = (D + DEEP - 1) / DEEP * DEEP;
    h.row0 = first_row(a, bh);
    h.scale = 1 / sqrtf((float)D);
    size_t whole = (size_t)h.Tp * h.Dp, strip = (size_t)STEP * h.Dp;
    h.dk = p;
    h.dv = h.dk + whole;
    h.o = h.dv + whole;
    h.s = h.o + strip;
    h.ds = h.s + (size_t)STEP * h.Tp;
    real *r = (real *)(void *)(h.ds + (size_t)STEP * h.Tp);
    real **heads[] = {&h.rows, &h.kt, &h.vt, &h.pairs};
    for (int i = 0; i < 4; i++, r += whole)
        *heads[i] = r;
    real **strips[] = {&h.q, &h.d, &h.qp, &h.dp};
    for (int i = 0; i < 4; i++, r += strip)
        *strips[i] = r;
    h.p = r;
    h.transposed = r + (size_t)STEP * h.Tp;
    return h;
}

// ---- the layout of factors; numbers are copied as bits

// out (padded, Dp) = rows of D numbers `stride` apart, and zeros.
static void copy_rows(real *out, const real *in, size_t stride, int rows,
                      int padded, int D, int Dp)
{
    memset(out, 0, (size_t)padded * Dp * sizeof *out);
    for (int r = 0; r < rows; r++)
        memcpy(out + (size_t)r * Dp, in + r * stride, D * sizeof *out);
}

// out (n / 2, Dp) pairs: pair d of row i is number d of rows 2i and 2i + 1 of
// in (n, Dp).
static void pair_rows(real *out, const real *in, int n, int Dp)
{
    for (int i = 0; i < n; i += 2)
        for (int d = 0; d < Dp; d += LANES) {
            const real *even = in + (size_t)i * Dp + d, *odd = even + Dp;
            lanes_bits low = lanes_widen(*(const lanes_half *)even);
            lanes_bits high = lanes_widen(*(const lanes_half *)odd);
            *(lanes_bits *)(out + (size_t)i * Dp + 2 * d) = low | high << 16;
        }
}

// out (Dp / 2, n) pairs: in (n, Dp), as (n, Dp / 2) pairs of neighbours,
// transposed.
static void pair_columns(real *out, const real *in, int n, int Dp)
{
    for (int r = 0; r < n; r += LANES)
        for (int c = 0; c < Dp / 2; c += LANES)
            lanes_transpose((float *)(void *)(out + 2 * ((size_t)c * n + r)), n,
                            (const float *)(const void *)(in + (size_t)r * Dp +
                                                          2 * c),
                            Dp / 2);
}

// out (STEP, keys) = s rounded, rows Tp apart in both.
static void round_strip(real *out, const float *s, int keys, int Tp)
{
    for (int i = 0; i < STEP; i++)
        for (int j = 0; j < keys; j += LANES)
            lanes_store(out + (size_t)i * Tp + j,
                        *(const lanes *)(s + (size_t)i * Tp + j));
}

// out (keys, STEP) = s', rounded.
static void transpose_strip(real *out, const float *s, int keys, int Tp)
{
    float square[LANES * LANES];
    for (int j = 0; j < keys; j += LANES)
        for (int i = 0; i < STEP; i += LANES) {
            lanes_transpose(square, LANES, s + (size_t)i * Tp + j, Tp);
            for (int r = 0; r < LANES; r++)
                lanes_store(out + (size_t)(j + r) * STEP + i,
                            *(const lanes *)(square + r * LANES));
        }
}

// ---- forward

static void head_forward(const struct head *h, struct tiles *x, real *out,
                         float *lse, const real *qkv, size_t C,
                         const struct mask *mask)
{
    size_t Tp = h->Tp, Dp = h->Dp;
    copy_rows(h->rows, qkv + C, h->stride, h->T, h->Tp, h->D, h->Dp);
    pair_columns(h->kt, h->rows, h->Tp, h->Dp);
    copy_rows(h->rows, qkv + 2 * C, h->stride, h->T, h->Tp, h->D, h->Dp);
    pair_rows(h->pairs, h->rows, h->Tp, h->Dp);
    for (int t = 0; t < h->T; t += STEP) {
        int rows = h->T - t < STEP ? h->T - t : STEP, keys = t + STEP;
        float inv[STEP];
        copy_rows(h->q, qkv + t * h->stride, h->stride, rows, STEP, h->D,
                  h->Dp);
        for (int i = 0; i < rows; i++)
            prefetch(out + (t + i) * C, h->D);
        tiles_product(x, h->s, Tp, h->q, Dp, h->kt, Tp, STEP, keys, h->Dp, 0);
        for (int i = 0; i < rows; i++) {
            prefetch(qkv + (keys + i) * h->stride, h->D);
            lse[t + i] = softmax_row(h->s + i * Tp, t + i + 1, keys, h->scale,
                                     mask, h->row0 + t + i, 0, &inv[i]);
        }
        round_strip(h->p, h->s, keys, h->Tp);
        tiles_product(x, h->o, Dp, h->p, Tp, h->pairs, Dp, STEP, h->Dp, keys,
                      0);
        store_head(out + t * C, C, h->o, rows, h->D, h->Dp, inv, 0);
    }
}

static void attention(void *out_, float *lse, const void *qkv_,
                      const struct attention *a)
{
    real *out = out_;
    const real *qkv = qkv_;
    size_t C = a->C, T = a->T, need = attention_scratch(a->T, a->C, a->NH);
#pragma omp parallel
    {
        struct tiles x;
        tiles_begin(&x);
#pragma omp for schedule(static)
        for (int bh = 0; bh < a->B * a->NH; bh++) {
            struct head h =
                head_at(a, bh, a->scratch + need * omp_get_thread_num());
            size_t token = bh / a->NH * T, column = (size_t)(bh % a->NH) * h.D;
            head_forward(&h, &x, out + token * C + column, lse + bh * T,
                         qkv + token * h.stride + column, C, &a->mask);
        }
        tiles_end(&x);
    }
}

// ---- backward

// One strip of queries: its dq, and its share of dk and dv.
static void strip_backward(const struct head *h, struct tiles *x, int t,
                           real *dqkv, const real *dout, const real *out,
                           const float *lse, const real *qkv, size_t C,
                           const struct mask *mask)
{
    int rows = h->T - t < STEP ? h->T - t : STEP, keys = t + STEP;
    size_t Tp = h->Tp, Dp = h->Dp;
    copy_rows(h->q, qkv + t * h->stride, h->stride, rows, STEP, h->D, h->Dp);
    copy_rows(h->d, dout + t * C, C, rows, STEP, h->D, h->Dp);
    pair_rows(h->qp, h->q, STEP, h->Dp);
    pair_rows(h->dp, h->d, STEP, h->Dp);
    for (int i = 0; i < rows; i++)
        prefetch(dqkv + (t + i) * h->stride, h->D);
    tiles_product(x, h->s, Tp, h->q, Dp, h->kt, Tp, STEP, keys, h->Dp, 0);
    tiles_product(x, h->ds, Tp, h->d, Dp, h->vt, Tp, STEP, keys, h->Dp, 0);
    for (int i = 0; i < STEP; i++) {
        int n = i < rows ? t + i + 1 : 0; // padding rows become zero
        prefetch_strip(h->D, t + i, dqkv, dout, out, qkv, C);
        float sum =
            n ? row_dot(dout + (t + i) * C, out + (t + i) * C, h->D) : 0;
        softmax_row_backward(h->s + i * Tp, h->ds + i * Tp, n, keys, h->scale,
                             n ? lse[t + i] : 0, sum, mask, h->row0 + t + i, 0);
    }
    round_strip(h->p, h->ds, keys, h->Tp);
    tiles_product(x, h->o, Dp, h->p, Tp, h->pairs, Dp, STEP, h->Dp, keys, 0);
    store_head(dqkv + t * h->stride, h->stride, h->o, rows, h->D, h->Dp, NULL,
               h->scale);
    transpose_strip(h->transposed, h->ds, keys, h->Tp);
    tiles_product(x, h->dk, Dp, h->transposed, STEP, h->qp, Dp, keys, h->Dp,
                  STEP, 1);
    transpose_strip(h->transposed, h->s, keys, h->Tp);
    tiles_product(x, h->dv, Dp, h->transposed, STEP, h->dp, Dp, keys, h->Dp,
                  STEP, 1);
}

static void head_backward(const struct head *h, struct tiles *x, real *dqkv,
                          const real *dout, const real *out, const float *lse,
                          const real *qkv, size_t C, const struct mask *mask)
{
    copy_rows(h->rows, qkv + 2 * C, h->stride, h->T, h->Tp, h->D, h->Dp);
    pair_columns(h->vt, h->rows, h->Tp, h->Dp);
    copy_rows(h->rows, qkv + C, h->stride, h->T, h->Tp, h->D, h->Dp);
    pair_columns(h->kt, h->rows, h->Tp, h->Dp);
    pair_rows(h->pairs, h->rows, h->Tp, h->Dp);
    memset(h->dk, 0, (size_t)h->Tp * h->Dp * sizeof *h->dk);
    memset(h->dv, 0, (size_t)h->Tp * h->Dp * sizeof *h->dv);
    for (int t = 0; t < h->T; t += STEP)
        strip_backward(h, x, t, dqkv, dout, out, lse, qkv, C, mask);
    store_head(dqkv + C, h->stride, h->dk, h->T, h->D, h->Dp, NULL, h->scale);
    store_head(dqkv + 2 * C, h->stride, h->dv, h->T, h->D, h->Dp, NULL, 1);
}

static void attention_backward(void *dqkv_, const void *dout_, const void *out_,
                               const float *lse, const void *qkv_,
                               const struct attention *a)
{
    real *dqkv = dqkv_;
    const real *dout = dout_, *out = out_, *qkv = qkv_;
    size_t C = a->C, T = a->T, need = attention_scratch(a->T, a->C, a->NH);
#pragma omp parallel
    {
        struct tiles x;
        tiles_begin(&x);
#pragma omp for schedule(static)
        for (int bh = 0; bh < a->B * a->NH; bh++) {
            struct head h =
                head_at(a, bh, a->scratch + need * omp_get_thread_num());
            size_t token = bh / a->NH * T, column = (size_t)(bh % a->NH) * h.D;
            size_t at = token * C + column, at3 = token * h.stride + column;
            head_backward(&h, &x, dqkv + at3, dout + at, out + at, lse + bh * T,
                          qkv + at3, C, &a->mask);
        }
        tiles_end(&x);
    }
}
