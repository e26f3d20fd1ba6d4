// model_cuda.c - a model on a GPU: its memory, the table of its functions, and
// the one wait of a step.
//
//     host     queue forward, head | backward, bucket by bucket | wait: loss
//     GPU      ......... forward ......... head * ....... backward ........
//                                               loss to the host
//
// The host waits for the loss alone, which is known before backward begins. All
// of backward is in the queue by then, so the GPU is not idle while the host
// waits.

#include "model/cuda/forward_cuda.h"

#include "base/base.h"
#include "device/cuda.h"
#include "model/cuda/dnn_attention.h"
#include "model/cuda/peak.h"
#include "telemetry/span.h"

#include <string.h>

enum { LISTS = 5 }; // x, y, order, start, token

static const size_t process_bytes = (size_t)512 << 20; // libraries and driver
// Measured: how much the resident memory of a process grew when cuDNN 9.28
// planned both graphs for an H100. 142 MB of the growth are not pages of files.
static const size_t dnn_bytes = 300000000;

// ---- copies to the device and back

static void up(struct cuda_model *m, int32_t *to, const int32_t *from, size_t n)
{
    device_copy_on(m->dev, DEVICE_COMPUTE, to, from, n * sizeof *to);
}

// Copies the batch to the device through pinned memory. That memory is free
// again, because the previous step has waited for its loss, which the GPU
// computed after its copy.
static void send_batch(struct cuda_model *m, const int32_t *x, const int32_t *y,
                       size_t n)
{
    int32_t *hx = m->host_ints, *hy = hx + n;
    memcpy(hx, x, n * sizeof *hx);
    up(m, m->x, hx, n);
    if (!y)
        return;
    memcpy(hy, y, n * sizeof *hy);
    up(m, m->y, hy, n);
}

static void send_tokens(struct cuda_model *m, const int32_t *x, size_t n)
{
    int32_t *order = m->host_ints + 2 * n, *start = order + n;
    int32_t *token = start + n + 1;
    int kinds = cuda_tokens_sort(order, start, token, m->kinds, x, (int)n);
    m->tokens.kinds = kinds;
    up(m, m->tokens.order, order, n);
    up(m, m->tokens.start, start, (size_t)kinds + 1);
    up(m, m->tokens.token, token, (size_t)kinds);
}

static void ask_loss(struct cuda_model *m)
{
    device_copy_on(m->dev, DEVICE_COMPUTE, m->host_loss, m->mean_loss,
                   sizeof *m->host_loss);
    device_record(m->dev, &m->loss_known, DEVICE_COMPUTE);
}

static int read_loss(struct cuda_model *m, float *loss)
{
    if (device_wait(m->dev, &m->loss_known))
        return -1;
    *loss = *m->host_loss;
    return 0;
}

static void cast_weights(struct cuda_model *m)
{
    cuda_cast(m->queue, m->weights, m->job.precision, m->job.params, DTYPE_F32,
              1, m->nparams);
}

// ---- open and close

