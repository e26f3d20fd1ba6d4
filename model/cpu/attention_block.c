// attention_block.c - attention of some queries over some keys: a block of the
// matrix of scores, for sequences that several workers divide.
//
// The blocks of a row of scores come one after the other, and the result so far
// is kept as (O, lse) in fp32. A block with its own result (O', lse') is merged
// (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018;
// Liu et al., "Ring attention", 2023):
//
//     lse <- log(e^lse + e^lse')
//     O   <- O e^(lse_old - lse) + O' e^(lse' - lse)
//
// Backward needs no merge: with the final O and lse, the formulas of
// attention.c give each block's share of dQ, dK and dV, and these are added.
//
// A block's keys either all come before its queries, or are the tokens of its
// queries. So a query sees all of the keys, or those up to its own token. Part
// of kernels.c.

// One head of a block, and this thread's scratch for it: the head in fp32,
// padded with zeros, D to a multiple of 16 and the keys to a multiple of STEP.
struct block {
    const struct attention_runs *runs;
    int nq, nk, D, Kp, Dp; // queries, keys, channels; padded
    int ahead;             // tokens from the first key to the first query
    int first_key;         // its position in the sequence
    uint64_t row0;         // number of the first query's row of probabilities
    float scale;           // 1 / sqrt(D)
    float *k, *kt, *v, *vt, *dk, *dv; // (Kp, Dp); kt, vt transposed
    float *q, *o, *dq;                // (STEP, Dp)
    float *s, *ds;                    // (STEP, Kp)
};

static struct block block_at(const struct attention *a, int bh,
                             const struct attention_runs *r)
{
    struct zigzag_run queries = r->queries, keys = r->keys;
    int D = a->C / a->NH;
    struct block b = {.runs = r, .nq = queries.n, .nk = keys.n, .D = D};
    float *p = a->scratch + attention_scratch(keys.n, a->C, a->NH) *
                                (size_t)omp_get_thread_num();
    b.Kp = (keys.n + STEP - 1) / STEP * STEP;
    b.Dp = (D + ATTENTION_LANES - 1) / ATTENTION_LANES * ATTENTION_LANES;
    b.ahead = queries.first - keys.first;
    b.first_key = keys.first;
    b.row0 = first_row(a, bh) + (uint64_t)queries.first;
    b.scale = 1 / sqrtf((float)D);
    float **whole[] = {&b.k, &b.kt, &b.v, &b.vt, &b.dk, &b.dv};
    for (int i = 0; i < 6; i++, p += (size_t)b.Kp * b.Dp)
        *whole[i] = p;
    float **strip[] = {&b.q, &b.o, &b.dq};
    for (int i = 0; i < 3; i++, p += (size_t)STEP * b.Dp)
        *strip[i] = p;
    b.s = p;
    b.ds = p + (size_t)STEP * b.Kp;
    return b;
}

// Loads the head's K and V from kv, rows of K and then V, 2C apart.
static void load_keys(const struct block *b, const real *kv, size_t C)
{
    load_head(b->k, kv, 2 * C, b->nk, b->Kp, b->D, b->Dp, 1);
    load_head(b->v, kv + C, 2 * C, b->nk, b->Kp, b->D, b->Dp, 1);
    transpose_head(b->kt, b->k, b->Kp, b->Dp);
}

// A strip of queries that begins with query t: how many it has, the distance of
// its first one from the first key, and the keys that it sees, padded.
struct strip {
    int rows, ahead, keys;
};

static struct strip strip_at(const struct block *b, int t)
{
    int left = b->nq - t;
    return (struct strip){.rows = left < STEP ? left : STEP,
                          .ahead = b->ahead + t,
                          .keys = attention_strip_keys(b->runs, t)};
}

// The number of keys that query i of a strip sees.
static int visible(const struct block *b, const struct strip *s, int i)
{
    int n = s->ahead + i + 1;
    return n < b->nk ? n : b->nk;
}

// Merges a row's result o * inv of this block, with its lse, into the row's
// result so far, unless it is the first.
static void merge_row(float *out, float *lse, const float *o, float inv,
                      float block_lse, int D, bool first)
{
    float before = first ? -INFINITY : *lse;
    float most = before > block_lse ? before : block_lse;
    float old = expf(before - most), new = expf(block_lse - most);
    float sum = old + new, keep = old / sum, take = new / sum *inv;
    for (int d = 0; d < D; d++)
        out[d] = (first ? 0 : out[d] * keep) + o[d] * take;
    *lse = most + logf(sum);
}

static void block_forward(const struct block *b, float *out, float *lse,
                          const real *q, size_t C, const struct mask *mask)
{
    size_t Kp = b->Kp, Dp = b->Dp;
    for (int t = 0; t < b->nq; t += STEP) {
        struct strip s = strip_at(b, t);
        float inv[STEP], own[STEP];
        load_head(b->q, q + t * 3 * C, 3 * C, s.rows, STEP, b->D, b->Dp,
                  b->scale);
        tile_product(b->s, Kp, (struct operand){b->q, Dp, 1}, b->kt, Kp, STEP,
                     s.keys, b->Dp, SCORES, s.ahead);
        for (int i = 0; i < s.rows; i++)
            own[i] = softmax_row(b->s + i * Kp, visible(b, &s, i), s.keys, 1,
                                 mask, b->row0 + t + i, b->first_key, &inv[i]);
        tile_product(b->o, Dp, (struct operand){b->s, Kp, 1}, b->v, Dp, STEP,
                     b->Dp, s.keys, VALUES, s.ahead);
        for (int i = 0; i < s.rows; i++)
            merge_row(out + (t + i) * C, lse + t + i, b->o + i * Dp, inv[i],
                      own[i], b->D, b->runs->first);
    }
}

