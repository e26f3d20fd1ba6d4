// sizes.h - finds the model of a run's settings, and predicts the memory that
// the model needs.

#pragma once

#include "train/memory_plan.h"

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

// The threads of a worker on a host of `workers` workers: threads=, or its
// share of this machine's cores, at least 1.
int sizes_threads(const struct run *r, int workers);

struct sizes {
    struct model_config part;     // of the rank's stage
    struct memory worker, server; // server: one of the backend's; all 0: none
};

// Predicts the memory of a rank of this stage. layers: of each part of the
// model; NULL: evenly. Without threads= all ranks of the mesh share this
// machine's cores. 0, or -1 after fail().
int sizes_stage(const struct run *r, const struct pipeline *plan,
                const int *layers, int stage, struct sizes *out);

// Checks what train refuses of the run's mesh=: stages= of another number of
// parts, workers with no token or no head, and keys of tokens that the mesh
// does not divide. 0, or -1 after fail().
int sizes_check_mesh(const struct run *r);

// Predicts the memory of that rank of the mesh that needs most. accum= is the
// number of micro-batches. 0, or -1 after fail().
int sizes_mesh(const struct run *r, struct sizes *out);
