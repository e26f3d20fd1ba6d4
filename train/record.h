// record.h - writes a run's files in the folder of out=: run.json before the
// run, summary.json after it.

#pragma once

#include "train/trainer.h"

// Make the folder of out=, open this rank's steps.csv, and on worker 0 write
// run.json. It is an error if the folder holds another run, unless this run
// resumes it. Does nothing if out= is empty. All workers call it. Returns 0, or
// -1 after fail().
int record_begin(struct trainer *t, int argc, char *const *argv);

// Merge all ranks' rows and write summary.json, on worker 0. All workers call
// it. Returns 0, or -1 after fail().
int record_end(struct trainer *t);
