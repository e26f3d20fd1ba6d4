// norm.c - the residual addition and the LayerNorm after it, in one pass.
//
//     sum = res + mask(branch + its bias)
//     out = (sum - mean) * rstd * weight + bias
//
// Backward, with x^ = (sum - mean) * rstd and g = dout * weight:
//
//     dsum = rstd * (g - mean(g) - x^ * mean(g x^))
//
// It also computes `out` again, which the gradient of the next product's
// weights needs. That is cheaper than storing it. Part of kernels.c.

#define NORM_EPS 1e-5f

// sum = res + mask(branch + its bias), one row; returns the mean of sum.
static float add_branch(real *sum, const real *res, const real *branch,
                        const real *branch_bias, int C, const struct mask *mask,
                        size_t row)
{
    lanes total = {0};
    uint32_t key = mask_row(mask, row);
    for (int c = 0; c < C; c += LANES) {
        lanes x = lanes_get(res, c, C);
        if (branch) {
            lanes b = lanes_biased(branch, branch_bias, c, C);
            if (mask->threshold > 0)
                b *= mask_lanes(mask, key, (uint32_t)c);
            lanes_put(sum, c, C, x + b);
            x = lanes_get(sum, c, C); // rounded by the store
        }
        total += x;
    }
    return lanes_sum(total) / C;
}

// 1 / the standard deviation of a row.
static float inverse_deviation(const real *x, float mean, int C)
{
    lanes square = {0};
    for (int c = 0; c < C; c += LANES) {
        lanes d = lanes_get(x, c, C) - mean;
        if (C - c < LANES)
            d = lanes_choose(C - c, d, (lanes){0});
        square += d * d;
    }
    return 1 / sqrtf(lanes_sum(square) / C + NORM_EPS);
}

static void norm(void *sum_, void *out_, float *mean, float *rstd,
                 const void *res_, const void *branch_, const void *branch_bias,
                 const void *weight, const void *bias, size_t rows, int C,
                 const struct mask *mask)
{
    real *sum = sum_, *out = out_;
    const real *res = res_, *branch = branch_;
#pragma omp parallel for
    for (size_t r = 0; r < rows; r++) {
        size_t at = r * C;
        const real *x = branch ? sum + at : res + at;
        float m =
            add_branch(branch ? sum + at : NULL, res + at,
                       branch ? branch + at : NULL, branch_bias, C, mask, r);
        if (!out)
            continue;
        float s = inverse_deviation(x, m, C);
        for (int c = 0; c < C; c += LANES) {
            lanes y = (lanes_get(x, c, C) - m) * s;
            y = y * lanes_get(weight, c, C) + lanes_get(bias, c, C);
            lanes_put(out + at, c, C, y);
        }
        mean[r] = m;
        rstd[r] = s;
    }
}

struct norm_row {
    const real *dout, *sum, *weight, *bias;
    float mean, rstd;
};

// One row of backward; adds to this thread's sums for weight and bias.
static void norm_row_backward(real *dres, bool add_dres, real *out, float *dw,
                              float *db, const struct norm_row *in, int C)
{
    float m = in->mean, s = in->rstd;
    lanes g_sum = {0}, gx_sum = {0};
    for (int c = 0; c < C; c += LANES) {
        lanes x = (lanes_get(in->sum, c, C) - m) * s;
        lanes d = lanes_get(in->dout, c, C), w = lanes_get(in->weight, c, C);
        lanes g = d * w;
        g_sum += g;
        gx_sum += g * x;
        *(lanes *)(dw + c) += d * x;
        *(lanes *)(db + c) += d;
        lanes_put(out, c, C, x * w + lanes_get(in->bias, c, C));
    }
    float g_mean = lanes_sum(g_sum) / C, gx_mean = lanes_sum(gx_sum) / C;
    for (int c = 0; c < C; c += LANES) {
        lanes x = (lanes_get(in->sum, c, C) - m) * s;
        lanes g = lanes_get(in->dout, c, C) * lanes_get(in->weight, c, C);
        lanes d = s * (g - g_mean - x * gx_mean);
        if (add_dres)
            d += lanes_get(dres, c, C);
        lanes_put(dres, c, C, d);
    }
}

static void norm_backward(void *dres_, bool add_dres, void *out_,
                          float *dweight, float *dbias, bool add,
                          const void *dout_, const void *sum_,
                          const float *mean, const float *rstd,
                          const void *weight, const void *bias, size_t rows,
                          int C, float *partial)
{
    real *dres = dres_, *out = out_;
    const real *dout = dout_, *sum = sum_;
    size_t Cp = partial_width(C);
    int threads = 1;
#pragma omp parallel
    {
        float *dw = partial + (size_t)omp_get_thread_num() * 2 * Cp;
        memset(dw, 0, 2 * Cp * sizeof *dw);
#pragma omp single
        threads = omp_get_num_threads();
#pragma omp for schedule(static)
        for (size_t r = 0; r < rows; r++) {
            size_t at = r * C;
            struct norm_row in = {dout + at, sum + at, weight,
                                  bias,      mean[r],  rstd[r]};
            norm_row_backward(dres + at, add_dres, out + at, dw, dw + Cp, &in,
                              C);
        }
    }
    add_partial(dweight, partial, threads, 2 * Cp, C, add);
    add_partial(dbias, partial + Cp, threads, 2 * Cp, C, add);
}
