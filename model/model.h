// model.h - GPT-2: its layout in one flat vector, forward, backward, sampling.
//
// The vector holds the parameters in the order wte, wpe, layer 0.., ln_f. So
// backward completes the gradients from the end of the vector to its start, and
// one falling watermark tells how far it is. A matrix has the shape (in, out),
// with y = xW + b, as in Hugging Face's files. The head is wte, transposed.
//
// Letters: B sequences, T tokens each, C channels, V symbols, L layers, NH
// heads.

#pragma once

#include "base/half.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MODEL_CHUNKS = 16 };

// A part of a model (part.h): a stage of a pipeline, which has some of the
// layers; or a slice, which has a share of each divided tensor; or a slice of a
// stage.
struct model_part {
    int of;     // layers of the whole model; 0: all are here
    int chunks; // runs of neighbouring layers, in the order of the model
    // Of each run: the number of its first layer, and how many layers it has.
    int first[MODEL_CHUNKS], layers[MODEL_CHUNKS];
    int slices, // how many; 0: tensors are whole
        slice;  // the number of this one, from 0
};

struct model_config {
    int layers, heads, channels, context, vocab;
    float dropout; // rate in [0, 1); 0: none
    struct model_part part;
};

// Presets: nano, micro, baby, gpt2, gpt2-medium, gpt2-large, gpt2-xl, slides.
// Fills *out, with dropout 0, and vocab 0 if the data decides it. Returns 0, or
// -1 after fail() if there is no such preset.
int model_preset(const char *name, struct model_config *out);

// The name of preset i, counted from 0; NULL after the last.
const char *model_preset_name(int i);

// Returns 0, or -1 after fail() if a number is outside its range, if heads does
// not divide channels, or if the parameters are too many to be addressed.
int model_check(const struct model_config *c);

// ---- layout

enum { MODEL_PER_LAYER = 12 };

struct tensor {
    char name[48];   // Hugging Face's: "h.0.attn.c_attn.weight"
    size_t off, n;   // in the flat vector, in elements
    int ndim;        // 1 or 2
    size_t shape[2]; // of layers (in, out), of wte (V, C), of wpe (T, C)
    bool decay;      // weight decay applies: the matrices
    bool residual; // its product is added to the residual stream: smaller init
    float fill;    // initial value of a vector: 1 for LayerNorm's weight
};

// Number of parameters, and of tensors (2 + 12 L + 2).
size_t model_nparams(const struct model_config *c);
int model_ntensors(const struct model_config *c);

// Fills *out with tensor i in layout order, i in [0, model_ntensors). A tensor
// that a part does not have has n = 0.
void model_tensor(const struct model_config *c, int i, struct tensor *out);

// A block is the embeddings (block 0), a layer (blocks 1 to L), or ln_f (block
// L + 1). The blocks tile the flat vector. Block b has n elements, beginning
// with element `off`; n is 0 if a part does not have the block.
int model_nblocks(const struct model_config *c);
void model_block(const struct model_config *c, int b, size_t *off, size_t *n);

// Elements of the blocks that a step holds at the same time: the embeddings and
// ln_f, which stay for the whole step, and two neighbouring layers.
size_t model_work(const struct model_config *c);

// Initial parameters: matrices from a normal distribution with standard
// deviation 0.02, residual projections with 0.02 / sqrt(2L), LayerNorm's
// weights 1, biases 0. The numbers depend on the seed alone, so a part gets the
// same ones as the whole model. model_init() writes model_nparams() floats;
// model_init_range() writes elements [off, off + n) to out[0, n).
void model_init(const struct model_config *c, uint64_t seed, float *params);
void model_init_range(const struct model_config *c, uint64_t seed, size_t off,
                      size_t n, float *out);

// FLOP of training a whole model on one token: 6 N + 12 L C T, where N counts
// all parameters but wpe and T is `tokens` (Chowdhery et al., "PaLM", 2022,
// appendix B). MFU is this number times tokens/s, divided by the device's peak
// FLOP/s.
double model_flop(const struct model_config *c, int tokens);

// ---- computing

struct model;
struct device;

// Where a block's numbers are while a step works on it.
struct model_place {
    void *weights; // in the model's format
    float *grads;
};

// Lends a model its blocks, for a worker that does not hold the whole vectors,
// or holds parameters that are still arriving. Both functions return 0, or -1
// after fail(); then the step returns -1, too.
struct model_lender {
    // The model is about to read block b. With `backward` it will also write
    // the block's gradient, and never read what is there before. Fills in the
    // members of *out that are lent; the model uses them until it gives the
    // block back. Backward takes each block again.
    int (*take)(void *ctx, int b, bool backward, struct model_place *out);
    int (*give)(void *ctx, int b);
    void *ctx;
};

