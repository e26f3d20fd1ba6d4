// state.h - everything that a model holds between open and close.
//
// All of it lies in one block of memory, cut up by state_lay(); state_memory()
// is the same function without the block, so prediction and fact agree.
//
// `void *` tensors hold numbers of the model's format. N = B*T rows.

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
    int width, inner;   // columns of q here, and of what lies between the MLP's
    struct words words; // products; the vocabulary here: a slice's, or all
    size_t *off; // of every tensor in the flat vector, and nparams behind them
    char *block; // what everything below lies in

    // The weights that products read: job.params in fp32, else a 16-bit copy;
    // NULL where they are lent.
    void *weights;
    // Where this step's gradients are put: job.grads, but in fp16 a vector of
    // its own, whose numbers pass through fp16 on their way to job.grads. NULL
    // where they are lent; in fp16 they pass through it where they are.
    float *grads;
    struct model_place *places; // where each block is now

    struct layer *all_layers; // L of each room; see cut_room()
    void **ends;              // (N, C) of each room: residual stream at the end
    void **inputs, **edges;   // (N, C) each: struct model_turn's
    float *mean, *rstd;       // (N) of ln_f
    int normed; // the room whose end ln_f has made m->norm of; -1: none

    // Of the turn that is taken:
    struct layer *layers; // L, of its room
    int from, to;         // those of its chunk
    void *last;           // the residual stream behind them
    void *dres;           // (N, C)  gradient of the residual stream

    void *norm;    // (N, C)  LayerNorm's output; branch and gradient products
    void *branch;  // (N, C)  a branch before it joins; gradients in backward
    float *sum;    // (N, C)  of slices: what becomes branch when it is summed;
                   //         in fp32 it is branch; NULL where tensors are whole
    void *wide;    // (N, inner) GELU's output; with recompute its input's room
    void *dwide;   // (N, inner) gradient of pre, or (N, 3 width) of qkv
    void *dbranch; // (N, C)  dres behind dropout's mask; NULL without
    float *logits; // (slice, words)
    void *dlogits; // (slice, words); logits itself in fp32
    float *losses; // (N) loss of every row
    struct loss_part *parts; // (slices, slice) of the vocabulary; NULL: whole
    float *scratch;          // of attention, a piece for each thread
    float *partial; // of norm_backward and sum_rows, (threads, 4C) and padding
    struct product_scratch products;
    int slice; // rows of logits worked on at a time
};

// Cut the block at `block` (NULL: only count) into m's tensors, from m->job and
// m->threads. Returns the bytes of all.
size_t state_lay(struct cpu_model *m, char *block);

// What a process needs: the block, the vectors, and what comes besides.
void state_memory(const struct model_job *job, struct model_bytes *out);

// The number of threads that job asks for.
int state_threads(const struct model_job *job);

// A tensor's elements behind the first of its block.
static inline size_t in_block(const struct cpu_model *m, int tensor)
{
    return m->off[tensor] - m->off[block_first(block_of(tensor))];
}

// A tensor of the weights: wte is 0, wpe 1, then layers, then ln_f.
static inline const void *weight_at(const struct cpu_model *m, int tensor)
{
    const struct model_place *p = &m->places[block_of(tensor)];
    size_t size = dtype_bytes(m->job.precision);
    return (const char *)p->weights + in_block(m, tensor) * size;
}

// Its gradient.
static inline float *grad_at(const struct cpu_model *m, int tensor)
{
    return m->places[block_of(tensor)].grads + in_block(m, tensor);
}

// Whether gradients of this step are added to those before it where they are
// made. In fp16 that is done later, in report().
static inline bool adds_grads(const struct cpu_model *m,
                              const struct model_step *step)
{
    return step->accumulate && m->job.precision != DTYPE_F16;
}

// Ask the lender, where there is one, for a block, and let it go. 0, or -1
// after fail().
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

// The bias that a product leaves to the pass behind it: in fp32, where it would
// be written first and read again. In 16 bits the sum is rounded with it: NULL.
static inline const void *late_bias(const struct cpu_model *m, int tensor)
{
    return m->job.precision == DTYPE_F32 ? weight_at(m, tensor) : NULL;
}

// The bias of a product whose result is summed over slices: each would add it,
// so it is always left to the pass behind.
static inline const void *branch_bias(const struct cpu_model *m, int tensor)
{
    return m->sum ? weight_at(m, tensor) : late_bias(m, tensor);
}

// A product that makes m->branch, from row `row` on; of slices m->sum, until
// all of it is summed: branch_join() of the rows. 0, or -1 after fail().
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
        m->k->narrow(m->branch, m->sum, n);
    return 0;
}

// The layers, room and buffers that forward and backward work with.
void state_take_turn(struct cpu_model *m, const struct model_turn *t);

// forward.c: the residual stream behind the turn's layers for B sequences of T
// tokens, into m->last; where those end the model, ln_f's output into m->norm.
// 0, or -1 after fail().
int forward(struct cpu_model *m, const struct model_turn *t, const int32_t *x,
            int B, int T, const struct model_step *step);

// forward.c: attention in a layer, of B sequences of T tokens.
struct attention state_attention(const struct cpu_model *m, int B, int T,
                                 const struct model_step *step, int layer);

// forward.c: ln_f's output of m->last once more, into m->norm.
void norm_again(struct cpu_model *m);

// forward.c: what backward needs of layer i once more, from the residual stream
// at its entry, with the bits of step's forward. Spoils m->norm and m->branch.
// 0, or -1 after fail().
int forward_again(struct cpu_model *m, int i, const struct model_step *step);

// head.c: *loss = mean of `rows` rows of m->norm. With a step, also the
// gradient of m->norm into m->branch, and wte's share from the head. 0, or -1
// after fail().
int head(struct cpu_model *m, const int32_t *y, size_t rows,
         const struct model_step *step, float *loss);

// m->logits of `rows` rows of m->norm from `row` on; rows <= m->slice.
void head_logits(struct cpu_model *m, size_t row, int rows);

// Whether the turn's layers begin the model, behind the embeddings; whether
// they end it.
static inline bool is_first(const struct cpu_model *m)
{
    return m->from == 0 && part_embeds(&m->job.config);
}
static inline bool is_last(const struct cpu_model *m)
{
    return m->to == m->job.config.layers && part_has_head(&m->job.config);
}

// backward.c: the gradients of the turn's layers, from m->branch where they end
// the model, else from m->dres, where that of their input is left. 0, or -1
// after fail().
int backward(struct cpu_model *m, const struct model_step *step);

#endif
