// sizes.h - the model that keys describe, and the memory that it takes.

#ifndef LOCKSTEP_SIZES_H
#define LOCKSTEP_SIZES_H

#include "train/memory.h"

struct run;

// shape_model(), with 256 symbols, those of bytes, where the data would
// decide. 0, or -1 after fail().
int sizes_model(const struct run *r, struct model_config *out);

// What a worker of so many needs for a step of the run under a backend, and one
// of its servers, if there are any. Without threads= a worker's share of this
// machine's cores. 0, or -1 after fail().
int sizes_memory(const struct run *r, const struct backend *b, int workers,
                 struct memory *worker, struct memory *server);

// Memory by part, a line each: the heads, and the numbers of a way.
void sizes_print_head(const char *first);
void sizes_print_row(const char *name, const struct memory *m);

#endif
