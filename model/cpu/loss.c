// loss.c - cross-entropy of a slice of rows of logits, and its gradient.
//
// loss = log(sum e^l) - l[y]; its gradient is softmax(l) - [j = y]. The
// exponentials replace the logits where they lie, so the gradient is one
// multiplication more. Part of kernels.c.

static float row_max(const float *l, int n)
{
    float max = l[0];
#pragma omp simd reduction(max : max)
    for (int j = 0; j < n; j++)
        max = l[j] > max ? l[j] : max;
    return max;
}

// l = e^(l - shift); returns the sum.
static float row_exp(float *l, int n, float shift)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int j = 0; j < n; j++) {
        l[j] = exp_of(l[j] - shift);
        sum += l[j];
    }
    return sum;
}

static void loss(float *loss, void *dlogits_, float *logits, const int32_t *y,
                 size_t rows, int V, float factor)
{
    real *dlogits = dlogits_;
#pragma omp parallel for
    for (size_t r = 0; r < rows; r++) {
        float *l = logits + r * V;
        float max = row_max(l, V), right = l[y[r]];
        float sum = row_exp(l, V, max);
        loss[r] = max + logf(sum) - right;
        if (!dlogits)
            continue;
        float scale = factor / sum;
        float hit = l[y[r]] * scale - factor;
        real *d = dlogits + r * V;
#pragma omp simd
        for (int j = 0; j < V; j++)
            d[j] = store(l[j] * scale);
        d[y[r]] = store(hit);
    }
}
