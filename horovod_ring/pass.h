// pass.h - loops over several members' vectors, all in memory that this member
// can read.

#pragma once

#include "group/group.h"

enum { PASS_WORLD = 256, PASS_BLOCK = 4096 };

// Sets each of the d vectors dst to the sum of the k vectors src, which are
// added in that order, in the type and wire of `v`. The bits are those of a
// ring of messages. A dst may be a src. The vectors have n elements.
// pass_sum_block() uses one thread, and n is at most PASS_BLOCK there.
void pass_sum_block(const struct group_vector *v, char *const *dst, int d,
                    const char *const *src, int k, size_t n);
void pass_sum(const struct group_vector *v, char *const *dst, int d,
              const char *const *src, int k, size_t n);

// Copies n elements of v's type.
void pass_copy(const struct group_vector *v, char *dst, const char *src,
               size_t n);

// Rounds n elements at `at`: casts them to v's wire format and back.
void pass_round(const struct group_vector *v, char *at, size_t n);
