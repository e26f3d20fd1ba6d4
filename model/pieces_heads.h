// pieces_heads.h - attention over divided sequences whose workers exchange
// heads for tokens.

#ifndef MODEL_PIECES_HEADS_H
#define MODEL_PIECES_HEADS_H

#include "model/layers.h"

struct model;

// Lays out the buffers of the exchanges.
void pieces_heads_layout(struct model *m, struct arena *a);

// pieces_heads_attention() computes l->att of this worker's tokens from their
// q, k and v of all heads, m->local (B, T', 3C). pieces_heads_backward() writes
// the gradient of these to dqkv, from dout (B, T', C). Both return 0, or -1
// after fail().
int pieces_heads_attention(struct model *m, const struct layer *l,
                           const struct attention *a);
int pieces_heads_backward(struct model *m, const struct layer *l, void *dqkv,
                          const void *dout, const struct attention *a);

#endif
