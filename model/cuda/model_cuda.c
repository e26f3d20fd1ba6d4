// model_cuda.c - a model on a GPU: its memory, its batches, and the table of
// its functions.

#include "model/ops.h"

#include "base/base.h"
#include "device/cuda.h"
#include "model/cuda/dnn_attention.h"
#include "model/cuda/kernels_cuda.h"
#include "model/cuda/peak.h"
#include "model/cuda/product_cuda.h"
#include "model/state.h"

#include <string.h>

static const size_t process_bytes = (size_t)512 << 20; // libraries and driver
// Measured: how much the resident memory of a process grew when cuDNN 9.28
// planned both graphs for an H100. 142 MB of the growth are not pages of files.
static const size_t dnn_bytes = 300000000;
static const size_t slice_bytes = (size_t)1 << 30; // of logits

// PADDED: rows of logits are padded to a multiple of so many numbers (head.c).
enum { SLICE_ROWS = 128, PADDED = 64, LINE = 256 };

// Numbers on their way to the device: in pinned memory of the host, until the
// device has copied them.
struct gpu_sent {
    int32_t *host;
    struct device_event copied;
};

struct gpu { // what only a model on a GPU has
    struct device *dev;
    struct cuda_model kernels; // what its kernels know of it
    struct cuda_product *product;
    int32_t *x, *y; // (N) on the device
    struct gpu_sent sent_x, sent_y, sent_tokens;
    int32_t *kinds; // (words) scratch of cuda_tokens_sort()
    float *host_loss;
    struct device_event loss_known;
};

// ---- memory

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

// A GPU needs more rows of logits at a time than a CPU to be busy. They are in
// the model's format, and their gradient replaces them.
static void layout_logits(struct model *m, struct arena *a, size_t rows)
{
    size_t size = dtype_bytes(m->job.precision), words = (size_t)m->words.n;
    m->stride = (words + PADDED - 1) / PADDED * PADDED;
    CHECK(m->stride * (size_t)m->job.config.channels <= m->nparams);
    m->slice = slice_rows(rows, m->stride * size);
    size_t logits = (size_t)m->slice * m->stride * size;
    size_t one = m->stride * sizeof(float); // a row in fp32, for sampling
    m->logits = arena_alloc(a, logits > one ? logits : one, 1);
    m->dlogits = m->logits;
}

static void gpu_layout(struct model *m, struct arena *a, size_t rows)
{
    struct gpu *g = m->own;
    layout_logits(m, a, rows);
    g->kernels.stride = m->stride;
    if (m->job.train) {
        m->partial = arena_floats(a, cuda_partial(m->job.config.channels));
        m->scratch = arena_floats(a, layers_scores(&m->job));
    }
    g->x = arena_alloc(a, rows, sizeof *g->x);
    g->y = arena_alloc(a, rows, sizeof *g->y);
    struct cuda_tokens *t = &g->kernels.tokens;
    t->order = arena_alloc(a, rows, sizeof *t->order);
    t->start = arena_alloc(a, rows + 1, sizeof *t->start);
    t->token = arena_alloc(a, rows, sizeof *t->token);
}

// Only the process itself: vectors and activations are in the GPU's memory.
static void gpu_memory(const struct model_job *job, struct model_bytes *out)
{
    size_t dnn = job->cudnn ? dnn_bytes : 0;
    *out = (struct model_bytes){.process = process_bytes + dnn};
}

// ---- a pass

// A kind is a token that occurs and whose row of the embedding is here. Kinds
// come in the order of their first row, and the rows of a kind in the order of
// the batch. The host makes two passes over the batch, while the GPU computes
// forward.
int cuda_tokens_sort(int32_t *order, int32_t *start, int32_t *token,
                     int32_t *scratch, const int32_t *x, int n,
                     struct words here)
{
    int kinds = 0, rows = 0;
    start[0] = 0;
    // scratch[word]: 1 + index of its kind
    for (int i = 0; i < n; i++) {
        int word = x[i] - here.first;
        if (word < 0 || word >= here.n)
            continue;
        int32_t *kind = &scratch[word];
        rows++;
        if (!*kind) {
            token[kinds] = word;
            *kind = ++kinds;
            start[kinds] = 0;
        }
        start[*kind]++;
    }
    for (int k = 0; k < kinds; k++)
        start[k + 1] += start[k];
    // start[k + 1] counts down from the end of kind k
    for (int i = n - 1; i >= 0; i--) {
        int word = x[i] - here.first;
        if (word >= 0 && word < here.n)
            order[--start[scratch[word]]] = i;
    }
    for (int k = 0; k < kinds; k++) {
        start[k] = start[k + 1];
        scratch[token[k]] = 0;
    }
    start[kinds] = rows;
    return kinds;
}

static int gpu_begin(struct model *m)
{
    const struct gpu *g = m->own;
    cuda_begin(&g->kernels);
    return 0;
}

static void gpu_end(struct model *m, int before)
{
    (void)m, (void)before;
    cuda_end();
}

