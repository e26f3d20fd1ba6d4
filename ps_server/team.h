// team.h - the threads of a server: one piece of work, cut in parts, at a time.
//
// What a part is does not depend on how many threads there are, so neither do
// the bits.

#ifndef PS_SERVER_TEAM_H
#define PS_SERVER_TEAM_H

#include "base/half.h"

#include <stddef.h>

struct team;

// `threads` >= 1, the caller's counted. 0, or -1 after fail().
int team_open(struct team **t, int threads);
void team_close(struct team **t);

// fn(ctx, part) for all parts in [0, parts), and return when all are done.
typedef void team_part(void *ctx, size_t part);
void team_run(struct team *t, team_part *fn, void *ctx, size_t parts);

// dst = src, or dst += src; n elements of format `from`.
void team_copy(struct team *t, float *dst, const void *src, enum dtype from,
               size_t n);
void team_add(struct team *t, float *dst, const void *src, enum dtype from,
              size_t n);

// Sum of squares, in double, in a fixed order.
double team_sum_squares(struct team *t, const float *g, size_t n);

#endif
