// group_simulated.h - carriers of simulated ranks.

#pragma once

#include "group/group.h"

// Our ring, whose law is that of ring_tcp; and SimGrid's MPI. Before a ring is
// opened, contents_open() and simulated_messages() must be called.
extern const struct group_ops ring_simulated, library_simulated;

// Rings that are opened after it have messages of at most `most` bytes behind
// the head, real ones or not (`payload`). A rank has `ahead` of them (1 or 2)
// under way at a time; with send and recv, to each other member. One is as in a
// TCP stream. With two, the latency of one overlaps with the bytes of the
// other; but on a link that other messages use too, the simulator would divide
// the link among all of them, and the second would delay the first. All ranks
// are one process: what one says holds for all, until the next call.
void simulated_messages(size_t most, int ahead, bool payload);
