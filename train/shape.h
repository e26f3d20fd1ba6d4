// shape.h - the model that keys describe, and its blocks.

#ifndef TRAIN_SHAPE_H
#define TRAIN_SHAPE_H

struct bucket;
struct model_config;
struct run;

// The preset, or the file that init= names, with the keys' numbers on top; of a
// file, no other than it has. The vocabulary is 0 where the data decides. 0, or
// -1 after fail().
int shape_model(const struct run *r, struct model_config *out);

// The model's blocks as buckets, in the order in which backward fills them, up
// to `most`. Returns how many there are.
int shape_blocks(const struct model_config *c, struct bucket *out, int most);

#endif
