// attention.c - causal self-attention that never holds a (T,T) matrix.
//
//     P = softmax(Q K' / sqrt(D)), causal;  O = P V        D = C / NH
//
// A thread works on one head of one sequence, STEP queries at a time. A strip
// of scores (STEP, keys so far) fits the cache, and its softmax is exact.
// Blocks of scores right of the diagonal are never computed. Forward keeps one
// number a row for backward, lse = log sum e^score; backward computes P again
// from it. Backward (Dao et al., FlashAttention, 2022), with row = sum(dO * O):
//
//     dS = P * (dO V' - row);  dQ = dS K;  dK = dS' Q;  dV = P' dO
//
// Scratch has the heads in fp32, padded with zeros: D to a multiple of 16, T to
// a multiple of STEP. Part of kernels.c.

// One head, and this thread's scratch for it.
struct head {
    int T, D, Tp, Dp;   // tokens, channels; the same, padded
    size_t stride;      // between tokens of qkv: 3C
    uint64_t row0;      // number of the head's first row of probabilities
    float scale;        // 1 / sqrt(D)
    float *k, *kt, *vt; // (Tp, Dp), (Dp, Tp), (Dp, Tp)
    float *v;           // (Tp, Dp)
    float *dk, *dv;     // (Tp, Dp)
    float *q, *o, *dq;  // (STEP, Dp)
    float *s, *ds;      // (STEP, Tp)
};

static struct head head_at(const struct attention *a, int bh, float *p)
{
    int D = a->C / a->NH;
    struct head h = {.T = a->T, .D = D, .stride = 3 * (size_t)a->C};
    h.Tp = (a->T + STEP - 1) / STEP * STEP;
    h.Dp = (D + ATTENTION_LANES - 1) / ATTENTION_LANES * ATTENTION_LANES;
    h.row0 = first_row(a, bh);
    h.scale = 1 / sqrtf((float)D);
    float **whole[] = {&h.k, &h.kt, &h.vt, &h.v, &h.dk, &h.dv};
    for (int i = 0; i < 6; i++, p += (size_t)h.Tp * h.Dp)
        *whole[i] = p;
    float **strip[] = {&h.q, &h.o, &h.dq};
    for (int i = 0; i < 3; i++, p += (size_t)STEP * h.Dp)
        *strip[i] = p;
    h.s = p;
    h.ds = p + (size_t)STEP * h.Tp;
    return h;
}

static void head_forward(const struct head *h, real *out, float *lse,
                         const real *qkv, size_t C, const struct mask *mask)
{
    load_head(h->k, qkv + C, h->stride, h->T, h->Tp, h->D, h->Dp, 1);
    load_head(h->v, qkv + 2 * C, h->stride, h->T, h->Tp, h->D, h->Dp, 1);
    transpose_head(h->kt, h->k, h->Tp, h->Dp);
    for (int t = 0; t < h->T; t += STEP) {
        int rows = h->T - t < STEP ? h->T - t : STEP, keys = t + STEP;
        float inv[STEP];
        load_head(h->q, qkv + t * h->stride, h->stride, rows, STEP, h->D, h->Dp,
                  h->scale);
        for (int i = 0; i < rows; i++)
            prefetch(out + (t + i) * C, h->D);
        tile_product(h->s, h->Tp, (struct operand){h->q, h->Dp, 1}, h->kt,
                     h->Tp, STEP, keys, h->Dp, SCORES, t);
        for (int i = 0; i < rows; i++) {
            prefetch(qkv + (keys + i) * h->stride, h->D);
            lse[t + i] = softmax_row(h->s + (size_t)i * h->Tp, t + i + 1, keys,
                                     1, mask, h->row0 + t + i, 0, &inv[i]);
        }
        tile_product(h->o, h->Dp, (struct operand){h->s, h->Tp, 1}, h->v, h->Dp,
                     STEP, h->Dp, keys, VALUES, t);
        store_head(out + t * C, C, h->o, rows, h->D, h->Dp, inv, 0);
    }
}

static void attention(void *out_, float *lse, const void *qkv_,
                      const struct attention *a)
{
    real *out = out_;
    const real *qkv = qkv_;
    size_t C = a->C, T = a->T, need = attention_scratch(a->T, a->C, a->NH);
#pragma omp parallel for schedule(static)
    for (int bh = 0; bh < a->B * a->NH; bh++) {
        struct head h =
            head_at(a, bh, a->scratch + need * omp_get_thread_num());
        size_t token = bh / a->NH * T, column = (size_t)(bh % a->NH) * h.D;
        head_forward(&h, out + token * C + column, lse + bh * T,
                     qkv + token * h.stride + column, C, &a->mask);
    }
}

