// memory.c - the layout of all memory that a step needs, in one block.
//
// A token of training costs, in numbers of the format (C = channels):
//
//     L * 10 C   kept by the layers, + C for the residual stream at the end
//     L C + 9 C  instead of L * 10 C, with recompute
//     11 C       scratch: norm, branch, dres (C each), wide, dwide (4C each);
//                + C with dropout; - 4C with recompute, where wide is pre
//
// Slices divide 8 C of a layer's 10 C, and wide and dwide. Sums over slices are
// computed in a vector of the trainer, which in fp32 is also branch.
//
// A stage of a pipeline has the first line once for each activation slot, C
// numbers for each input, and a dres for each edge.
//
// The statistics of LayerNorm and softmax are L * (4 + NH) + 3 numbers of fp32
// a token. There are also some rows of logits, attention's scratch for each
// thread, and the weights: fp32 masters, gradients, a 16-bit copy in bf16 and
// fp16. A block that is lent is in the lender's memory.

#include "model/state.h"

#include "base/base.h"

#include <omp.h>

enum { SLICE_BYTES = 64 << 20, SLICE_ROWS = 64 };

// Scratch of products that cast to fp32: the largest a, b and out of a step.
static void layout_wide(struct cpu_model *m, struct arena *a, size_t rows)
{
    const struct model_config *g = &m->job.config;
    size_t C = g->channels, V = m->words.n;
    size_t weight = 4 * C * C > V * C ? 4 * C * C : V * C;
    size_t logits = m->slice * V;
    size_t input = 4 * rows * C > logits ? 4 * rows * C : logits;
    m->products.wide_a = arena_floats(a, input);
    m->products.wide_b = arena_floats(a, weight > input ? weight : input);
    m->products.wide_out = arena_floats(a, 4 * rows * C);
}

// Scratch of products that transpose a factor: up to 4C rows.
static void layout_transposed(struct cpu_model *m, struct arena *a)
{
    struct product_scratch *s = &m->products;
    if (m->job.precision != DTYPE_F32)
        return;
    s->transposed_rows = 4 * m->job.config.channels;
    s->transposed = arena_floats(a, (size_t)s->transposed_rows * PRODUCT_APART);
}

// The number of rows of logits that the head computes at a time: enough to keep
// the product busy, and few enough that they take about SLICE_BYTES.
static int slice_rows(size_t rows, size_t V)
{
    size_t n = SLICE_BYTES / sizeof(float) / V / SLICE_ROWS * SLICE_ROWS;
    n = n < SLICE_ROWS ? SLICE_ROWS : n;
    return (int)(n < rows ? n : rows);
}

// Words of the largest slice of the vocabulary. All slices compute slice_rows()
// from it, so that they exchange the same rows.
static size_t most_words(const struct model_config *g)
{
    struct model_config first = *g;
    first.part.slice = 0;
    return (size_t)part_words(&first).n;
}

// The job of a whole model has 0 slots and 0 edges, but needs one of each.
static int at_least_one(int n)
{
    return n > 0 ? n : 1;
}

// all[i] = piece. `all` is NULL if memory is only counted.
static void set_place(void **all, int i, void *piece)
{
    if (all)
        all[i] = piece;
}

static void layout_slots(struct cpu_model *m, struct arena *a)
{
    const struct model_job *job = &m->job;
    size_t rows = (size_t)job->batch * job->tokens, C = job->config.channels;
    int L = job->config.layers, slots = at_least_one(job->slots);
    struct layer shared = {.in = NULL};
    m->all_layers = arena_alloc(a, (size_t)slots * L, sizeof *m->all_layers);
    m->ends = arena_alloc(a, slots, sizeof *m->ends);
    m->inputs = arena_alloc(a, job->inputs, sizeof *m->inputs);
    m->edges = arena_alloc(a, at_least_one(job->edges), sizeof *m->edges);
    for (int r = 0; r < slots; r++) {
        struct layer *layers = m->all_layers ? m->all_layers + r * L : NULL;
        set_place(m->ends, r, layers_layout(a, job, r, &shared, layers));
    }
    for (int i = 0; i < job->inputs; i++)
        set_place(m->inputs, i,
                  arena_alloc(a, rows * C, dtype_bytes(job->precision)));
}

