// pass.h - passes over members' vectors that this member can all read.

#ifndef HOROVOD_RING_PASS_H
#define HOROVOD_RING_PASS_H

#include "group/group.h"

enum { PASS_WORLD = 256, PASS_BLOCK = 4096 };

// Each of d vectors dst = the sum of the k vectors src, in that order, in the
// type and wire of `v`: what their ring over messages gives, to the bit. A dst
// may be a src. n elements; at most PASS_BLOCK for the first, which is for one
// thread.
void pass_sum_block(const struct group_vector *v, char *const *dst, int d,
                    const char *const *src, int k, size_t n);
void pass_sum(const struct group_vector *v, char *const *dst, int d,
              const char *const *src, int k, size_t n);

// n elements of v's type.
void pass_copy(const struct group_vector *v, char *dst, const char *src,
               size_t n);

// n elements of v as they are after they have travelled in its wire.
void pass_round(const struct group_vector *v, char *at, size_t n);

#endif
