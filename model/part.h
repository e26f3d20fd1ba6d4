// part.h - a part of a model: some of its layers, a slice of its tensors.
//
// A stage of a pipeline has some layers:
//
//     whole      wte wpe | layer 0 ......................... L-1 | ln_f
//     stage 0    wte wpe | layer 0, 1, ..
//     stage 1            |            layer k, ..
//     the last   wte     |                         .., layer L-1 | ln_f
//
// The last stage has a wte of its own, for the head, which is tied to the
// first's: whoever trains them adds up both gradients. With several chunks a
// stage has as many runs of layers, chunk c of stage s being number c stages +
// s of all (pipeline/timetable.h).
//
// Of a model in slices each has all layers, and of each layer some heads and
// some of the 4C numbers between the MLP's products (Shoeybi et al.,
// "Megatron-LM", 2019, section 3):
//
//     wte                rows      some words
//     c_attn, c_fc       columns   q, k and v of some heads; some of 4C
//     both c_proj        rows      which take what those columns give
//     the rest           whole     the same on all slices
//
// With n heads (of 4C numbers, of words) slice j of t has n/t, and one more
// where j < n mod t: nothing needs to divide evenly.
//
// Where the config has a part, all of layout.c is about the part's own vector:
// its length, its tensors under the whole's names, its initial numbers. Heads,
// channels and vocabulary of the config stay the whole's.

#ifndef MODEL_PART_H
#define MODEL_PART_H

#include "model/model.h"

// The config of a stage of `stages`. layers: how many each of the stages *
// chunks runs has, stage by stage; NULL: as many as the others or one more, the
// first ones. 0, or -1 after fail() where a run would have none, or the sum is
// not the model's.
int part_cut(const struct model_config *whole, int stages, int stage,
             int chunks, const int *layers, struct model_config *out);

// The config of slice `slice` of `slices` of a model or of a stage. 0, or -1
// after fail() where it would have no head or no word.
int part_slice(const struct model_config *c, int slices, int slice,
               struct model_config *out);

// The config of the whole, of which this is a part or all; whether it is all.
struct model_config part_whole(const struct model_config *c);
bool part_is_whole(const struct model_config *c);

// Whether tokens come in here, and whether the loss comes out.
bool part_embeds(const struct model_config *c);
bool part_has_head(const struct model_config *c);

// The whole's number of a layer here, and of a tensor; the layers [*from, *to)
// of a chunk.
int part_layer(const struct model_config *c, int layer);
int part_tensor(const struct model_config *c, int i);
int part_chunks(const struct model_config *c);
void part_chunk(const struct model_config *c, int chunk, int *from, int *to);

// Most layers of a chunk.
int part_largest(const struct model_config *c);

// Of the heads, of the 4C numbers between the MLP's products, and of the words
// of the vocabulary: those that a slice has; all where tensors are whole.
struct part_share {
    int first, n;
};
struct part_share part_heads(const struct model_config *c);
struct part_share part_inner(const struct model_config *c);
struct part_share part_words(const struct model_config *c);

// How the elements of a tensor here lie in the whole's: element k of piece p of
// row r is element r width + at + p apart + k.
struct part_box {
    size_t rows, width, pieces, apart, at;
    size_t n; // of a piece
};
struct part_box part_box(const struct model_config *c, int i);

// Elements [off, off + n) here are ranges of the whole's vector: fn() is called
// with each, `at` being where the whole has it. 0, or what fn() returned other
// than 0, which ends it.
typedef int part_range(void *ctx, size_t off, size_t n, size_t at);
int part_ranges(const struct model_config *c, size_t off, size_t n,
                part_range *fn, void *ctx);

// Whether slices divide tensor i among them.
bool part_divides(const struct model_config *c, int i);

// Whether tensor i counts here: another part has the last stage's wte, too, and
// slice 0 has all that is the same on all slices. Together the parts have each
// element that counts once. The ranges of those alone.
bool part_counts(const struct model_config *c, int i);
int part_counted_ranges(const struct model_config *c, size_t off, size_t n,
                        part_range *fn, void *ctx);

#endif
