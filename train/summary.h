// summary.h - summary.json, once the last step is done.
//
// Beside the numbers of the whole job it has, of a mesh, those of each rank:
// payload out in a step by axis (dp: what replicas exchange; pp: what stages
// do), peak memory, and what was predicted of it, by part.

#ifndef TRAIN_SUMMARY_H
#define TRAIN_SUMMARY_H

struct trainer;

// A call of all workers. Worker 0 joins what all have left in OUT and writes
// it. 0, or -1 after fail().
int summary_write(const struct trainer *t);

#endif