// One strip of queries: its dq, and its share of dk and dv.
static void strip_backward(const struct head *h, int t, real *dqkv,
                           const real *dout, const real *out, const float *lse,
                           const real *qkv, size_t C, const struct mask *mask)
{
    int rows = h->T - t < STEP ? h->T - t : STEP, keys = t + STEP;
    size_t Tp = h->Tp, Dp = h->Dp;
    load_head(h->q, qkv + t * h->stride, h->stride, rows, STEP, h->D, h->Dp,
              h->scale);
    load_head(h->o, dout + t * C, C, rows, STEP, h->D, h->Dp, 1);
    for (int i = 0; i < rows; i++)
        prefetch(dqkv + (t + i) * h->stride, h->D);
    struct operand q = {h->q, Dp, 1}, d = {h->o, Dp, 1};
    tile_product(h->s, Tp, q, h->kt, Tp, STEP, keys, h->Dp, SCORES, t);
    tile_product(h->ds, Tp, d, h->vt, Tp, STEP, keys, h->Dp, SCORES, t);
    for (int i = 0; i < STEP; i++) {
        int n = i < rows ? t + i + 1 : 0; // padding rows become zero
        prefetch_strip(h->D, t + i, dqkv, dout, out, qkv, C);
        float sum =
            n ? row_dot(dout + (t + i) * C, out + (t + i) * C, h->D) : 0;
        softmax_row_backward(h->s + i * Tp, h->ds + i * Tp, n, keys, 1,
                             n ? lse[t + i] : 0, sum, mask, h->row0 + t + i, 0);
    }
    struct operand ds = {h->ds, Tp, 1}, dst = {h->ds, 1, Tp};
    struct operand pt = {h->s, 1, Tp};
    tile_product(h->dq, Dp, ds, h->k, Dp, STEP, h->Dp, keys, VALUES, t);
    store_head(dqkv + t * h->stride, h->stride, h->dq, rows, h->D, h->Dp, NULL,
               h->scale);
    tile_product(h->dk, Dp, dst, h->q, Dp, keys, h->Dp, STEP, KEYS, t);
    tile_product(h->dv, Dp, pt, h->o, Dp, keys, h->Dp, STEP, KEYS, t);
}

static void head_backward(const struct head *h, real *dqkv, const real *dout,
                          const real *out, const float *lse, const real *qkv,
                          size_t C, const struct mask *mask)
{
    load_head(h->k, qkv + C, h->stride, h->T, h->Tp, h->D, h->Dp, 1);
    load_head(h->v, qkv + 2 * C, h->stride, h->T, h->Tp, h->D, h->Dp, 1);
    transpose_head(h->kt, h->k, h->Tp, h->Dp);
    transpose_head(h->vt, h->v, h->Tp, h->Dp);
    memset(h->dk, 0, (size_t)h->Tp * h->Dp * sizeof *h->dk);
    memset(h->dv, 0, (size_t)h->Tp * h->Dp * sizeof *h->dv);
    for (int t = 0; t < h->T; t += STEP)
        strip_backward(h, t, dqkv, dout, out, lse, qkv, C, mask);
    store_head(dqkv + C, h->stride, h->dk, h->T, h->D, h->Dp, NULL, 1);
    store_head(dqkv + 2 * C, h->stride, h->dv, h->T, h->D, h->Dp, NULL, 1);
}

static void attention_backward(void *dqkv_, const void *dout_, const void *out_,
                               const float *lse, const void *qkv_,
                               const struct attention *a)
{
    real *dqkv = dqkv_;
    const real *dout = dout_, *out = out_, *qkv = qkv_;
    size_t C = a->C, T = a->T, need = attention_scratch(a->T, a->C, a->NH);
#pragma omp parallel for schedule(static)
    for (int bh = 0; bh < a->B * a->NH; bh++) {
        struct head h =
            head_at(a, bh, a->scratch + need * omp_get_thread_num());
        size_t token = bh / a->NH * T, column = (size_t)(bh % a->NH) * h.D;
        size_t at = token * C + column, at3 = token * h.stride + column;
        head_backward(&h, dqkv + at3, dout + at, out + at, lse + bh * T,
                      qkv + at3, C, &a->mask);
    }
}
