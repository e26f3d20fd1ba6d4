// embed.c - tokens to vectors: a row of wte plus the position's row of wpe.
// Part of kernels.c.

static void embed(void *out_, const void *wte_, const void *wpe_,
                  const int32_t *x, size_t rows, int T, int C,
                  const struct mask *mask)
{
    real *out = out_;
    const real *wte = wte_, *wpe = wpe_;
#pragma omp parallel for
    for (size_t r = 0; r < rows; r++) {
        const real *token = wte + (size_t)x[r] * C;
        const real *place = wpe + mask_place(mask, r) % T * C;
        uint32_t key = mask_row(mask, r);
        bool drop = mask->threshold > 0;
#pragma omp simd
        for (int c = 0; c < C; c++) {
            float keep = drop ? mask_at(mask, key, (uint32_t)c) : 1;
            out[r * C + c] = store((load(token[c]) + load(place[c])) * keep);
        }
    }
}

static void embed_words(float *out, const void *wte_, const int32_t *x,
                        struct words here, size_t rows, int C)
{
    const real *wte = wte_;
#pragma omp parallel for
    for (size_t r = 0; r < rows; r++) {
        int word = x[r] - here.first;
        bool is_here = word >= 0 && word < here.n;
        const real *token = is_here ? wte + (size_t)word * C : wte;
#pragma omp simd
        for (int c = 0; c < C; c++)
            out[r * C + c] = is_here ? load(token[c]) : 0;
    }
}

static void embed_places(void *out_, const float *words, const void *wpe_,
                         size_t rows, int T, int C, const struct mask *mask)
{
    real *out = out_;
    const real *wpe = wpe_;
#pragma omp parallel for
    for (size_t r = 0; r < rows; r++) {
        const float *word = words + r * C;
        const real *place = wpe + mask_place(mask, r) % T * C;
        uint32_t key = mask_row(mask, r);
        bool drop = mask->threshold > 0;
#pragma omp simd
        for (int c = 0; c < C; c++) {
            float keep = drop ? mask_at(mask, key, (uint32_t)c) : 1;
            out[r * C + c] = store((word[c] + load(place[c])) * keep);
        }
    }
}

// A token may occur in many rows. Threads divide the columns, not the rows, so
// no two threads write the same number and every sum has one order.
static void embed_backward(float *dwte, float *dwpe, const void *dout_,
                           const int32_t *x, struct words here, size_t rows,
                           int T, int C, bool add, const struct mask *mask)
{
    const real *dout = dout_;
#pragma omp parallel for
    for (int first = 0; first < C; first += STRIP) {
        int n = C - first < STRIP ? C - first : STRIP;
        float others[STRIP] = {0}; // gets gradients of other slices' words
        if (!add)
            for (int t = 0; t < T; t++)
                memset(dwpe + (size_t)t * C + first, 0, n * sizeof *dwpe);
        for (size_t r = 0; r < rows; r++) {
            const real *d = dout + r * C + first;
            int word = x[r] - here.first;
            bool is_here = word >= 0 && word < here.n;
            float *token = is_here ? dwte + (size_t)word * C + first : others;
            float *place = dwpe + mask_place(mask, r) % T * C + first;
            uint32_t key = mask_row(mask, r);
            bool drop = mask->threshold > 0;
#pragma omp simd
            for (int c = 0; c < n; c++) {
                float keep =
                    drop ? mask_at(mask, key, (uint32_t)(first + c)) : 1;
                token[c] += load(d[c]) * keep;
                place[c] += load(d[c]) * keep;
            }
        }
    }
}