// The exchange between the workers that have the slices of one model. All of
// them call the same functions in the same order, with vectors in the memory of
// the model's device. The functions return 0, or -1 after fail(); then the step
// returns -1, too.
struct model_slices {
    // All-reduce: v[0, n) becomes the sum over all slices, with the same bits
    // on each worker.
    int (*join)(void *ctx, float *v, size_t n);
    // All-gather: v has `each` floats for every slice, slice after slice. The
    // worker has written its own; gather fills in those of the others.
    int (*gather)(void *ctx, float *v, size_t each);
    void *ctx;
    float *sum; // borrowed: (B*T, C), the buffer of every join() and
                // scatter_rows(); NULL on a GPU, whose model has its own
    // Sequence parallelism (Korthikanti et al., "Reducing activation
    // recomputation", 2022): between the products each worker has only its rows
    // of the residual stream, part_rows(). Then a reduce-scatter and an
    // all-gather replace each join.
    bool sequence;
    // With `sequence`: layers keep the LayerNorms' outputs of all rows, the
    // inputs of the products behind them. Else backward gathers them again.
    bool keeps;
    // Reduce-scatter: this worker's rows of v (rows, C) become the sums over
    // all slices. Other rows are spoilt.
    int (*scatter_rows)(void *ctx, float *v, size_t rows);
    // All-gather: fills in the other workers' rows of v (rows, C), numbers of
    // the model's format.
    int (*gather_rows)(void *ctx, void *v, size_t rows);
};

// The exchanges of n workers that divide every sequence (mesh=cpN): each has
// some pieces of it, zigzag_of(tokens, n, rank) of base/zigzag.h. Attention
// needs the keys and values of all of them. All workers call the same functions
// in the same order. Vectors are in the memory of the model's device, and at
// most pieces_exchanged() bytes (pieces.h). The functions return 0, or -1 after
// fail(); then the step returns -1, too.
enum model_over { OVER_GATHER, OVER_RING };
enum model_passes { PASS_KEYS, PASS_GRADIENTS, PASSES };
struct model_pieces {
    int n, rank, tokens; // tokens of a whole sequence, at least n
    // Workers [k up, (k + 1) up) are a group, which exchanges heads for tokens.
    // Then each worker exchanges keys with those that have its heads, one of
    // each of the n / up groups.
    int up;
    enum model_over over; // how keys are exchanged
    // All-gather, in OVER_GATHER: v has a chunk of lengths[g] numbers for each
    // group g. Fills in those of the others.
    int (*gather)(void *ctx, void *v, const size_t *lengths, enum dtype type);
    // Reduce-scatter: the chunk of v of this worker's group becomes the sum
    // over all groups. Other chunks are spoilt.
    int (*scatter)(void *ctx, float *v, const size_t *lengths);
    // In OVER_RING: begins to give numbers to the next group's worker and to
    // take some from the one before. passed() waits for that. Passes of either
    // kind come one after the other.
    int (*pass)(void *ctx, enum model_passes kind, void *give, size_t given,
                void *take, size_t taken, enum dtype type);
    int (*passed)(void *ctx, enum model_passes kind);
    // All-to-all in a group: chunk w of `give`, given[w] numbers, goes to its
    // worker w, and chunk w of `take` comes from it.
    int (*exchange)(void *ctx, void *give, const size_t *given, void *take,
                    const size_t *taken, enum dtype type);
    void *ctx;
};

struct model_job {
    struct model_config config;
    enum dtype precision; // of weights, activations and their gradients
    // B and T of a micro-batch; T <= context. Of divided sequences this
    // worker's tokens.
    int batch, tokens;
    int threads;   // 0: all that this process may use
    bool train;    // false: forward only, no memory for backward
    float *params; // borrowed: model_nparams() floats
    float *grads;  // borrowed likewise; NULL unless train
    // The lender lends the weights, or the gradients, a block at a time. Then
    // params, or grads, is NULL.
    bool lent_weights, lent_grads;
    const struct model_lender *lender; // NULL: nothing is lent
    uint64_t seed;                     // of dropout, for this rank
    struct device *dev; // has params and grads, and computes; NULL: the CPU
    bool tf32;          // cuda, fp32: products may round factors to TF32
    int spared;         // cuda: multiprocessors that backward's products leave
                        // to collectives while gradients travel
    int tune;           // cuda: algorithms to time for each shape of product;
                        // 0: takes the first one
    bool cudnn;     // cuda: attention by cuDNN; needs 16 bits and no dropout
    bool recompute; // layers keep only their input; backward computes the
                    // rest again
    // Buffers of a stage, which struct model_pass selects; else 0.
    int slots;  // activation slots: each holds one micro-batch of one chunk
    int inputs; // buffers for residual streams from the stage before
    int edges;  // buffers for gradients between stages
    // Exchange between slices; NULL: tensors are whole.
    const struct model_slices *slices;
    // Exchange between workers that divide sequences; NULL: they are whole.
    // Losses are then this worker's share: their sum is the mean.
    const struct model_pieces *pieces;
};

