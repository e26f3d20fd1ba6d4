// parts.h - finds the gradient norm of a model whose parts are on several
// workers.
//
// All parts make the same update: the norm and the overflow test use the sum
// over the slices of each stage, then over the stages in order. A tensor that
// several parts hold counts once (part_counts()).

#pragma once

struct trainer;

// Sets t->parts; NULL if this worker holds the whole model. parts_close() frees
// it. Returns 0, or -1 after fail().
int parts_open(struct trainer *t);
void parts_close(struct trainer *t);
