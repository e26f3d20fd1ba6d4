// memory.c - what a step needs, as one block cut into pieces.
//
// A token of training costs, in numbers of the format (C = channels):
//
//     L * 10 C   kept by the layers    + 1 C the last residual
//     11 C       scratch: norm, branch, dres (C each), wide, dwide (4C each);
//                C more with dropout
//
// and fp32: the statistics of LayerNorm and softmax, L * (4 + NH) + 3. To these
// come a slice of logits, attention's scratch for each thread, and the weights:
// fp32 masters, gradients, a 16-bit copy in bf16 and fp16.

#include "model/state.h"

#include "base/base.h"
#include "base/rng.h"

#include <omp.h>

enum { SLICE_BYTES = 64 << 20, SLICE_ROWS = 64 };

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
    c->used = at + ((bytes + 63) & ~(size_t)63);
    return c->block ? c->block + at : NULL;
}

static float *cut_floats(struct cutter *c, size_t n)
{
    return cut(c, n, sizeof(float));
}

static void lay_layer(struct cutter *c, struct layer *l, size_t rows, size_t C,
                      size_t NH, size_t size)
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

static void lay_layers(struct cpu_model *m, struct cutter *c, size_t rows,
                       size_t size)
{
    const struct model_config *g = &m->job.config;
    struct layer l;
    m->layers = cut(c, g->layers, sizeof *m->layers);
    for (int i = 0; i < g->layers; i++) {
        if (i == 0 || m->job.train)
            lay_layer(c, &l, rows, g->channels, g->heads, size);
        if (!m->job.train)
            l.mid = l.in; // norm() adds in place
        if (m->layers)
            m->layers[i] = l;
    }
    m->last = m->job.train ? cut(c, rows * g->channels, size) : l.in;
}

// Scratch of products that widen: the largest a, b and out of a step.
static void lay_wide(struct cpu_model *m, struct cutter *c, size_t rows)
{
    const struct model_config *g = &m->job.config;
    size_t C = g->channels, V = g->vocab;
    size_t weight = 4 * C * C > V * C ? 4 * C * C : V * C;
    size_t logits = m->slice * V;
    size_t input = 4 * rows * C > logits ? 4 * rows * C : logits;
    m->products.wide_a = cut_floats(c, input);
    m->products.wide_b = cut_floats(c, weight > input ? weight : input);
    m->products.wide_out = cut_floats(c, 4 * rows * C);
}

// Scratch of products that turn a factor round, whose rows have up to 4C numbers.
static void lay_turned(struct cpu_model *m, struct cutter *c)
{
    struct product_scratch *s = &m->products;
    if (m->job.precision != DTYPE_F32)
        return;
    s->turned_rows = 4 * m->job.config.channels;
    s->turned = cut_floats(c, (size_t)s->turned_rows * PRODUCT_APART);
}

// A slice of logits is large enough to keep the product busy, and V * 4 bytes a
// row small enough to keep its share of memory small.
static int slice_rows(size_t rows, size_t V)
{
    size_t n = SLICE_BYTES / sizeof(float) / V / SLICE_ROWS * SLICE_ROWS;
    n = n < SLICE_ROWS ? SLICE_ROWS : n;
    return (int)(n < rows ? n : rows);
}

static void lay_scratch(struct cpu_model *m, struct cutter *c, size_t rows,
                        size_t size)
{
    const struct model_config *g = &m->job.config;
    size_t C = g->channels, V = g->vocab, n = rows * C;
    bool train = m->job.train, fp32 = m->job.precision == DTYPE_F32;
    m->mean = cut_floats(c, rows);
    m->rstd = cut_floats(c, rows);
    m->losses = cut_floats(c, rows);
    m->norm = cut(c, n, size);
    m->branch = cut(c, n, size);
    m->wide = cut(c, n, 4 * size);
    if (train) {
        m->dwide = cut(c, n, 4 * size);
        m->dres = cut(c, n, size);
        m->dbranch = g->dropout > 0 ? cut(c, n, size) : m->dres;
        lay_turned(m, c);
        m->partial = cut_floats(c, m->threads * 4 * partial_width((int)C));
    }
    m->slice = slice_rows(rows, V);
    m->logits = cut_floats(c, m->slice * V);
    m->dlogits = fp32 || !train ? m->logits : cut(c, m->slice * V, size);
    m->scratch =
        cut_floats(c, m->threads * attention_scratch(m->job.tokens, g->channels,
                                                     g->heads));
    if (product_widens(m->job.precision))
        lay_wide(m, c, rows);
}

size_t state_lay(struct cpu_model *m, char *block)
{
    const struct model_job *job = &m->job;
    struct cutter c = {.block = block};
    size_t rows = (size_t)job->batch * job->tokens;
    size_t size = dtype_bytes(job->precision);
    m->nparams = model_nparams(&job->config);
    m->off = cut(&c, model_ntensors(&job->config) + 1, sizeof *m->off);
    m->weights =
        job->precision == DTYPE_F32 ? job->params : cut(&c, m->nparams, size);
    m->grads = job->train && job->precision == DTYPE_F16
                   ? cut_floats(&c, m->nparams)
                   : job->grads;
    lay_layers(m, &c, rows, size);
    lay_scratch(m, &c, rows, size);
    return c.used;
}

int state_threads(const struct model_job *job)
{
    return job->threads > 0 ? job->threads : omp_get_num_procs();
}

struct mask state_mask(const struct cpu_model *m, const struct model_step *step,
                       int layer, enum site site)
{
    float rate = m->job.config.dropout;
    if (!step || rate <= 0)
        return (struct mask){.keep = 1};
    uint64_t key = rng_key(m->job.seed, (uint64_t)step->step);
    key = rng_key(key, (uint64_t)step->micro);
    key = rng_key(key, (uint64_t)layer * 4 + site);
    return (struct mask){.key = key,
                         .threshold = (uint32_t)((double)rate * 0x1p32),
                         .keep = 1 / (1 - rate)};
}

// What no formula of ours knows, measured: code, libraries and generated
// kernels of a process; a thread's stack and buffers; and the packed copies of
// its operands that dnnl_sgemm makes in each thread, up to a limit.
enum {
    PROCESS_BYTES = 11 << 20,
    THREAD_BYTES = 1 << 20,
    PACK_BYTES = 12 << 20
};

static size_t pack_bytes(const struct model_job *job)
{
    if (job->precision == DTYPE_BF16 && !product_widens(DTYPE_BF16))
        return 0;
    double rows = (double)job->batch * job->tokens;
    double operands = 2 * rows * 4 * job->config.channels * sizeof(float);
    return operands < PACK_BYTES ? (size_t)operands : PACK_BYTES;
}

size_t state_memory(const struct model_job *job)
{
    struct cpu_model m = {.job = *job, .threads = state_threads(job)};
    size_t state = state_lay(&m, NULL), vectors = job->train ? 2 : 1;
    return state + vectors * m.nparams * sizeof(float) + PROCESS_BYTES +
           (size_t)m.threads * (THREAD_BYTES + pack_bytes(job));
}
