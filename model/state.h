// state.h - everything that a model holds between open and close, on every
// device.
//
// All tensors are in one block of the device's memory. state_layout() lays it
// out; state_bytes() calls the same function without the block, so the
// predicted size is exact.
//
// A `void *` tensor holds numbers in the model's format. N = B*T rows, and N'
// of them are own_rows. Tensors are in the device's memory, tables in the
// host's. On a GPU the functions here put work into the compute queue and do
// not wait for it.

#pragma once

#include "model/kernels.h"
#include "model/layers.h"
#include "model/ops.h"
#include "model/part.h"
#include "model/product_job.h"

struct model {
    struct model_job job;
    const struct model_ops *ops;
    const struct kernels *k;
    void *own;             // what only this device has
    struct half_copy copy; // of the weights; see model_copy()
    int threads;
    size_t nparams;
    // A slice has only its share of these three:
    int width,          // columns of q: C
        inner;          // columns between the MLP's products: 4C
    struct words words; // the vocabulary
    // The rows of the residual stream that this worker has in a pass: all of
    // them, or its share with model_slices.sequence.
    struct part_share own_rows;

    char *tables; // the host memory of these seven
    size_t *off;  // where each tensor begins in the flat vector; then nparams
    struct model_place *places; // where each block is now
    struct layer *all_layers;   // (slots, L); see layout_slot()
    void **ends;                // by slot: (N', C), residual stream at the end
    void **inputs, **edges;     // (N', C) each; struct model_pass selects one
    size_t *lengths;            // of the workers' chunks; see model_pieces

    char *block; // the device memory of everything below
    // The weights that products read: job.params in fp32, else a 16-bit copy;
    // NULL if they are lent.
    void *weights;
    // Where products write this step's gradients: in fp16 a vector of its own,
    // from which settle() rounds them to fp16 into job.grads; else job.grads
    // itself. NULL if gradients are lent: then products write to the lent
    // blocks, and in fp16 settle() rounds these in place.
    float *grads;
    float *mean, *rstd; // (N') of ln_f
    int normed;         // slot whose ln_f output is in m->norm; -1: none
    // With recompute: the layer whose results are in the shared memory; NULL:
    // none.
    const struct layer *filled;

    // Set at the beginning of a pass, as own_rows is:
    int batch, tokens; // B, T
    size_t rows;       // N
    int slot;
    struct layer *layers; // (L) of the slot
    int from, to;         // the layers of the chunk: [from, to)
    void *last;           // (N', C) the residual stream after them
    void *dres;           // (N', C) gradient of the residual stream

    const int32_t *x, *y; // (B, T) of the pass; see model_ops
    void *norm;           // (N, C)  LayerNorm's output, which products read
    void *branch; // (N', C) a branch before its addition; gradients in backward
    float *sum;   // (N, C)  this slice's part of branch, before join(); in fp32
                  //         branch is a part of it; NULL without slices
    void *datt;   // (N, width) gradient of att: the memory of branch or sum
    void *dwide;  // (N, inner) gradient of pre, or (N, 3 width) of qkv
    void *dbranch; // (N, C)  dres times dropout's mask; NULL if every row is
                   //         this worker's and there is no dropout
    float *losses; // (N) loss of every row
    float *mean_loss;
    struct loss_part *parts; // (slices, slice) of loss; NULL without slices
    float *dnorms; // (slices, 2C) gradients of a LayerNorm's weight and bias,
                   // from each slice's rows; NULL without model_slices.sequence

    // Of divided sequences (pieces.c), in the model's format and in fp32:
    void *kv[2];   // keys and values of all workers, or of one each
    float *dkv[4]; // their gradients
    // If heads are exchanged: q, k and v of this worker's tokens, what is
    // exchanged, and gradients of l->heads and of its q, k, v.
    void *local, *given, *taken, *dheads, *dqkv;
    float *merged; // attention's result so far; gradient of q

    // Scratch that the device lays out by its own needs:
    void *logits;  // (slice, stride), in fp32 if wide_logits
    void *dlogits; // (slice, stride); perhaps the same memory
    int slice;     // rows of logits worked on at a time
    size_t stride; // numbers between rows of logits: `words`, perhaps padded
    bool wide_logits;
    float *scratch; // attention's
    float *partial; // of norm_backward and sum_rows
};

// memory.c: the bytes of m's tables and of its tensors, by m->job, m->ops and
// m->threads. Sets *m's numbers (nparams, width, slice ..).
void state_bytes(struct model *m, size_t *tables, size_t *tensors);

// Lays out m->tables and m->block, which the device has allocated, and sets the
// addresses in them.
void state_place(struct model *m);

// The job of a whole model has 0 slots and 0 edges, but needs one of each.
static inline int at_least_one(int n)
{
    return n > 0 ? n : 1;
}

// Where a tensor begins in its block, in elements.
static inline size_t in_block(const struct model *m, int tensor)
{
    return m->off[tensor] - m->off[block_first(block_of(tensor))];
}

// The weights of a tensor. Tensor 0 is wte, 1 is wpe, then come the layers' and
// ln_f's.
static inline const void *weight_at(const struct model *m, int tensor)
{
    const struct model_place *p = &m->places[block_of(tensor)];
    size_t size = dtype_bytes(m->job.precision);
    return (const char *)p->weights + in_block(m, tensor) * size;
}

// The gradient of a tensor.
static inline float *grad_at(const struct model *m, int tensor)
{
    return m->places[block_of(tensor)].grads + in_block(m, tensor);
}

// Whether backward's products add to the gradients that are there. In fp16 they
// do not: settle() adds later.
static inline bool adds_grads(const struct model *m,
                              const struct model_step *step)
{
    return step->accumulate && m->job.precision != DTYPE_F16;
}

