// summary.h - writes summary.json after the last step.
//
// It has the numbers of the whole job. With a mesh it also has those of each
// rank: bytes sent in a step by axis (dp: between replicas; pp: between stages;
// tp: between slices), peak memory, and the predicted memory by part. With
// stages it has the idle share of a step, and that of the timetable.

#pragma once

struct trainer;

// All workers call it. The lowest rank that is here merges the files of all
// workers in the folder of out= and writes summary.json. A worker of an elastic
// job that ends after the others writes both anew. Returns 0, or -1 after
// fail().
int summary_write(const struct trainer *t);
