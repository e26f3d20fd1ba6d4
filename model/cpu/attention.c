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
// A head and its scratch are those of a block (attention_block.c) of all
// queries and keys. Part of kernels.c.

// All tokens of a sequence, as queries and as keys.
static struct attention_runs all_runs(const struct attention *a)
{
    const struct zigzag_run all = {.n = a->T};
    return (struct attention_runs){.queries = all, .keys = all};
}

static void head_forward(const struct block *h, real *out, float *lse,
                         const real *qkv, size_t C, const struct mask *mask)
{
    const size_t stride = 3 * C; // between tokens of qkv
    load_head(h->k, qkv + C, stride, h->nk, h->Kp, h->D, h->Dp, 1);
    load_head(h->v, qkv + 2 * C, stride, h->nk, h->Kp, h->D, h->Dp, 1);
    transpose_head(h->kt, h->k, h->Kp, h->Dp);
    for (int t = 0; t < h->nq; t += STEP) {
        int rows = h->nq - t < STEP ? h->nq - t : STEP, keys = t + STEP;
        float inv[STEP];
        load_head(h->q, qkv + t * stride, stride, rows, STEP, h->D, h->Dp,
                  h->scale);
        for (int i = 0; i < rows; i++)
            prefetch(out + (t + i) * C, h->D);
        tile_product(h->s, h->Kp, (struct operand){h->q, h->Dp, 1}, h->kt,
                     h->Kp, STEP, keys, h->Dp, SCORES, t);
        for (int i = 0; i < rows; i++) {
            prefetch(qkv + (keys + i) * stride, h->D);
            lse[t + i] = softmax_row(h->s + (size_t)i * h->Kp, t + i + 1, keys,
                                     1, mask, h->row0 + t + i, 0, &inv[i]);
        }
        tile_product(h->o, h->Dp, (struct operand){h->s, h->Kp, 1}, h->v, h->Dp,
                     STEP, h->Dp, keys, VALUES, t);
        store_head(out + t * C, C, h->o, rows, h->D, h->Dp, inv, 0);
    }
}

static void attention(void *out_, float *lse, const void *qkv_,
                      const struct attention *a)
{
    real *out = out_;
    const real *qkv = qkv_;
    const struct attention_runs all = all_runs(a);
    size_t C = a->C, T = a->T;
#pragma omp parallel for schedule(static)
    for (int bh = 0; bh < a->B * a->NH; bh++) {
        struct block h = block_at(a, bh, &all);
        size_t token = bh / a->NH * T, column = (size_t)(bh % a->NH) * h.D;
        head_forward(&h, out + token * C + column, lse + bh * T,
                     qkv + token * 3 * C + column, C, &a->mask);
    }
}

// One strip of queries: its dq, and its share of dk and dv.
static void strip_backward(const struct block *h, int t, real *dqkv,
                           const real *dout, const real *out, const float *lse,
                           const real *qkv, size_t C, const struct mask *mask)
{
    int rows = h->nq - t < STEP ? h->nq - t : STEP, keys = t + STEP;
    size_t Tp = h->Kp, Dp = h->Dp, stride = 3 * C;
    load_head(h->q, qkv + t * stride, stride, rows, STEP, h->D, h->Dp,
              h->scale);
    load_head(h->o, dout + t * C, C, rows, STEP, h->D, h->Dp, 1);
    for (int i = 0; i < rows; i++)
        prefetch(dqkv + (t + i) * stride, h->D);
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
    store_head(dqkv + t * stride, stride, h->dq, rows, h->D, h->Dp, NULL,
               h->scale);
    tile_product(h->dk, Dp, dst, h->q, Dp, keys, h->Dp, STEP, KEYS, t);
    tile_product(h->dv, Dp, pt, h->o, Dp, keys, h->Dp, STEP, KEYS, t);
}

static void head_backward(const struct block *h, real *dqkv, const real *dout,
                          const real *out, const float *lse, const real *qkv,
                          size_t C, const struct mask *mask)
{
    const size_t stride = 3 * C; // between tokens of qkv
    load_head(h->k, qkv + C, stride, h->nk, h->Kp, h->D, h->Dp, 1);
    load_head(h->v, qkv + 2 * C, stride, h->nk, h->Kp, h->D, h->Dp, 1);
    transpose_head(h->kt, h->k, h->Kp, h->Dp);
    transpose_head(h->vt, h->v, h->Kp, h->Dp);
    memset(h->dk, 0, (size_t)h->Kp * h->Dp * sizeof *h->dk);
    memset(h->dv, 0, (size_t)h->Kp * h->Dp * sizeof *h->dv);
    for (int t = 0; t < h->nq; t += STEP)
        strip_backward(h, t, dqkv, dout, out, lse, qkv, C, mask);
    store_head(dqkv + C, stride, h->dk, h->nk, h->D, h->Dp, NULL, 1);
    store_head(dqkv + 2 * C, stride, h->dv, h->nk, h->D, h->Dp, NULL, 1);
}

static void attention_backward(void *dqkv_, const void *dout_, const void *out_,
                               const float *lse, const void *qkv_,
                               const struct attention *a)
{
    real *dqkv = dqkv_;
    const real *dout = dout_, *out = out_, *qkv = qkv_;
    const struct attention_runs all = all_runs(a);
    size_t C = a->C, T = a->T;
#pragma omp parallel for schedule(static)
    for (int bh = 0; bh < a->B * a->NH; bh++) {
        struct block h = block_at(a, bh, &all);
        size_t token = bh / a->NH * T, column = (size_t)(bh % a->NH) * h.D;
        size_t at = token * C + column, at3 = token * 3 * C + column;
        head_backward(&h, dqkv + at3, dout + at, out + at, lse + bh * T,
                      qkv + at3, C, &a->mask);
    }
}