// The memory of s, when the device has copied what it held. A step later it has
// long done so.
static int32_t *room(struct gpu *g, struct gpu_sent *s)
{
    device_wait(g->dev, &s->copied);
    return s->host;
}

static void send(struct gpu *g, int32_t *to, const int32_t *from, size_t n)
{
    device_copy_on(g->dev, DEVICE_COMPUTE, to, from, n * sizeof *to);
}

static void sent(struct gpu *g, struct gpu_sent *s)
{
    device_record(g->dev, &s->copied, DEVICE_COMPUTE);
}

static void send_rows(struct gpu *g, struct gpu_sent *s, int32_t *to,
                      const int32_t *from, size_t n)
{
    memcpy(room(g, s), from, n * sizeof *from);
    send(g, to, s->host, n);
    sent(g, s);
}

static void gpu_tokens(struct model *m, const int32_t *x, size_t rows)
{
    struct gpu *g = m->own;
    send_rows(g, &g->sent_x, g->x, x, rows);
    m->x = g->x;
}

static void gpu_targets(struct model *m, const int32_t *y, size_t rows)
{
    struct gpu *g = m->own;
    send_rows(g, &g->sent_y, g->y, y, rows);
    m->y = g->y;
}

static void gpu_group(struct model *m, const int32_t *x, size_t rows)
{
    struct gpu *g = m->own;
    struct cuda_tokens *t = &g->kernels.tokens;
    int32_t *order = room(g, &g->sent_tokens), *start = order + rows;
    int32_t *token = start + rows + 1;
    t->kinds =
        cuda_tokens_sort(order, start, token, g->kinds, x, (int)rows, m->words);
    send(g, t->order, order, rows);
    send(g, t->start, start, (size_t)t->kinds + 1);
    send(g, t->token, token, (size_t)t->kinds);
    sent(g, &g->sent_tokens);
}

static void gpu_product(struct model *m, const struct product_job *j)
{
    cuda_product_run(((struct gpu *)m->own)->product, j);
}

static void gpu_spare(struct model *m, bool travelling)
{
    cuda_product_leave(((struct gpu *)m->own)->product,
                       travelling ? m->job.spared : 0);
}

static void gpu_ask_loss(struct model *m)
{
    struct gpu *g = m->own;
    device_copy_on(g->dev, DEVICE_COMPUTE, g->host_loss, m->mean_loss,
                   sizeof *g->host_loss);
    device_record(g->dev, &g->loss_known, DEVICE_COMPUTE);
}

static float gpu_read_loss(struct model *m)
{
    struct gpu *g = m->own;
    device_wait(g->dev, &g->loss_known);
    return *g->host_loss;
}

static void gpu_fetch(struct model *m, void *to, const void *from, size_t bytes)
{
    device_copy(m->job.dev, to, from, bytes);
}

// ---- open and close

static int check_gpu(const struct model_job *job)
{
    const struct model_config *g = &job->config;
    int capability = cuda_capability(job->dev), head = g->channels / g->heads;
    if (job->precision == DTYPE_BF16 && capability < 80)
        return fail("model: %s has compute capability %d.%d, bf16 needs 8.0; "
                    "try: precision=fp16",
                    cuda_name(job->dev), capability / 10, capability % 10);
    if (g->channels % 8 || g->channels > CUDA_MAX_CHANNELS)
        return fail("model: channels %d; on a GPU: a multiple of 8, at most %d",
                    g->channels, CUDA_MAX_CHANNELS);
    int width = head * part_heads(g).n, inner = part_inner(g).n;
    if (width % 8 || inner % 8)
        return fail(
            "model: a slice has %d channels of heads and %d of the MLP; "
            "on a GPU: multiples of 8; try: another tp, or heads= and "
            "channels= that it divides",
            width, inner);
    if (head > CUDA_MAX_HEAD)
        return fail("model: a head has %d channels; on a GPU at most %d; try: "
                    "more heads",
                    head, CUDA_MAX_HEAD);
    if (job->batch > CUDA_MAX_GRID || g->heads > CUDA_MAX_GRID)
        return fail("model: %d sequences of %d heads; on a GPU at most %d of "
                    "each; try: a smaller batch and accum",
                    job->batch, g->heads, CUDA_MAX_GRID);
    return 0;
}

static int open_sent(struct gpu *g, struct gpu_sent *s, size_t n)
{
    s->host = device_host_alloc(g->dev, n, sizeof *s->host);
    return s->host ? device_event_open(g->dev, &s->copied) : -1;
}

static int open_host(struct gpu *g, const struct model_job *job)
{
    size_t rows = (size_t)job->batch * (size_t)job->tokens;
    g->host_loss = device_host_alloc(g->dev, 1, sizeof *g->host_loss);
    g->kinds = mem_alloc((size_t)job->config.vocab + 1, sizeof *g->kinds);
    if (!g->host_loss || !g->kinds || open_sent(g, &g->sent_x, rows) ||
        open_sent(g, &g->sent_y, rows) ||
        open_sent(g, &g->sent_tokens, 3 * rows + 1))
        return -1;
    return device_event_open(g->dev, &g->loss_known);
}

