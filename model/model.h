// model.h - GPT-2: its layout in one flat vector, forward, backward, sampling.
//
// Parameters lie layer by layer in the order wte, wpe, layer 0.., ln_f, so that
// backward completes gradients from the end of the vector to its start and
// reports one falling watermark. Matrices are (in, out), y = xW + b, as in
// Hugging Face's files. The head is wte, transposed.
//
// Letters: B sequences, T tokens each, C channels, V symbols, L layers, NH
// heads.

#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include "base/half.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MODEL_CHUNKS = 16 };

// Some of a model (part.h): some of its layers, a stage of a pipeline; or of
// each tensor a slice; or both.
struct model_part {
    int of;     // layers of the whole model; 0: all are here
    int chunks; // runs of neighbouring layers, in the order of the model
    int first[MODEL_CHUNKS], layers[MODEL_CHUNKS]; // of each
    int slices, slice; // of how many which; 0: tensors are whole
};

struct model_config {
    int layers, heads, channels, context, vocab;
    float dropout; // rate in [0, 1); 0: none
    struct model_part part;
};

// Presets: nano, micro, baby, gpt2, gpt2-medium, gpt2-large, gpt2-xl, slides.
// Fills *out (dropout 0; vocab 0 where the data decides) or -1 after fail().
int model_preset(const char *name, struct model_config *out);

// All presets' names, NULL-terminated.
const char *const *model_preset_names(void);

// -1 after fail() unless every number makes a model: positive, heads dividing
// channels, a parameter count that can be addressed.
int model_check(const struct model_config *c);

// ---- layout

enum { MODEL_PER_LAYER = 12 };

struct tensor {
    char name[48];   // Hugging Face's: "h.0.attn.c_attn.weight"
    size_t off, n;   // in the flat vector, in elements
    int ndim;        // 1 or 2
    size_t shape[2]; // (in, out) for matrices of layers, (V, C), (T, C)
    bool decay;      // weight decay applies: the matrices
    bool residual;   // writes to the residual stream: scaled at init
    float fill;      // initial value of what is not drawn: 0, or 1 for ln
};

// Number of parameters, and of tensors (2 + 12 L + 2).
size_t model_nparams(const struct model_config *c);
int model_ntensors(const struct model_config *c);

// Tensor i in layout order, i in [0, model_ntensors). One that a part lacks has
// no elements.
void model_tensor(const struct model_config *c, int i, struct tensor *out);

// A block: the embeddings, a layer, or ln_f, which is the last. There are L +
// 2, and they tile the flat vector; block b holds n elements from `off` on, 0
// where a part lacks it.
int model_nblocks(const struct model_config *c);
void model_block(const struct model_config *c, int b, size_t *off, size_t *n);

// Elements of the blocks that a step works on at once: the embeddings and ln_f,
// which both of its ends need, a layer, and the next.
size_t model_work(const struct model_config *c);

// N(0, 0.02), residual projections N(0, 0.02 / sqrt(2L)), LayerNorm 1, biases
// 0. A function of seed alone: a part has the whole's numbers. The range:
// elements [off, off + n) of it.
void model_init(const struct model_config *c, uint64_t seed, float *params);
void model_init_range(const struct model_config *c, uint64_t seed, size_t off,
                      size_t n, float *out);

// Arithmetic of a token in training, of a whole model: 6 N + 12 L C T, N
// without the position table (PaLM, appendix B). MFU is this times tokens/s
// over a peak.
double model_flop(const struct model_config *c, int tokens);

// ---- computing

struct model;
struct device;

// Where a block is while a step works on it.
struct model_place {
    void *weights; // in the model's format
    float *grads;
};

// Lends a model its blocks, where its vectors are not whole on this worker.
// Each returns 0, or -1 after fail(), which ends the step with -1.
struct model_lender {
    // Block b is about to be read and, with `backward`, its gradient written,
    // from nothing: fills in the members of *out that are lent. They are the
    // model's until it gives the block back. Backward takes again what forward
    // has taken.
    int (*take)(void *ctx, int b, bool backward, struct model_place *out);
    int (*give)(void *ctx, int b);
    void *ctx;
};

// What a model whose tensors are slices exchanges with those that have the
// others. All call the same in the same order. Each returns 0, or -1 after
// fail(), which ends the step with -1.
struct model_slices {
    // v[0..n) := the sum over all slices, the same bits on each.
    int (*join)(void *ctx, float *v, size_t n);
    // v holds `each` floats of every slice, slice by slice: those of the others
    // := theirs.
    int (*gather)(void *ctx, float *v, size_t each);
    void *ctx;
    float *sum; // borrowed: (B*T, C), where all is that is joined
};

