// pieces.h - attention over sequences that several workers divide.

#pragma once

#include "model/layers.h"

// The longest run of keys or queries that attention has at a time: a whole
// sequence, or a run of one.
int pieces_longest(const struct model_job *job);

// Lays out the buffers of the exchanges.
void pieces_layout(struct model *m, struct arena *a);

// The bytes of the largest vector that an exchange gives or takes.
size_t pieces_exchanged(const struct model_job *job);

// The model's attention for this worker's tokens. pieces_attention() reads
// l->qkv, or where heads are exchanged m->local, and writes l->att and l->lse.
// pieces_backward() writes dqkv (B, T', 3C) from dout (B, T', C). Both return
// 0, or -1 after fail().
int pieces_attention(struct model *m, const struct layer *l,
                     const struct attention *a);
int pieces_backward(struct model *m, const struct layer *l, void *dqkv,
                    const void *dout, const struct attention *a);
