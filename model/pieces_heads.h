// pieces_heads.h - attention over divided sequences whose workers exchange
// heads for tokens.

#ifndef MODEL_PIECES_HEADS_H
#define MODEL_PIECES_HEADS_H

#include "model/layers.h"

struct model;

// The channels of q, of all tokens that an exchange gives or takes.
size_t pieces_heads_most(const struct model *m);

// Lays out the buffers of the exchanges.
void pieces_heads_layout(struct model *m, struct arena *a);

// heads (B, T", k, n) = the n channels of this worker's heads, of its group's
// tokens, from own (B, T', k, C) of the group's workers. pieces_to_tokens() is
// the other way. Both return 0, or -1 after fail().
int pieces_to_heads(struct model *m, const void *own, void *heads, int B,
                    int k);
int pieces_to_tokens(struct model *m, const void *heads, void *own, int B,
                     int k);

// The attention of this worker's heads.
struct attention pieces_heads_own(const struct model *m,
                                  const struct attention *a);

#endif