// Take block b from the lender, if there is one, and give it back. Both return
// 0, or -1 after fail().
static inline int block_take(struct model *m, int b, bool backward)
{
    const struct model_lender *l = m->job.lender;
    return l ? l->take(l->ctx, b, backward, &m->places[b]) : 0;
}
static inline int block_give(const struct model *m, int b)
{
    const struct model_lender *l = m->job.lender;
    return l ? l->give(l->ctx, b) : 0;
}

// The bias that the pass after a product adds; NULL if the product adds it. In
// fp32 the pass does on a CPU, because the product would write the bias to its
// output first and read it again. In 16 bits the product adds the bias before
// it rounds.
static inline const void *late_bias(const struct model *m, int tensor)
{
    bool late = !m->ops->fused && m->job.precision == DTYPE_F32;
    return late ? weight_at(m, tensor) : NULL;
}

// The same for a product whose result is summed over slices. There each slice
// would add the bias, so the pass after the sum always adds it.
static inline const void *branch_bias(const struct model *m, int tensor)
{
    return m->sum ? weight_at(m, tensor) : late_bias(m, tensor);
}

// In a pass: tokens of whole sequences, and the rows of all workers that divide
// these.
static inline int whole_tokens(const struct model *m)
{
    return m->job.pieces ? m->job.pieces->tokens : m->tokens;
}
static inline size_t whole_rows(const struct model *m)
{
    return (size_t)m->batch * whole_tokens(m);
}

// Whether each worker has only its own rows between the products.
static inline bool divides_rows(const struct model *m)
{
    return m->job.slices && m->job.slices->sequence;
}

// The first of this worker's rows of a tensor (N, C).
static inline void *rows_own(const struct model *m, void *tensor)
{
    size_t row = m->job.config.channels * dtype_bytes(m->job.precision);
    return (char *)tensor + m->own_rows.first * row;
}

// Completes a tensor (N, C) in which each worker has written its own rows.
// Returns 0, or -1 after fail().
static inline int rows_gather(struct model *m, void *tensor)
{
    const struct model_slices *s = m->job.slices;
    return divides_rows(m) ? s->gather_rows(s->ctx, tensor, m->rows) : 0;
}

// Sums the parts of all slices in m->sum (N, C): all rows, or this worker's.
// Returns 0, or -1 after fail().
static inline int parts_join(struct model *m)
{
    const struct model_slices *s = m->job.slices;
    return divides_rows(m)
               ? s->scatter_rows(s->ctx, m->sum, m->rows)
               : s->join(s->ctx, m->sum, m->rows * m->job.config.channels);
}

// branch_product() computes m->branch, from row `row` on. With slices it
// computes this worker's part in m->sum; after the last row, branch_join() sums
// the parts of all workers into m->branch. branch_join() returns 0, or -1 after
// fail().
static inline void branch_product(struct model *m, struct product_job *j,
                                  size_t row)
{
    size_t size = m->sum ? sizeof(float) : dtype_bytes(m->job.precision);
    void *out = m->sum ? m->sum : m->branch;
    j->out = (char *)out + row * m->job.config.channels * size;
    j->out_fp32 = m->sum != NULL;
    m->ops->product(m, j);
}
static inline int branch_join(struct model *m)
{
    size_t C = m->job.config.channels;
    if (!m->sum)
        return 0;
    if (parts_join(m))
        return -1;
    const float *sum = m->sum + m->own_rows.first * C;
    if (m->branch != sum)
        m->k->cast_down(m->branch, sum, m->own_rows.n * C);
    return 0;
}

// forward.c: computes the pass's layers; the model's first layers read the
// tokens x. Writes the residual stream after the layers to m->last and, if they
// end the model, ln_f's output to m->norm. With step NULL there is no dropout.
// Returns 0, or -1 after fail().
int forward(struct model *m, const int32_t *x, const struct model_step *step);

// forward.c: dropout's mask at a site of this worker's rows.
struct mask state_mask(const struct model *m, const struct model_step *step,
                       int layer, enum site site);

// forward.c: the input of a layer's attention, of the heads that this worker
// has.
struct attention state_attention(const struct model *m,
                                 const struct model_step *step, int layer);

// forward.c: computes ln_f's output from m->last again, into m->norm.
void norm_again(struct model *m);

// forward.c: computes again what backward needs of layer i, from the residual
// stream at its entry. The bits are those of the step's forward. Overwrites
// m->norm and m->branch. Returns 0, or -1 after fail().
int forward_again(struct model *m, int i, const struct model_step *step);

// head.c: computes the mean loss of the rows of m->norm, which read_loss()
// gives. With a step it also writes the gradient of m->norm to m->branch and
// the head's share of wte's gradient. Returns 0, or -1 after fail().
int head(struct model *m, const struct model_step *step);

// head.c: m->logits = the logits of `rows` <= m->slice rows of m->norm, from
// row `row` on; `fp32` says in which format.
void head_logits(struct model *m, size_t row, int rows, bool fp32);

// Whether the pass's layers are the first of the model, and whether they are
// its last.
static inline bool is_first(const struct model *m)
{
    return m->from == 0 && part_embeds(&m->job.config);
}
static inline bool is_last(const struct model *m)
{
    return m->to == m->job.config.layers && part_has_head(&m->job.config);
}

// backward.c: computes the gradients of the pass's layers. It begins with
// m->branch if they end the model, else with m->dres, and leaves the gradient
// of their input in m->dres. Returns 0, or -1 after fail().
int backward(struct model *m, const struct model_step *step);
