// part.h - a model that is cut into the stages of a pipeline: what a stage has.
//
//     whole      wte wpe | layer 0 ......................... L-1 | ln_f
//     stage 0    wte wpe | layer 0, 1, ..
//     stage 1            |            layer k, ..
//     the last   wte     |                         .., layer L-1 | ln_f
//
// Where the config has a part, all of layout.c is about the stage's own vector:
// its length, its tensors under the whole's names, its initial numbers. The
// last stage has a wte of its own, for the head, which is tied to the first's:
// whoever trains them adds up both gradients.
//
// With several chunks a stage has as many runs of layers, chunk c of stage s
// being number c stages + s of all (pipeline/timetable.h).

#ifndef MODEL_PART_H
#define MODEL_PART_H

#include "model/model.h"

// The config of a stage of `stages`. layers: how many each of the stages *
// chunks runs has, stage by stage; NULL: as many as the others or one more, the
// first ones. 0, or -1 after fail() where a run would have none, or the sum is
// not the model's.
int part_cut(const struct model_config *whole, int stages, int stage,
             int chunks, const int *layers, struct model_config *out);

// The config of the whole, of which this is a part or all.
struct model_config part_whole(const struct model_config *c);

// Whether tokens come in here, and whether the loss comes out.
bool part_embeds(const struct model_config *c);
bool part_has_head(const struct model_config *c);

// The whole's number of a layer here, and the layers [*from, *to) of a chunk.
int part_layer(const struct model_config *c, int layer);
int part_chunks(const struct model_config *c);
void part_chunk(const struct model_config *c, int chunk, int *from, int *to);

// Most layers of a chunk.
int part_largest(const struct model_config *c);

// Elements [off, off + n) here are ranges of the whole's vector: fn() is called
// with each, `at` being where the whole has it. 0, or what fn() returned other
// than 0, which ends it.
typedef int part_range(void *ctx, size_t off, size_t n, size_t at);
int part_ranges(const struct model_config *c, size_t off, size_t n,
                part_range *fn, void *ctx);

#endif