struct model_job {
    struct model_config config;
    enum dtype precision; // of weights, activations and their gradients
    int batch, tokens;    // B and T of a step; T <= context
    int threads;          // 0: all that this process may use
    bool train;           // false: forward only, no memory for backward
    float *params;        // borrowed: model_nparams() floats
    float *grads;         // borrowed likewise; NULL unless train
    // Weights, gradients come from the lender, a block at a time, and params,
    // grads are NULL. On the CPU only.
    bool lent_weights, lent_grads;
    const struct model_lender *lender; // NULL: nothing is lent
    uint64_t seed;                     // of dropout, for this rank
    struct device *dev; // where both live, and who computes; NULL: the CPU
    bool tf32;          // cuda, fp32: products may round factors to TF32
    int spared;         // cuda: multiprocessors left to collectives by what
                        // backward asks for while gradients travel
    int tune;           // cuda: algorithms timed a shape; 0: the first, always
    bool recompute;     // layers keep their input, backward makes the rest
    // Of a stage, on the CPU only; 0 elsewhere. struct model_turn says which.
    int rooms;  // micro-batches, of one chunk each, that are kept at once
    int inputs; // buffers of what the stages before send
    int edges;  // buffers of gradients between stages
    // Of slices, on the CPU only; NULL elsewhere.
    const struct model_slices *slices;
};

// Bytes of the host's memory that a process needs for a step with these
// settings, without the optimiser's state (which whoever updates owns). The
// formula is in ARCHITECTURE.md.
struct model_bytes {
    size_t params, grads; // job's vectors, and the model's copies of them
    size_t activations;   // and scratch
    size_t process;       // code, libraries, threads
};
void model_memory(const struct model_job *job, struct model_bytes *out);

// FLOP/s that products in the job's format can reach on its device: the best
// that a large one does now, and what the maker's data sheet says, dense; 0:
// not known. 0, or -1 after fail(). On the CPU neither is.
struct model_peak {
    const char *device; // the maker's name for it; lives as long as the device
    double measured, sheet;
};

int model_peak(const struct model_job *job, struct model_peak *out);

// 0, or -1 after fail(). The caller outlives the model with params and grads.
int model_open(struct model **m, const struct model_job *job);
void model_close(struct model **m);

// Call after params changed, before the next forward: refreshes the 16-bit
// copy unless it is fresh. Nothing to do in fp32.
void model_params_changed(struct model *m);

// That copy, where params are, for whoever changes them and would write it in
// the same pass; NULL in fp32 and where weights are lent. The model's, until it
// is closed.
struct half_copy *model_copy(struct model *m);

// Backward reports progress: grads[off, n) are complete; on a device with
// queues, for whoever follows its compute queue. Falls to 0.
typedef void model_watermark(void *ctx, size_t off);

struct span_lane; // telemetry

struct model_step {
    const int32_t *x, *y; // (B, T) tokens and targets, in [0, V)
    int step, micro;      // name the dropout mask
    float scale;          // loss scale: gradients come out scale times larger
    bool accumulate;      // add to grads instead of replacing them
    model_watermark *watermark; // may be NULL
    void *ctx;
    struct span_lane *lane; // forward and backward, by layer; may be NULL
};

// Which part of a step: a chunk of a stage's layers, and where it works. All 0
// for a whole model.
struct model_turn {
    int chunk;
    int room;  // of what backward needs of forward, from one to the other
    int input; // of the residual stream at the chunk's entry, as long
    int edge;  // of the residual stream's gradient, in backward
};

// Forward of a chunk, then backward, which adds the gradients of its layers to
// grads, or replaces them. Returns 0; -1 after fail() on a token outside [0,
// V). Where the chunk ends the model, backward begins with the head and puts
// the mean cross-entropy over B*T (nats a token) into *loss.
//
// Between stages: forward of a chunk that does not begin the model takes
// model_input(), and leaves model_output(); backward of one that does not end
// it takes model_edge(), and leaves the gradient of its input there. Each is
// (B*T, C), in the model's format.
int model_forward(struct model *m, const struct model_step *s,
                  const struct model_turn *t);
int model_backward(struct model *m, const struct model_step *s,
                   const struct model_turn *t, float *loss);
void *model_input(struct model *m, int input);
void *model_output(struct model *m, int room);
void *model_edge(struct model *m, int edge);

// Both of a whole model.
int model_train(struct model *m, const struct model_step *s, float *loss);

// Mean cross-entropy of `batch` <= B rows of T tokens, without dropout.
int model_eval(struct model *m, const int32_t *x, const int32_t *y, int batch,
               float *loss);

// The same of a chunk: between stages as model_forward(); *loss is written
// where it ends the model.
int model_eval_chunk(struct model *m, const struct model_turn *t,
                     const int32_t *x, const int32_t *y, int batch,
                     float *loss);

// Logits (V) after the last of n tokens, 1 <= n <= T of the job, batch row 0.
// Of a whole model.
int model_logits(struct model *m, const int32_t *x, int n, float *logits);

#endif
