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

static void lay_scratch(struct cuda_model *m, struct cutter *c, size_t rows,
                        size_t size)
{
    const struct model_config *g = &m->job.config;
    size_t C = (size_t)g->channels, n = rows * C;
    void *gelu = NULL;
    m->mean = cut_floats(c, rows);
    m->rstd = cut_floats(c, rows);
    m->losses = cut_floats(c, rows);
    m->mean_loss = cut_floats(c, 1);
    m->norm = cut(c, n, size);
    m->branch = cut(c, n, size);
    for (int i = 0; i < g->layers; i++) {
        bool own = i == 0 || (m->job.train && !m->job.recompute);
        gelu = own ? cut(c, n, 4 * size) : gelu;
        if (m->gelu)
            m->gelu[i] = gelu;
    }
    if (m->job.train) {
        m->dwide = cut(c, n, 4 * size);
        m->dres = cut(c, n, size);
        m->dbranch = g->dropout > 0 ? cut(c, n, size) : m->dres;
        m->partial = cut_floats(c, cuda_partial(g->channels));
        m->row_sum = cut_floats(c, rows * (size_t)g->heads);
    }
    m->stride = ((size_t)g->vocab + LINE - 1) / LINE * LINE;
    CHECK(m->stride * C <= m->nparams); // head_cuda.c reads rows after wte
    m->slice = slice_rows(rows, m->stride * size);
    size_t logits = (size_t)m->slice * m->stride * size;
    size_t one = m->stride * sizeof(float); // a row in fp32, for sampling
    m->logits = cut(c, logits > one ? logits : one, 1);
    m->x = cut(c, rows, sizeof *m->x);
    m->y = cut(c, rows, sizeof *m->y);
    m->tokens.order = cut(c, rows, sizeof *m->x);
    m->tokens.start = cut(c, rows + 1, sizeof *m->x);
    m->tokens.token = cut(c, rows, sizeof *m->x);
}

size_t cuda_state_lay(struct cuda_model *m, char *block)
{
    const struct model_job *job = &m->job;
    struct cutter c = {.block = block, .line = 256};
    size_t rows = (size_t)job->batch * (size_t)job->tokens;
    size_t size = dtype_bytes(job->precision);
    m->weights =
        job->precision == DTYPE_F32 ? job->params : cut(&c, m->nparams, size);
    m->grads = job->train && job->precision == DTYPE_F16
                   ? cut_floats(&c, m->nparams)
                   : job->grads;
    struct layer shared = {.in = NULL};
    m->last = cut_room(&c, job, 0, &shared, block ? m->layers : NULL);
    lay_scratch(m, &c, rows, size);
    return c.used;
}
