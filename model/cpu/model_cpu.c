// model_cpu.c - a model in host memory: its threads, its scratch, and the table
// of its functions.

#include "model/ops.h"

#include "base/base.h"
#include "model/cpu/product.h"
#include "model/pieces.h"
#include "model/state.h"

#include <omp.h>
#include <string.h>

enum { SLICE_BYTES = 64 << 20, SLICE_ROWS = 64, LINE = 64 };

// What only a model on the CPU has.
struct cpu {
    struct product *product;
    struct product_scratch scratch;
};

// ---- memory

// Scratch of products that cast to fp32: the largest a, b and out of a step.
static void layout_wide(struct model *m, struct arena *a, size_t rows)
{
    struct product_scratch *s = &((struct cpu *)m->own)->scratch;
    size_t C = m->job.config.channels, V = m->words.n;
    size_t weight = 4 * C * C > V * C ? 4 * C * C : V * C;
    size_t logits = m->slice * V;
    size_t input = 4 * rows * C > logits ? 4 * rows * C : logits;
    s->wide_a = arena_floats(a, input);
    s->wide_b = arena_floats(a, weight > input ? weight : input);
    s->wide_out = arena_floats(a, 4 * rows * C);
}

// The number of rows of logits that the head computes at a time: enough to keep
// the product busy, and few enough that they take about SLICE_BYTES.
static int slice_rows(size_t rows, size_t V)
{
    size_t n = SLICE_BYTES / sizeof(float) / V / SLICE_ROWS * SLICE_ROWS;
    n = n < SLICE_ROWS ? SLICE_ROWS : n;
    return (int)(n < rows ? n : rows);
}

static void cpu_layout(struct model *m, struct arena *a, size_t rows)
{
    const struct model_job *job = &m->job;
    const struct model_config *g = &job->config;
    struct product_scratch *s = &((struct cpu *)m->own)->scratch;
    bool fp32 = job->precision == DTYPE_F32;
    // From the words of the largest slice, so that all exchange the same rows.
    int most = part_even(g->vocab, at_least_one(g->part.slices), 0).n;
    m->slice = slice_rows(rows, (size_t)most);
    m->stride = (size_t)m->words.n;
    m->wide_logits = true;
    size_t logits = m->slice * m->stride;
    m->logits = arena_floats(a, logits);
    m->dlogits = fp32 || !job->train
                     ? m->logits
                     : arena_alloc(a, logits, dtype_bytes(job->precision));
    m->scratch =
        arena_floats(a, m->threads * attention_scratch(pieces_longest(job),
                                                       g->channels, g->heads));
    if (job->train)
        m->partial =
            arena_floats(a, m->threads * 4 * partial_width(g->channels));
    if (job->train && fp32) { // products transpose a factor: up to 4C rows
        s->transposed_rows = 4 * g->channels;
        s->transposed =
            arena_floats(a, (size_t)s->transposed_rows * PRODUCT_APART);
    }
    if (product_casts_up(job->precision))
        layout_wide(m, a, rows);
}

static int thread_count(const struct model_job *job)
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

// The tables and tensors, the vectors, and the process itself.
static void cpu_memory(const struct model_job *job, struct model_bytes *out)
{
    struct cpu own = {.product = NULL};
    struct model m = {.job = *job,
                      .ops = &model_cpu,
                      .own = &own,
                      .threads = thread_count(job)};
    bool weights = !job->lent_weights, grads = job->train && !job->lent_grads;
    size_t tables, tensors;
    state_bytes(&m, &tables, &tensors);
    size_t vector = m.nparams * sizeof(float);
    size_t copy = weights && job->precision != DTYPE_F32 ? vector / 2 : 0;
    size_t settles = grads && job->precision == DTYPE_F16 ? vector : 0;
    *out = (struct model_bytes){
        .params = (weights ? vector : 0) + copy,
        .grads = (grads ? vector : 0) + settles,
        .activations = tables + tensors - copy - settles,
        .process = PROCESS_BYTES +
                   (size_t)m.threads * (THREAD_BYTES + pack_bytes(job)),
    };
}

// ---- open and close

static int cpu_open(struct model *m)
{
    struct cpu *own = mem_alloc(1, sizeof *own);
    size_t tables, tensors;
    m->own = own;
    m->k = kernels_find(m->job.precision);
    m->threads = thread_count(&m->job);
    if (!own || !m->k)
        return -1;
    state_bytes(m, &tables, &tensors);
    m->tables = mem_alloc(tables, 1);
    m->block = mem_alloc(tensors, 1);
    if (!m->tables || !m->block)
        return -1;
    state_place(m);
    return product_open(&own->product, m->k, &own->scratch);
}

static void cpu_close(struct model *m)
{
    struct cpu *own = m->own;
    if (own)
        product_close(&own->product);
    mem_free(m->block);
    mem_free(m->tables);
    mem_free(own);
}

// ---- a pass

// Sets the calling thread's number of threads to this model's. Returns the old
// number.
static int cpu_begin(struct model *m)
{
    int before = omp_get_max_threads();
    omp_set_num_threads(m->threads);
    return before;
}

static void cpu_end(struct model *m, int before)
{
    (void)m;
    omp_set_num_threads(before);
}

static void cpu_tokens(struct model *m, const int32_t *x, size_t rows)
{
    (void)rows;
    m->x = x;
}

static void cpu_targets(struct model *m, const int32_t *y, size_t rows)
{
    (void)rows;
    m->y = y;
}

static void cpu_product(struct model *m, const struct product_job *j)
{
    struct cpu *own = m->own;
    product_run(own->product, j);
    if (j->epilogue == EPILOGUE_BIAS_GRAD)
        m->k->sum_rows(j->bias_grad, j->b, (size_t)j->k, j->n, j->add,
                       m->partial);
}

static void cpu_ask_loss(struct model *m)
{
    (void)m; // it is in host memory
}

static float cpu_read_loss(struct model *m)
{
    return *m->mean_loss;
}

static void cpu_fetch(struct model *m, void *to, const void *from, size_t bytes)
{
    (void)m;
    memcpy(to, from, bytes);
}

const struct model_ops model_cpu = {
    .device = "cpu",
    .line = LINE,
    .open = cpu_open,
    .close = cpu_close,
    .layout = cpu_layout,
    .begin = cpu_begin,
    .end = cpu_end,
    .tokens = cpu_tokens,
    .targets = cpu_targets,
    .product = cpu_product,
    .ask_loss = cpu_ask_loss,
    .read_loss = cpu_read_loss,
    .fetch = cpu_fetch,
    .memory = cpu_memory,
};
