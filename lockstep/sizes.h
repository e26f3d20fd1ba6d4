// sizes.h - finds the model of a run's settings, and predicts the memory that
// the model needs.

#ifndef LOCKSTEP_SIZES_H
#define LOCKSTEP_SIZES_H

#include "train/memory_plan.h"

struct mesh;
struct pipeline;
struct run;

// Returns the model of the settings, as shape_model() does. If the data would
// decide the number of symbols, it is 256, as for bytes. 0, or -1 after fail().
int sizes_model(const struct run *r, struct model_config *out);

// Writes which model it is, its size and precision: "gpt2, 124.4 M parameters,
// precision=fp32". A preset is named only if the run uses it as it is. Returns
// text.
enum { SIZES_TEXT = 192 };
const char *sizes_say(const struct run *r, const struct model_config *c,
                      char text[SIZES_TEXT]);

// A rank of a mesh.
struct sizes_rank {
    const struct pipeline *plan;
    const int *layers; // of each part of the model; NULL: evenly
    int stage;         // its stage
    int slices;        // how many slices its tensors are divided into
    int replicas;      // how many ranks have the same parameters
};

struct sizes {
    struct model_config part;     // of the rank's stage
    struct memory worker, server; // server: one of the backend's; all 0: none
};

// Predicts the memory of a rank. Without threads= all ranks of the mesh share
// this machine's cores. 0, or -1 after fail().
int sizes_stage(const struct run *r, const struct backend *b,
                const struct sizes_rank *rank, struct sizes *out);

// Checks that stages= has as many parts as mesh `m` and chunks= make. 0, or -1
// after fail().
int sizes_check_stages(const struct run *r, const struct mesh *m);

// Predicts the memory of that rank of mesh `m` that needs most. N workers
// without a mesh are dpN. accum= is the number of micro-batches. 0, or -1 after
// fail().
int sizes_mesh(const struct run *r, const struct backend *b,
               const struct mesh *m, struct sizes *out);

// Returns how many parameters of a part one of its `slices` slices has (Shoeybi
// et al., 2019): a share of the token embeddings, of the matrices and of the
// biases of c_attn and c_fc, and all other parameters.
double sizes_slice(const struct model_config *part, int slices);

// Reads a size in bytes: "2gb", "900MB", "24g" or "1.5gib". `key` is for the
// error message. 0, or -1 after fail().
int sizes_bytes(const char *key, const char *text, double *out);

// What a table of memory says if it is asked for a GPU.
#define SIZES_GPU                                                              \
    "process: code and threads of a CPU's worker. A GPU's CUDA context, "      \
    "hundreds of MB of its\nmemory, is not counted.\n"

// Print the heads of a table of memory by part, and a row of it in MB, both
// without a newline.
void sizes_print_head(const char *first);
void sizes_print_row(const char *name, const struct memory *m);

// Prints the row of a worker, with the text `more` at its end, and that of its
// server, if there is one.
void sizes_print_both(const char *name, const struct memory *worker,
                      const char *more, const struct memory *server);

#endif