static void layout_scratch(struct cpu_model *m, struct arena *a, size_t rows,
                           size_t size)
{
    const struct model_config *g = &m->job.config;
    size_t C = g->channels, n = rows * C, wide = rows * m->inner;
    size_t qkv = rows * 3 * m->width, words = m->words.n;
    bool train = m->job.train, fp32 = m->job.precision == DTYPE_F32;
    m->mean = arena_floats(a, rows);
    m->rstd = arena_floats(a, rows);
    m->losses = arena_floats(a, rows);
    m->norm = arena_alloc(a, n, size);
    m->sum = m->job.slices ? m->job.slices->sum : NULL;
    m->branch = m->job.slices && fp32 ? m->sum : arena_alloc(a, n, size);
    if (!train || !m->job.recompute)
        m->wide = arena_alloc(a, wide, size);
    else if (m->all_layers) // GELU in place: backward computes its input again
        m->wide = m->all_layers->pre;
    if (train) {
        m->dwide = arena_alloc(a, wide > qkv ? wide : qkv, size);
        for (int i = 0; i < at_least_one(m->job.edges); i++)
            set_place(m->edges, i, arena_alloc(a, n, size));
        m->dbranch = g->dropout > 0 ? arena_alloc(a, n, size) : NULL;
        layout_transposed(m, a);
        m->partial = arena_floats(a, m->threads * 4 * partial_width((int)C));
    }
    m->slice = slice_rows(rows, most_words(g));
    m->logits = arena_floats(a, m->slice * words);
    m->dlogits =
        fp32 || !train ? m->logits : arena_alloc(a, m->slice * words, size);
    if (m->job.slices)
        m->parts =
            arena_alloc(a, (size_t)g->part.slices * m->slice, sizeof *m->parts);
    m->scratch =
        arena_floats(a, m->threads * attention_scratch(m->job.tokens,
                                                       g->channels, g->heads));
    if (product_casts_up(m->job.precision))
        layout_wide(m, a, rows);
}

size_t state_layout(struct cpu_model *m, char *block)
{
    const struct model_job *job = &m->job;
    struct arena a = {.block = block, .line = 64};
    size_t rows = (size_t)job->batch * job->tokens;
    size_t size = dtype_bytes(job->precision);
    struct part_share words = part_words(&job->config);
    m->nparams = model_nparams(&job->config);
    m->width =
        job->config.channels / job->config.heads * part_heads(&job->config).n;
    m->inner = part_inner(&job->config).n;
    m->words = (struct words){words.first, words.n};
    m->off = arena_alloc(&a, model_ntensors(&job->config) + 1, sizeof *m->off);
    bool copied = job->precision != DTYPE_F32 && !job->lent_weights;
    bool aside = job->precision == DTYPE_F16 && job->train && !job->lent_grads;
    m->weights = copied ? arena_alloc(&a, m->nparams, size) : job->params;
    m->grads = aside ? arena_floats(&a, m->nparams) : job->grads;
    m->places = arena_alloc(&a, model_nblocks(&job->config), sizeof *m->places);
    layout_slots(m, &a);
    layout_scratch(m, &a, rows, size);
    return a.used;
}

int state_threads(const struct model_job *job)
{
    return job->threads > 0 ? job->threads : omp_get_num_procs();
}

// These were measured, since no formula gives them: the code, libraries and
// generated kernels of a process; a thread's stack and buffers; and the packed
// copies of its operands that dnnl_sgemm makes in each thread, up to a limit.
enum {
    PROCESS_BYTES = 11 << 20,
    THREAD_BYTES = 1 << 20,
    PACK_BYTES = 12 << 20
};

static size_t pack_bytes(const struct model_job *job)
{
    if (job->precision == DTYPE_BF16 && !product_casts_up(DTYPE_BF16))
        return 0;
    double rows = (double)job->batch * job->tokens;
    double operands = 2 * rows * 4 * job->config.channels * sizeof(float);
    return operands < PACK_BYTES ? (size_t)operands : PACK_BYTES;
}

void state_memory(const struct model_job *job, struct model_bytes *out)
{
    struct cpu_model m = {.job = *job, .threads = state_threads(job)};
    bool weights = !job->lent_weights, grads = job->train && !job->lent_grads;
    size_t block = state_layout(&m, NULL), vector = m.nparams * sizeof(float);
    size_t copy = weights && job->precision != DTYPE_F32 ? vector / 2 : 0;
    size_t settles = grads && job->precision == DTYPE_F16 ? vector : 0;
    *out = (struct model_bytes){
        .params = (weights ? vector : 0) + copy,
        .grads = (grads ? vector : 0) + settles,
        .activations = block - copy - settles,
        .process = PROCESS_BYTES +
                   (size_t)m.threads * (THREAD_BYTES + pack_bytes(job)),
    };
}
