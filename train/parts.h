// parts.h - the norm of a model whose parts several workers hold.
//
// All take the same step: the norm, and whether anything overflows, are of the
// sum over the slices of each stage, then over the stages, in their order. What
// several parts have counts once (part_counts()).

#ifndef TRAIN_PARTS_H
#define TRAIN_PARTS_H

struct trainer;

// t->parts; NULL where the model is whole. 0, or -1 after fail().
int parts_open(struct trainer *t);
void parts_close(struct trainer *t);

#endif
