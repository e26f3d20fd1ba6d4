// part.h - a part of a model: some of its layers, a slice of its tensors.
//
// A stage of a pipeline has some layers:
//
//     whole      wte wpe | layer 0 ......................... L-1 | ln_f
//     stage 0    wte wpe | layer 0, 1, ..
//     stage 1            |            layer k, ..
//     the last   wte     |                         .., layer L-1 | ln_f
//
// The last stage has a wte of its own, for the head. It is tied to the first
// stage's wte: the trainer must add both gradients. With several chunks a stage
// has several runs of layers, one for each chunk. Chunk c of stage s is run
// number c * stages + s of all (pipeline/timetable.h).
//
// A slice of a model has all layers. Of each layer it has some heads, and some
// of the 4C numbers between the MLP's products (Shoeybi et al., "Megatron-LM",
// 2019, section 3):
//
//     wte                rows      some words
//     c_attn, c_fc       columns   q, k and v of some heads; some of 4C
//     both c_proj        rows      those that the columns' results multiply
//     the rest           whole     the same on all slices
//
// Sizes need not divide evenly: slice j of t has n/t of n heads, rounded down,
// and one more if j < n mod t. The 4C numbers and the words are divided in the
// same way.
//
// If the config has a part, all of layout.c is about the part's own vector: its
// length, its tensors under the whole's names, its initial numbers. But heads,
// channels and vocabulary in the config stay those of the whole model.

#pragma once

#include "model/model.h"

// Fills *out with the config of stage `stage` of `stages`. `layers` has the
// number of layers of each of the stages * chunks runs, in the order of the
// model. If it is NULL, the layers are divided evenly; if that leaves a rest,
// the first runs have one layer more. Returns 0, or -1 after fail() if a run
// would have no layer, or if the sum is not the model's number of layers.
int part_cut(const struct model_config *whole, int stages, int stage,
             int chunks, const int *layers, struct model_config *out);

// Fills *out with the config of slice `slice` of `slices` of c, a model or a
// stage. Returns 0, or -1 after fail() if a slice would have no head or no
// word.
int part_slice(const struct model_config *c, int slices, int slice,
               struct model_config *out);

// The config of the whole model that c is a part of, and whether c is the whole
// model.
struct model_config part_whole(const struct model_config *c);
bool part_is_whole(const struct model_config *c);

// Whether this part reads the tokens, and whether it computes the loss.
bool part_embeds(const struct model_config *c);
bool part_has_head(const struct model_config *c);

// part_layer() and part_tensor() return the number that this part's layer or
// tensor has in the whole model. part_chunks() returns the number of chunks.
// part_chunk() gives the layers [*from, *to) of a chunk, as this part numbers
// them.
int part_layer(const struct model_config *c, int layer);
int part_tensor(const struct model_config *c, int i);
int part_chunks(const struct model_config *c);
void part_chunk(const struct model_config *c, int chunk, int *from, int *to);

// Share k of n things that `shares` shares divide evenly.
struct part_share {
    int first, n;
};
struct part_share part_even(int n, int shares, int k);

// The heads, the 4C numbers between the MLP's products, and the words that a
// slice has. If tensors are whole, it has all.
struct part_share part_heads(const struct model_config *c);
struct part_share part_inner(const struct model_config *c);
struct part_share part_words(const struct model_config *c);

// The share that a slice has of `rows` rows of the residual stream, with
// model_slices.sequence.
struct part_share part_rows(const struct model_config *c, size_t rows);

// Elements [off, off + n) of this part are ranges of the whole model's vector.
// Calls fn() for each range; `at` is its first element in the whole vector. If
// fn() returns a number other than 0, part_ranges() stops and returns it, else
// 0.
typedef int part_range(void *ctx, size_t off, size_t n, size_t at);
int part_ranges(const struct model_config *c, size_t off, size_t n,
                part_range *fn, void *ctx);

// Whether slices divide tensor i among them.
bool part_divides(const struct model_config *c, int i);

// Whether tensor i counts in this part. The last stage's wte counts in the
// first stage, and tensors that all slices have count in slice 0. So over all
// parts each element counts once. part_counted_ranges() is part_ranges() of
// these elements only.
bool part_counts(const struct model_config *c, int i);
int part_counted_ranges(const struct model_config *c, size_t off, size_t n,
                        part_range *fn, void *ctx);
