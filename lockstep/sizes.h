// sizes.h - the model that keys describe, and the memory that it takes.

#ifndef LOCKSTEP_SIZES_H
#define LOCKSTEP_SIZES_H

#include "train/memory_plan.h"

struct pipeline;
struct run;

// shape_model(), with 256 symbols, those of bytes, where the data would
// decide. 0, or -1 after fail().
int sizes_model(const struct run *r, struct model_config *out);

// What a worker of so many needs for a step of the run under a backend, and one
// of its servers, if there are any. Without threads= a worker's share of this
// machine's cores. 0, or -1 after fail().
int sizes_memory(const struct run *r, const struct backend *b, int workers,
                 struct memory *worker, struct memory *server);

// What a rank of a mesh needs: a stage of `plan`, with as many layers in each
// part of the model as `layers` says (NULL: evenly), and of its tensors a
// slice; `replicas` agree on it. *part: the stage's config. 0, or -1 after
// fail().
struct sizes_rank {
    const struct pipeline *plan;
    const int *layers;
    int stage, slices, replicas;
};
int sizes_stage(const struct run *r, const struct backend *b,
                const struct sizes_rank *rank, struct model_config *part,
                struct memory *out);

// What the rank of the run's mesh needs that needs most; its accum= says how
// many micro-batches there are to keep. 0, or -1 after fail().
int sizes_mesh(const struct run *r, const struct backend *b,
               struct memory *out);

// Of a part's parameters those that a slice of `slices` has (Shoeybi et al.,
// 2019): a share of the tables, of the matrices and of the biases of c_attn and
// c_fc; all of the rest.
double sizes_slice(const struct model_config *part, int slices);

// "2gb", "900mb" or "1.5gib" of key=. 0, or -1 after fail().
int sizes_bytes(const char *key, const char *text, double *out);

// Memory by part, a line each: the heads, and the numbers of a way.
void sizes_print_head(const char *first);
void sizes_print_row(const char *name, const struct memory *m);

#endif