// Bytes of host memory that a process needs for a step with these settings. The
// optimiser's state is not counted: its owner is the code that updates the
// parameters. The formula is in ARCHITECTURE.md.
struct model_bytes {
    size_t params, grads; // the job's vectors, and the model's copies of them
    size_t activations;   // and scratch
    size_t process;       // code, libraries, threads
};
void model_memory(const struct model_job *job, struct model_bytes *out);

// The FLOP/s of matrix products in the job's format on its device: `measured`
// is the best of large products that this call times, `sheet` is the dense peak
// in the vendor's data sheet. 0 means not known; on the CPU both are 0.
// model_peak() returns 0, or -1 after fail().
struct model_peak {
    const char *device; // the vendor's name for it; valid as long as the device
    double measured, sheet;
};

int model_peak(const struct model_job *job, struct model_peak *out);

// Opens a model of *job, which is copied. What the job points to must stay
// valid until model_close(). Returns 0, or -1 after fail(), for example if a
// weight is NaN or infinite. model_close() sets *m to NULL.
int model_open(struct model **m, const struct model_job *job);
void model_close(struct model **m);

// Call this after params changed and before the next forward. It refreshes the
// 16-bit copy of the weights, unless that is fresh already. In fp32 it does
// nothing.
void model_params_changed(struct model *m);

// The 16-bit copy of the weights, on the device of params. The code that
// updates params may write it in the same pass. NULL in fp32 and if weights are
// lent. The model owns it, until model_close().
struct half_copy *model_copy(struct model *m);

// With slices: the buffer of the joins, and the floats of the largest gather()
// of model_slices.
float *model_sum(const struct model *m);
size_t model_gathered(const struct model *m);

// Backward calls this to report progress: grads[off, nparams) are complete. On
// a GPU they are complete for work that waits for the compute queue at this
// point. `off` falls; the last call of a whole model has off = 0.
typedef void model_watermark(void *ctx, size_t off);

struct span_lane; // telemetry

struct model_step {
    const int32_t *x, *y; // (B, T) tokens and targets, in [0, V)
    int step, micro;      // select the dropout masks
    float scale;          // loss scale: gradients come out scale times larger
    bool accumulate;      // add to grads instead of replacing them
    model_watermark *watermark; // may be NULL
    void *ctx;
    struct span_lane *lane; // gets a span for each layer's pass; may be NULL
};

// A pass is the forward or the backward of one chunk of a stage's layers. This
// struct says which chunk, and which buffers the pass uses. For a whole model
// all members are 0.
struct model_pass {
    int chunk;
    int slot;  // activation slot: in use from forward to the end of backward
    int input; // buffer of the chunk's input, in use as long as the slot
    int edge;  // buffer of the residual stream's gradient, in backward
};

// Forward and backward of a chunk. Backward replaces the gradients of the
// chunk's layers in grads, or adds to them if s->accumulate. If the chunk ends
// the model, backward begins with the head and writes the mean cross-entropy of
// the B*T tokens (nats per token) to *loss. Both return 0, or -1 after fail(),
// for example on a token outside [0, V).
//
// Between stages: if the chunk does not begin the model, forward reads its
// input from model_input(). If it does not end the model, forward writes
// model_output(), and backward reads that output's gradient from model_edge().
// Backward leaves the gradient of the chunk's input in model_edge(). Each of
// these buffers is (B*T, C) in the model's format, and the model owns it. With
// model_slices.sequence it has this worker's rows only.
int model_forward(struct model *m, const struct model_step *s,
                  const struct model_pass *p);
int model_backward(struct model *m, const struct model_step *s,
                   const struct model_pass *p, float *loss);
void *model_input(struct model *m, int input);
void *model_output(struct model *m, int slot);
void *model_edge(struct model *m, int edge);

// Forward and backward of a whole model. Returns and writes what
// model_backward() does.
int model_train(struct model *m, const struct model_step *s, float *loss);

// *loss = the mean cross-entropy (nats per token) of `batch` <= B rows of T
// tokens, without dropout. Returns 0, or -1 after fail().
int model_eval(struct model *m, const int32_t *x, const int32_t *y, int batch,
               float *loss);

// model_eval() of one chunk. Between stages it uses the buffers that
// model_forward() uses. It writes *loss only if the chunk ends the model.
int model_eval_chunk(struct model *m, const struct model_pass *p,
                     const int32_t *x, const int32_t *y, int batch,
                     float *loss);

// Writes to logits (V) the logits after the last of the n tokens x, with 1 <= n
// <= T of the job. The model must be whole. Returns 0, or -1 after fail().
int model_logits(struct model *m, const int32_t *x, int n, float *logits);
