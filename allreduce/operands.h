// operands.h - the elements that a member gives to a library's verb, and those
// that it gets back.
//
//     verb              given           taken
//     all_reduce        n               n
//     reduce_scatter    n               its chunk
//     all_gather        its chunk       n
//     broadcast         n (root only)   n (all but the root)
//     reduce            n               n (root only)
//     send              n               0
//     recv              0               n
//     all_to_all        what other members get and give
//
// A library does not report what it sends. So its carriers count these
// elements, in the wire's format: for an all_reduce of S bytes, S out and S in
// (a ring inside the library moves 2(size-1)/size of that).

#pragma once

#include "group/group.h"

// The elements that this member gives, and those that it takes, as a range of
// the vector.
struct group_chunk operand_given(const struct group *g,
                                 const struct group_op *op);
struct group_chunk operand_taken(const struct group *g,
                                 const struct group_op *op);

// Adds the bytes given and taken to g->moved.
void operands_count(struct group *g, const struct group_op *op);