// The element of head bh's first channel at a run's first token, in a tensor
// whose sequences have `tokens` rows of `width` numbers.
static size_t run_at(const struct attention *a, int bh, struct zigzag_run run,
                     int tokens, size_t width)
{
    size_t row = (size_t)(bh / a->NH) * tokens + run.at;
    return row * width + (size_t)(bh % a->NH) * (a->C / a->NH);
}

static void attention_block(float *out, float *lse, const void *qkv_,
                            const void *kv_, const struct attention_runs *r,
                            const struct attention *a)
{
    const real *qkv = qkv_, *kv = kv_;
    size_t C = a->C;
#pragma omp parallel for schedule(static)
    for (int bh = 0; bh < a->B * a->NH; bh++) {
        struct block b = block_at(a, bh, r);
        load_keys(&b, kv + run_at(a, bh, r->keys, r->of_keys, 2 * C), C);
        block_forward(&b, out + run_at(a, bh, r->queries, r->of_queries, C),
                      lse + (size_t)bh * r->of_queries + r->queries.at,
                      qkv + run_at(a, bh, r->queries, r->of_queries, 3 * C), C,
                      &a->mask);
    }
}

// ---- backward

// out (rows, D), rows `stride` apart, += in * factor.
static void add_head(float *out, size_t stride, const float *in, int rows,
                     int D, int Dp, float factor)
{
    for (int r = 0; r < rows; r++)
        for (int d = 0; d < D; d++)
            out[r * stride + d] += in[(size_t)r * Dp + d] * factor;
}

// One strip of queries: its share of dq, and of the block's dk and dv.
static void block_strip(const struct block *b, int t, float *dq,
                        const real *dout, const real *out, const float *lse,
                        const real *q, size_t C, const struct mask *mask)
{
    struct strip s = strip_at(b, t);
    size_t Kp = b->Kp, Dp = b->Dp;
    load_head(b->q, q + t * 3 * C, 3 * C, s.rows, STEP, b->D, b->Dp, b->scale);
    load_head(b->o, dout + t * C, C, s.rows, STEP, b->D, b->Dp, 1);
    struct operand left = {b->q, Dp, 1}, d = {b->o, Dp, 1};
    tile_product(b->s, Kp, left, b->kt, Kp, STEP, s.keys, b->Dp, SCORES,
                 s.ahead);
    tile_product(b->ds, Kp, d, b->vt, Kp, STEP, s.keys, b->Dp, SCORES, s.ahead);
    for (int i = 0; i < STEP; i++) {
        bool here = i < s.rows; // padding rows become zero
        size_t row = (size_t)(t + i) * C;
        float sum = here ? row_dot(dout + row, out + row, b->D) : 0;
        softmax_row_backward(b->s + i * Kp, b->ds + i * Kp,
                             here ? visible(b, &s, i) : 0, s.keys, 1,
                             here ? lse[t + i] : 0, sum, mask, b->row0 + t + i,
                             b->first_key);
    }
    struct operand ds = {b->ds, Kp, 1}, dst = {b->ds, 1, Kp};
    struct operand pt = {b->s, 1, Kp};
    tile_product(b->dq, Dp, ds, b->k, Dp, STEP, b->Dp, s.keys, VALUES, s.ahead);
    add_head(dq + t * C, C, b->dq, s.rows, b->D, b->Dp, b->scale);
    tile_product(b->dk, Dp, dst, b->q, Dp, s.keys, b->Dp, STEP, KEYS, s.ahead);
    tile_product(b->dv, Dp, pt, b->o, Dp, s.keys, b->Dp, STEP, KEYS, s.ahead);
}

static void attention_block_backward(float *dq, float *dkv, const void *dout_,
                                     const void *out_, const float *lse,
                                     const void *qkv_, const void *kv_,
                                     const struct attention_runs *r,
                                     const struct attention *a)
{
    const real *dout = dout_, *out = out_, *qkv = qkv_, *kv = kv_;
    size_t C = a->C;
#pragma omp parallel for schedule(static)
    for (int bh = 0; bh < a->B * a->NH; bh++) {
        struct block b = block_at(a, bh, r);
        size_t at = run_at(a, bh, r->queries, r->of_queries, C);
        size_t at3 = run_at(a, bh, r->queries, r->of_queries, 3 * C);
        size_t keys = run_at(a, bh, r->keys, r->of_keys, 2 * C);
        size_t n = (size_t)b.Kp * b.Dp;
        load_keys(&b, kv + keys, C);
        transpose_head(b.vt, b.v, b.Kp, b.Dp);
        memset(b.dk, 0, n * sizeof *b.dk);
        memset(b.dv, 0, n * sizeof *b.dv);
        for (int t = 0; t < b.nq; t += STEP)
            block_strip(&b, t, dq + at, dout + at, out + at,
                        lse + (size_t)bh * r->of_queries + r->queries.at,
                        qkv + at3, C, &a->mask);
        add_head(dkv + keys, 2 * C, b.dk, b.nk, b.D, b.Dp, 1);
        add_head(dkv + keys + C, 2 * C, b.dv, b.nk, b.D, b.Dp, 1);
    }
}
