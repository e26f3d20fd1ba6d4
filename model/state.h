// state.h - everything that a model holds between open and close.
//
// All of it is in one block of memory. state_layout() lays it out;
// state_memory() calls the same function without the block, so the predicted
// size is exact.
//
// A `void *` tensor holds numbers in the model's format. N = B*T rows.

#ifndef MODEL_STATE_H
#define MODEL_STATE_H

#include "model/cpu/kernels.h"
#include "model/cpu/product.h"
#include "model/layers.h"
#include "model/part.h"

struct cpu_model {
    struct model_job job;
    int threads;
    const struct kernels *k;
    struct product *product;
    size_t nparams;
    // A slice has only its share of these three:
    int width,          // columns of q: C
        inner;          // columns between the MLP's products: 4C
    struct words words; // the vocabulary
    size_t *off; // where each tensor begins in the flat vector; then nparams
    char *block; // the memory of everything below

    // The weights that products read: job.params in fp32, else a 16-bit copy;
    // NULL if they are lent.
    void *weights;
    // Where products write this step's gradients: in fp16 a vector of its own,
    // from which settle() rounds them to fp16 into job.grads; else job.grads
    // itself. NULL if gradients are lent: then products write to the lent
    // blocks, and in fp16 settle() rounds these in place.
    float *grads;
    struct model_place *places; // where each block is now

    struct layer *all_layers; // (slots, L); see layers_layout()
    void **ends;              // by slot: (N, C), residual stream at the end
    void **inputs, **edges;   // (N, C) each; struct model_pass selects one
    float *mean, *rstd;       // (N) of ln_f
    int normed;               // slot whose ln_f output is in m->norm; -1: none

    // Set by state_begin_pass():
    struct layer *layers; // (L) of the slot
    int from, to;         // the layers of the chunk: [from, to)
    void *last;           // (N, C)  the residual stream after them
    void *dres;           // (N, C)  gradient of the residual stream

    void *norm;   // (N, C)  LayerNorm's output, which products read
    void *branch; // (N, C)  a branch before its addition; gradients in backward
    float *sum;   // (N, C)  this slice's part of branch, before join(); in fp32
                  //         the same memory as branch; NULL without slices
    void *wide;   // (N, inner) GELU's output; with recompute it replaces GELU's
                  //         input
    void *dwide;  // (N, inner) gradient of pre, or (N, 3 width) of qkv
    void *dbranch; // (N, C)  dres times dropout's mask; NULL without dropout
    float *logits; // (slice, words)
    void *dlogits; // (slice, words); in fp32 the same memory as logits
    float *losses; // (N) loss of every row
    struct loss_part *parts; // (slices, slice) of loss; NULL without slices
    float *scratch;          // attention's, a piece for each thread
    float *partial; // scratch of norm_backward, sum_rows: (threads, 4C), padded
    struct product_scratch products;
    int slice; // rows of logits worked on at a time
};

// Lays out m's tensors in the memory at `block`, by m->job and m->threads. If
// block is NULL, only counts. Returns the number of bytes.
size_t state_layout(struct cpu_model *m, char *block);

// model_memory() on the CPU: the block, the vectors, and the process itself.
void state_memory(const struct model_job *job, struct model_bytes *out);

// The number of threads that job asks for.
int state_threads(const struct model_job *job);

// Where a tensor begins in its block, in elements.
static inline size_t in_block(const struct cpu_model *m, int tensor)
{
    return m->off[tensor] - m->off[block_first(block_of(tensor))];
}

// The weights of a tensor. Tensor 0 is wte, 1 is wpe, then come the layers' and
// ln_f's.
static inline const void *weight_at(const struct cpu_model *m, int tensor)
{
    const struct model_place *p = &m->places[block_of(tensor)];
    size_t size = dtype_bytes(m->job.precision);
    return (const char *)p->weights + in_block(m, tensor) * size;
}

// The gradient of a tensor.
static inline float *grad_at(const struct cpu_model *m, int tensor)
{
    return m->places[block_of(tensor)].grads + in_block(m, tensor);
}

// Whether backward's products add to the gradients that are there. In fp16 they
// do not: settle() adds later.
static inline bool adds_grads(const struct cpu_model *m,
                              const struct model_step *step)
{
    return step->accumulate && m->job.precision != DTYPE_F16;
}

