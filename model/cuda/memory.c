// memory.c - what a step needs on the GPU, as one block cut into pieces.
//
// The same tensors as on the CPU (model/memory.c), and the logits of a larger
// slice: a GPU needs more rows at a time to be busy.

#include "model/cuda/state.h"

static const size_t slice_bytes = (size_t)1 << 30;

enum { SLICE_ROWS = 128, LINE = 64 };

struct cutter {
    char *block; // NULL: only count
    size_t used;
};

static void *cut(struct cutter *c, size_t n, size_t size)
{
    size_t at = c->used, bytes;
    if (__builtin_mul_overflow(n, size, &bytes) || bytes > SIZE_MAX / 4 ||
        at > SIZE_MAX / 4) { // stays absurd, so that the allocation fails
        c->used = SIZE_MAX / 4;
        return NULL;
    }
    c->used = at + ((bytes + 255) & ~(size_t)255);
    return c->block ? c->block + at : NULL;
}

static float *cut_floats(struct cutter *c, size_t n)
{
    return cut(c, n, sizeof(float));
}

static void lay_layer(struct cutter *c, struct cuda_layer *l, size_t rows,
                      size_t C, size_t NH, size_t size)
{
    l->in = cut(c, rows * C, size);
    l->qkv = cut(c, rows * C, 3 * size);
    l->att = cut(c, rows * C, size);
    l->mid = cut(c, rows * C, size);
    l->pre = cut(c, rows * C, 4 * size);
    l->lse = cut_floats(c, rows * NH);
    l->mean1 = cut_floats(c, rows);
    l->rstd1 = cut_floats(c, rows);
    l->mean2 = cut_floats(c, rows);
    l->rstd2 = cut_floats(c, rows);
}

static void lay_layers(struct cuda_model *m, struct cutter *c, size_t rows,
                       size_t size)
{
    const struct model_config *g = &m->job.config;
    struct cuda_layer l;
    for (int i = 0; i < g->layers; i++) {
        if (i == 0 || m->job.train)
            lay_layer(c, &l, rows, (size_t)g->channels, (size_t)g->heads, size);
        if (!m->job.train)
            l.mid = l.in; // norm() adds in place
        if (c->block)
            m->layers[i] = l;
    }
    m->last = m->job.train ? cut(c, rows * (size_t)g->channels, size) : l.in;
}

static int slice_rows(size_t rows, size_t stride)
{
    size_t n = slice_bytes / sizeof(float) / stride / SLICE_ROWS * SLICE_ROWS;
    n = n < SLICE_ROWS ? SLICE_ROWS : n;
    return (int)(n < rows ? n : rows);
}

static void lay_scratch(struct cuda_model *m, struct cutter *c, size_t rows,
                        size_t size)
{
    const struct model_config *g = &m->job.config;
    size_t C = (size_t)g->channels, n = rows * C;
    m->mean = cut_floats(c, rows);
    m->rstd = cut_floats(c, rows);
    m->losses = cut_floats(c, rows);
    m->mean_loss = cut_floats(c, 1);
    m->norm = cut(c, n, size);
    m->branch = cut(c, n, size);
    m->wide = cut(c, n, 4 * size);
    if (m->job.train) {
        m->dwide = cut(c, n, 4 * size);
        m->dres = cut(c, n, size);
        m->dbranch = g->dropout > 0 ? cut(c, n, size) : m->dres;
        m->partial = cut_floats(c, cuda_partial(g->channels));
        m->row_sum = cut_floats(c, rows * (size_t)g->heads);
    }
    m->stride = ((size_t)g->vocab + LINE - 1) / LINE * LINE;
    m->slice = slice_rows(rows, m->stride);
    m->logits = cut_floats(c, (size_t)m->slice * m->stride);
    m->x = cut(c, rows, sizeof *m->x);
    m->y = cut(c, rows, sizeof *m->y);
    m->tokens.order = cut(c, rows, sizeof *m->x);
    m->tokens.start = cut(c, rows + 1, sizeof *m->x);
    m->tokens.token = cut(c, rows, sizeof *m->x);
}

size_t cuda_state_lay(struct cuda_model *m, char *block)
{
    const struct model_job *job = &m->job;
    struct cutter c = {.block = block};
    size_t rows = (size_t)job->batch * (size_t)job->tokens;
    size_t size = dtype_bytes(job->precision);
    m->weights =
        job->precision == DTYPE_F32 ? job->params : cut(&c, m->nparams, size);
    m->grads = job->train && job->precision == DTYPE_F16
                   ? cut_floats(&c, m->nparams)
                   : job->grads;
    lay_layers(m, &c, rows, size);
    lay_scratch(m, &c, rows, size);
    return c.used;
}