static int check_gpu(const struct model *model)
{
    const struct model_job *job = &model->job;
    const struct model_config *g = &job->config;
    int capability = cuda_capability(job->dev), head = g->channels / g->heads;
    if (job->precision == DTYPE_BF16 && capability < 80)
        return fail("model: %s has compute capability %d.%d, bf16 needs 8.0; "
                    "try: precision=fp16",
                    cuda_name(job->dev), capability / 10, capability % 10);
    if (g->channels % 8 || g->channels > CUDA_MAX_CHANNELS)
        return fail("model: channels %d; on a GPU: a multiple of 8, at most %d",
                    g->channels, CUDA_MAX_CHANNELS);
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

static int open_host(struct cuda_model *m)
{
    size_t rows = (size_t)m->job.batch * (size_t)m->job.tokens;
    size_t layers = (size_t)m->job.config.layers;
    m->off =
        mem_alloc((size_t)model_ntensors(&m->job.config) + 1, sizeof *m->off);
    m->layers = mem_alloc(layers, sizeof *m->layers);
    m->gelu = mem_alloc(layers, sizeof *m->gelu);
    m->host_ints =
        device_host_alloc(m->dev, LISTS * (rows + 1), sizeof *m->host_ints);
    m->host_loss = device_host_alloc(m->dev, 1, sizeof *m->host_loss);
    m->kinds = mem_alloc((size_t)m->job.config.vocab + 1, sizeof *m->kinds);
    if (!m->off || !m->layers || !m->gelu || !m->host_ints || !m->host_loss ||
        !m->kinds)
        return -1;
    layers_offsets(&m->job.config, m->off);
    return device_event_open(m->dev, &m->loss_known);
}

static void ignore(void *ctx, size_t off)
{
    (void)ctx, (void)off;
}

// Computes a step whose results nobody uses, so that every product of a step is
// timed before training. If backward leaves multiprocessors to collectives
// while gradients travel, a second step has the products that do so. Returns 0,
// or -1 after fail().
static int time_products(struct cuda_model *m)
{
    size_t rows = (size_t)m->job.batch * (size_t)m->job.tokens;
    int32_t *x = mem_alloc(rows, sizeof *x);
    int rc = x ? 0 : -1;
    for (size_t i = 0; !rc && i < rows; i++)
        x[i] = (int32_t)(i % (size_t)m->job.config.vocab);
    if (!rc && m->job.precision != DTYPE_F32)
        cast_weights(m);
    for (int spares = 0; !rc && spares <= (m->job.spared > 0); spares++) {
        struct model_step s = {.x = x,
                               .y = x,
                               .scale = 1,
                               .watermark = spares ? ignore : NULL};
        send_batch(m, x, x, rows);
        send_tokens(m, x, rows);
        cuda_forward(m, m->job.batch, m->job.tokens, &s);
        cuda_head(m, rows, &s);
        cuda_backward(m, &s);
        rc = device_finish(m->dev);
    }
    mem_free(x);
    return rc;
}

// Tries the plans in the memory of the first layer, which nothing uses yet.
static int open_dnn(struct cuda_model *m)
{
    const struct model_job *job = &m->job;
    const struct layer *l = &m->layers[0];
    struct cuda_attention a =
        cuda_attention_at(m, job->batch, job->tokens, NULL, 0);
    if (dnn_attention_open(&m->dnn, m->dev, &a, job->train))
        return -1;
    return job->train ? dnn_attention_try(m->dnn, m->dwide, m->row_sum,
                                          m->branch, l->att, l->lse, l->qkv)
                      : dnn_attention_try(m->dnn, NULL, NULL, NULL, l->att,
                                          l->lse, l->qkv);
}

static int cuda_open(struct model *model)
{
    const struct model_job *job = &model->job;
    CHECK(!job->cudnn || job->config.dropout == 0);
    if (check_gpu(model))
        return -1;
    struct cuda_model *m = mem_alloc(1, sizeof *m);
    if (!m)
        return -1;
    model->state = m;
    *m = (struct cuda_model){
        .job = *job,
        .dev = job->dev,
        .queue = device_handle(job->dev, DEVICE_COMPUTE),
        .nparams = model_nparams(&job->config),
    };
    m->job.tf32 = job->tf32 && cuda_capability(job->dev) >= 80;
    if (open_host(m))
        return -1;
    m->block = device_alloc(m->dev, cuda_state_layout(m, NULL), 1);
    if (!m->block)
        return -1;
    cuda_state_layout(m, m->block);
    model->copy.at = m->weights;
    if (cuda_product_open(&m->product, m->dev, job->precision, m->job.tf32,
                          m->partial) ||
        cuda_product_time(m->product, job->tune))
        return -1;
    if (job->cudnn && open_dnn(m))
        return -1;
    return job->tune && job->train ? time_products(m) : 0;
}

static void cuda_close(struct model *model)
{
    struct cuda_model *m = model->state;
    if (!m)
        return;
    device_finish(m->dev);
    dnn_attention_close(&m->dnn);
    cuda_product_close(&m->product);
    device_event_close(m->dev, &m->loss_known);
    device_free(m->dev, m->block);
    device_host_free(m->dev, m->host_loss);
    device_host_free(m->dev, m->host_ints);
    mem_free(m->kinds);
    mem_free(m->gelu);
    mem_free(m->layers);
    mem_free(m->off);
    mem_free(m);
}

// Only the process itself: vectors and activations are in the GPU's memory.
static void cuda_memory(const struct model_job *job, struct model_bytes *out)
{
    size_t dnn = job->cudnn ? dnn_bytes : 0;
    *out = (struct model_bytes){.process = process_bytes + dnn};
}

// ---- the functions of model_ops

static void cuda_params_changed(struct model *model)
{
    cast_weights(model->state);
}

static int cuda_model_forward(struct model *model, const struct model_step *s,
                              const struct model_pass *p)
{
    struct cuda_model *m = model->state;
    int B = m->job.batch, T = m->job.tokens;
    size_t rows = (size_t)B * (size_t)T;
    (void)p;
    send_batch(m, s->x, s->y, rows);
    cuda_forward(m, B, T, s);
    send_tokens(m, s->x, rows); // the host sorts while the GPU computes forward
    return 0;
}

static int cuda_model_backward(struct model *model, const struct model_step *s,
                               const struct model_pass *p, float *loss)
{
    struct cuda_model *m = model->state;
    size_t rows = (size_t)m->job.batch * (size_t)m->job.tokens;
    (void)p;
    span_begin(s->lane, SPAN_FORWARD, -1);
    cuda_head(m, rows, s);
    ask_loss(m);
    span_end(s->lane);
    cuda_backward(m, s);
    return read_loss(m, loss);
}

static int cuda_eval(struct model *model, const struct model_pass *p,
                     const int32_t *x, const int32_t *y, int batch, float *loss)
{
    struct cuda_model *m = model->state;
    int T = m->job.tokens;
    size_t rows = (size_t)batch * (size_t)T;
    (void)p;
    send_batch(m, x, y, rows);
    cuda_forward(m, batch, T, NULL);
    cuda_head(m, rows, NULL);
    ask_loss(m);
    return read_loss(m, loss);
}

static int cuda_logits(struct model *model, const int32_t *x, int n,
                       float *logits)
{
    struct cuda_model *m = model->state;
    size_t bytes = (size_t)m->job.config.vocab * sizeof *logits;
    send_batch(m, x, NULL, (size_t)n);
    cuda_forward(m, 1, n, NULL);
    cuda_head_logits(m, (size_t)n - 1, 1, true);
    return device_copy(m->dev, logits, m->logits, bytes);
}

const struct model_ops model_cuda = {
    .device = "cuda",
    .open = cuda_open,
    .params_changed = cuda_params_changed,
    .forward = cuda_model_forward,
    .backward = cuda_model_backward,
    .eval = cuda_eval,
    .logits = cuda_logits,
    .memory = cuda_memory,
    .peak = cuda_peak,
    .close = cuda_close,
};
