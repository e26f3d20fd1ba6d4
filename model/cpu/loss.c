// loss.c - cross-entropy of a slice of rows of logits, and its gradient.
//
// loss = log(sum e^l) - l[y]; its gradient is softmax(l) - [j = y]. The
// exponentials overwrite the logits, so the gradient costs one more
// multiplication. If slices divide the vocabulary, the workers exchange three
// numbers a row between loss_parts() and loss_joined(). Part of kernels.c.

static float row_max(const float *l, int n)
{
    lanes top = lanes_all(l[0]);
    int j = 0;
    for (; j + LANES <= n; j += LANES)
        top = lanes_max(*(const lanes *)(l + j), top);
    float max = lanes_largest(top);
    for (; j < n; j++)
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

// Fills *part from the V logits l of one row, and replaces them by e^(l -
// part->max). y: the target's index in l, or outside [0, V) if another slice
// has it.
static void row_part(struct loss_part *part, float *l, int V, int y)
{
    part->max = row_max(l, V);
    part->right = y >= 0 && y < V ? l[y] : 0;
    part->sum = row_exp(l, V, part->max);
}

// d = scale * l, minus `factor` at the target. l holds e^(logit - max).
static void row_gradient(real *d, const float *l, int V, int y, float scale,
                         float factor)
{
    bool is_here = y >= 0 && y < V;
    float hit = is_here ? l[y] * scale - factor : 0;
#pragma omp simd
    for (int j = 0; j < V; j++)
        d[j] = store(l[j] * scale);
    if (is_here)
        d[y] = store(hit);
}

static void loss(float *loss, void *dlogits_, float *logits, const int32_t *y,
                 size_t rows, int V, float factor)
{
    real *dlogits = dlogits_;
#pragma omp parallel for
    for (size_t r = 0; r < rows; r++) {
        float *l = logits + r * V;
        struct loss_part p;
        row_part(&p, l, V, y[r]);
        loss[r] = p.max + logf(p.sum) - p.right;
        if (dlogits)
            row_gradient(dlogits + r * V, l, V, y[r], factor / p.sum, factor);
    }
}

static void loss_parts(struct loss_part *parts, float *logits, const int32_t *y,
                       struct words here, size_t rows)
{
#pragma omp parallel for
    for (size_t r = 0; r < rows; r++)
        row_part(&parts[r], logits + r * here.n, here.n, y[r] - here.first);
}

// Combines the parts of row r of all slices, in the order of the slices.
static struct loss_part add_parts(const struct loss_part *parts, size_t rows,
                                  size_t r, int slices)
{
    struct loss_part all = parts[r];
    for (int s = 1; s < slices; s++) {
        float max = parts[s * rows + r].max;
        all.max = max > all.max ? max : all.max;
    }
    all.sum = all.right = 0;
    for (int s = 0; s < slices; s++) {
        const struct loss_part *p = &parts[s * rows + r];
        all.sum += p->sum * expf(p->max - all.max);
        all.right += p->right;
    }
    return all;
}

static void loss_joined(float *loss, void *dlogits_, float *logits,
                        const struct loss_part *parts, int slices, int slice,
                        const int32_t *y, struct words here, size_t rows,
                        float factor)
{
    real *dlogits = dlogits_;
#pragma omp parallel for
    for (size_t r = 0; r < rows; r++) {
        struct loss_part all = add_parts(parts, rows, r, slices);
        float own = expf(parts[slice * rows + r].max - all.max);
        size_t at = r * here.n;
        loss[r] = all.max + logf(all.sum) - all.right;
        if (dlogits)
            row_gradient(dlogits + at, logits + at, here.n, y[r] - here.first,
                         factor / all.sum * own, factor);
    }
}

static void mean_of(float *out, const float *v, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += v[i];
    *out = (float)(sum / (double)n);
}