// Take block b from the lender, if there is one, and give it back. Both return
// 0, or -1 after fail().
static inline int block_take(struct cpu_model *m, int b, bool backward)
{
    const struct model_lender *l = m->job.lender;
    return l ? l->take(l->ctx, b, backward, &m->places[b]) : 0;
}
static inline int block_give(const struct cpu_model *m, int b)
{
    const struct model_lender *l = m->job.lender;
    return l ? l->give(l->ctx, b) : 0;
}

// The bias that the pass after a product adds; NULL if the product adds it. In
// fp32 the pass does, because the product would write the bias to its output
// first and read it again. In 16 bits the product adds the bias before it
// rounds.
static inline const void *late_bias(const struct cpu_model *m, int tensor)
{
    return m->job.precision == DTYPE_F32 ? weight_at(m, tensor) : NULL;
}

// The same for a product whose result is summed over slices. There each slice
// would add the bias, so the pass after the sum always adds it.
static inline const void *branch_bias(const struct cpu_model *m, int tensor)
{
    return m->sum ? weight_at(m, tensor) : late_bias(m, tensor);
}

// branch_product() computes m->branch, from row `row` on. With slices it
// computes this worker's part in m->sum; after the last row, branch_join() sums
// the parts of all workers into m->branch. branch_join() returns 0, or -1 after
// fail().
static inline void branch_product(struct cpu_model *m, struct product_job *j,
                                  size_t row)
{
    size_t size = m->sum ? sizeof(float) : dtype_bytes(m->job.precision);
    void *out = m->sum ? m->sum : m->branch;
    j->out = (char *)out + row * m->job.config.channels * size;
    j->out_fp32 = m->sum != NULL;
    product_run(m->product, j);
}
static inline int branch_join(struct cpu_model *m, size_t rows)
{
    const struct model_slices *s = m->job.slices;
    size_t n = rows * m->job.config.channels;
    if (!m->sum)
        return 0;
    if (s->join(s->ctx, m->sum, n))
        return -1;
    if (m->sum != m->branch)
        m->k->cast_down(m->branch, m->sum, n);
    return 0;
}

// forward.c: sets the layers and buffers that forward and backward use.
void state_begin_pass(struct cpu_model *m, const struct model_pass *p);

// forward.c: computes the pass's layers for B sequences of T tokens. Writes the
// residual stream after them to m->last and, if they end the model, ln_f's
// output to m->norm. With step NULL there is no dropout. Returns 0, or -1 after
// fail().
int forward(struct cpu_model *m, const struct model_pass *p, const int32_t *x,
            int B, int T, const struct model_step *step);

// forward.c: the input of a layer's attention for B sequences of T tokens.
struct attention state_attention(const struct cpu_model *m, int B, int T,
                                 const struct model_step *step, int layer);

// forward.c: computes ln_f's output from m->last again, into m->norm.
void norm_again(struct cpu_model *m);

// forward.c: computes again what backward needs of layer i, from the residual
// stream at its entry. The bits are those of the step's forward. Overwrites
// m->norm and m->branch. Returns 0, or -1 after fail().
int forward_again(struct cpu_model *m, int i, const struct model_step *step);

// head.c: *loss = the mean loss of the first `rows` rows of m->norm. With a
// step it also writes the gradient of m->norm to m->branch and the head's share
// of wte's gradient. Returns 0, or -1 after fail().
int head(struct cpu_model *m, const int32_t *y, size_t rows,
         const struct model_step *step, float *loss);

// head.c: m->logits = the logits of `rows` <= m->slice rows of m->norm, from
// row `row` on.
void head_logits(struct cpu_model *m, size_t row, int rows);

// Whether the pass's layers are the first of the model, and whether they are
// its last.
static inline bool is_first(const struct cpu_model *m)
{
    return m->from == 0 && part_embeds(&m->job.config);
}
static inline bool is_last(const struct cpu_model *m)
{
    return m->to == m->job.config.layers && part_has_head(&m->job.config);
}

// backward.c: computes the gradients of the pass's layers. It begins with
// m->branch if they end the model, else with m->dres, and leaves the gradient
// of their input in m->dres. Returns 0, or -1 after fail().
int backward(struct cpu_model *m, const struct model_step *step);

#endif
