// record.h - what the run leaves in OUT: run.json before, summary.json after.

#ifndef TRAIN_RECORD_H
#define TRAIN_RECORD_H

#include "train/trainer.h"

// Make OUT, open this rank's steps.csv, and on worker 0 write run.json. An OUT
// that holds another run is an error unless this one resumes it. Nothing at all
// where out= is empty.
int record_begin(struct trainer *t, int argc, char *const *argv);

// Merge the ranks' rows and write summary.json, on worker 0.
int record_end(struct trainer *t);

#endif