static void ignore(void *ctx, size_t off)
{
    (void)ctx, (void)off;
}

// Computes a step whose results nobody uses, so that every product of a step is
// timed before training. If backward leaves multiprocessors to collectives
// while gradients travel, a second step has the products that do so. Returns 0,
// or -1 after fail().
static int time_products(struct model *m)
{
    size_t rows = (size_t)m->job.batch * (size_t)m->job.tokens;
    int32_t *x = mem_alloc(rows, sizeof *x);
    int rc = x ? 0 : -1;
    float loss;
    for (size_t i = 0; !rc && i < rows; i++)
        x[i] = (int32_t)(i % (size_t)m->job.config.vocab);
    for (int spares = 0; !rc && spares <= (m->job.spared > 0); spares++) {
        struct model_step s = {.x = x,
                               .y = x,
                               .scale = 1,
                               .watermark = spares ? ignore : NULL};
        rc = model_train(m, &s, &loss);
        device_finish(m->job.dev);
    }
    mem_free(x);
    return rc;
}

// Tries the plans in the memory of the first layer, which nothing uses yet.
static int open_dnn(struct model *m)
{
    const struct model_job *job = &m->job;
    struct gpu *g = m->own;
    const struct layer *l = &m->all_layers[0];
    struct attention shape = state_attention(m, NULL, 0);
    if (dnn_attention_open(&g->kernels.dnn, g->dev, job->precision, &shape,
                           job->train))
        return -1;
    return job->train ? dnn_attention_try(g->kernels.dnn, m->dwide, m->scratch,
                                          m->branch, l->att, l->lse, l->qkv)
                      : dnn_attention_try(g->kernels.dnn, NULL, NULL, NULL,
                                          l->att, l->lse, l->qkv);
}

static int open_memory(struct model *m)
{
    size_t tables, tensors;
    state_bytes(m, &tables, &tensors);
    m->tables = mem_alloc(tables, 1);
    m->block = device_alloc(m->job.dev, tensors, 1);
    if (!m->tables || !m->block)
        return -1;
    state_place(m);
    return 0;
}

static int gpu_open(struct model *m)
{
    const struct model_job *job = &m->job;
    CHECK(!job->cudnn || job->config.dropout == 0);
    struct gpu *g = check_gpu(job) ? NULL : mem_alloc(1, sizeof *g);
    m->own = g;
    if (!g)
        return -1;
    m->k = &kernels_cuda;
    g->dev = job->dev;
    g->kernels =
        (struct cuda_model){.dev = job->dev,
                            .queue = device_handle(job->dev, DEVICE_COMPUTE),
                            .format = job->precision,
                            .tf32 =
                                job->tf32 && cuda_capability(job->dev) >= 80};
    if (open_host(g, job) || open_memory(m) ||
        cuda_product_open(&g->product, g->dev, job->precision, g->kernels.tf32,
                          m->partial) ||
        cuda_product_time(g->product, job->tune))
        return -1;
    return job->cudnn ? open_dnn(m) : 0;
}

// Without a lender's blocks there is nothing to multiply yet, and without other
// workers nothing can be exchanged: then the first step times its products.
static int gpu_ready(struct model *m)
{
    const struct model_job *job = &m->job;
    bool lent = job->lent_weights || job->lent_grads;
    bool alone = !lent && !job->slices && !job->pieces;
    return job->tune && job->train && alone ? time_products(m) : 0;
}

static void close_sent(struct gpu *g, struct gpu_sent *s)
{
    device_event_close(g->dev, &s->copied);
    device_host_free(g->dev, s->host);
}

static void gpu_close(struct model *m)
{
    struct gpu *g = m->own;
    if (!g)
        return;
    device_finish(g->dev);
    dnn_attention_close(&g->kernels.dnn);
    cuda_product_close(&g->product);
    device_event_close(g->dev, &g->loss_known);
    device_free(g->dev, m->block);
    device_host_free(g->dev, g->host_loss);
    close_sent(g, &g->sent_x);
    close_sent(g, &g->sent_y);
    close_sent(g, &g->sent_tokens);
    mem_free(m->tables);
    mem_free(g->kinds);
    mem_free(g);
}

const struct model_ops model_cuda = {
    .device = "cuda",
    .fused = true,
    .line = LINE,
    .open = gpu_open,
    .ready = gpu_ready,
    .close = gpu_close,
    .layout = gpu_layout,
    .begin = gpu_begin,
    .end = gpu_end,
    .tokens = gpu_tokens,
    .targets = gpu_targets,
    .group = gpu_group,
    .product = gpu_product,
    .spare = gpu_spare,
    .ask_loss = gpu_ask_loss,
    .read_loss = gpu_read_loss,
    .fetch = gpu_fetch,
    .memory = gpu_memory,
    .peak = cuda_peak,
};
