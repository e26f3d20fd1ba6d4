// memory_cuda.c - the layout of all memory that a step needs on the GPU.
//
// It has the same tensors as on the CPU (model/memory.c), GELU's output of each
// layer, and a larger slice of rows of logits: a GPU needs more rows at a time
// to be busy.

#include "model/cuda/state_cuda.h"

#include "base/base.h"

static const size_t slice_bytes = (size_t)1 << 30; // of logits

enum { SLICE_ROWS = 128, LINE = 64 };

// Rows of a slice: as few slices as slice_bytes allows, of about equal size.
static int slice_rows(size_t rows, size_t row_bytes)
{
    size_t most = slice_bytes / row_bytes / SLICE_ROWS * SLICE_ROWS;
    most = most < SLICE_ROWS ? SLICE_ROWS : most;
    size_t slices = (rows + most - 1) / most;
    size_t n = (rows + slices - 1) / slices;
    n = (n + SLICE_ROWS - 1) / SLICE_ROWS * SLICE_ROWS;
    return (int)(n < rows ? n : rows);
}

static void layout_scratch(struct cuda_model *m, struct arena *a, size_t rows,
                           size_t size)
{
    const struct model_config *g = &m->job.config;
    size_t C = (size_t)g->channels, n = rows * C;
    void *gelu = NULL;
    m->mean = arena_floats(a, rows);
    m->rstd = arena_floats(a, rows);
    m->losses = arena_floats(a, rows);
    m->mean_loss = arena_floats(a, 1);
    m->norm = arena_alloc(a, n, size);
    m->branch = arena_alloc(a, n, size);
    for (int i = 0; i < g->layers; i++) {
        bool own = i == 0 || (m->job.train && !m->job.recompute);
        gelu = own ? arena_alloc(a, n, 4 * size) : gelu;
        if (m->gelu)
            m->gelu[i] = gelu;
    }
    if (m->job.train) {
        m->dwide = arena_alloc(a, n, 4 * size);
        m->dres = arena_alloc(a, n, size);
        m->dbranch = g->dropout > 0 ? arena_alloc(a, n, size) : m->dres;
        m->partial = arena_floats(a, cuda_partial(g->channels));
        m->row_sum = arena_floats(a, rows * (size_t)g->heads);
    }
    m->stride = ((size_t)g->vocab + LINE - 1) / LINE * LINE;
    CHECK(m->stride * C <= m->nparams); // head_cuda.c reads rows after wte
    m->slice = slice_rows(rows, m->stride * size);
    size_t logits = (size_t)m->slice * m->stride * size;
    size_t one = m->stride * sizeof(float); // a row in fp32, for sampling
    m->logits = arena_alloc(a, logits > one ? logits : one, 1);
    m->x = arena_alloc(a, rows, sizeof *m->x);
    m->y = arena_alloc(a, rows, sizeof *m->y);
    m->tokens.order = arena_alloc(a, rows, sizeof *m->x);
    m->tokens.start = arena_alloc(a, rows + 1, sizeof *m->x);
    m->tokens.token = arena_alloc(a, rows, sizeof *m->x);
}

size_t cuda_state_layout(struct cuda_model *m, char *block)
{
    const struct model_job *job = &m->job;
    struct arena a = {.block = block, .line = 256};
    size_t rows = (size_t)job->batch * (size_t)job->tokens;
    size_t size = dtype_bytes(job->precision);
    m->weights = job->precision == DTYPE_F32
                     ? job->params
                     : arena_alloc(&a, m->nparams, size);
    m->grads = job->train && job->precision == DTYPE_F16
                   ? arena_floats(&a, m->nparams)
                   : job->grads;
    struct layer shared = {.in = NULL};
    m->last = layers_layout(&a, job, 0, &shared, block ? m->layers : NULL);
    layout_scratch(m, &a, rows, size);
    return a.used;
}
