// record.h - writes files of a run in OUT: run.json before the run,
// summary.json after it.

#ifndef TRAIN_RECORD_H
#define TRAIN_RECORD_H

#include "train/trainer.h"

// Make OUT, open this rank's steps.csv, and on worker 0 write run.json. An OUT
// that holds another run is an error unless this one resumes it. Does nothing
// if out= is empty.
int record_begin(struct trainer *t, int argc, char *const *argv);

// Merge the ranks' rows and write summary.json, on worker 0.
int record_end(struct trainer *t);

#endif
