// shape.h - the model that keys describe, and its blocks.

#ifndef TRAIN_SHAPE_H
#define TRAIN_SHAPE_H

struct bucket;
struct model_config;
struct model_job;
struct pipeline;
struct run;

// The preset, or the file that init= names, with the keys' numbers on top; of a
// file, no other than it has. The vocabulary is 0 where the data decides. 0, or
// -1 after fail().
int shape_model(const struct run *r, struct model_config *out);

// The model's blocks as buckets, in the order in which backward fills them, up
// to `most`. Returns how many there are.
int shape_blocks(const struct model_config *c, struct bucket *out, int most);

// Rooms, inputs and edges that a stage needs (train/stages.c), into *job; of
// one stage nothing. Inputs before shape_first_input() are of forwards that
// receive nothing; shape_ahead() gradients are received before their backward.
void shape_stage(const struct pipeline *p, int stage, struct model_job *job);
int shape_first_input(const struct pipeline *p, int stage);
int shape_ahead(const struct pipeline *p, int stage);

#endif
