// record.h - writes a run's files in the folder of out=: run.json before the
// run, summary.json after it.

#pragma once

#include "train/trainer.h"

// Make the folder of out=, open this rank's steps.csv, and on worker 0 rewind
// the folder to the checkpoint `folder` (state_rewind()) and write run.json. If
// an elastic job has lost worker 0, the first worker that is there does both.
// Worker 0 rewinds before any call returns, so that any worker may save. It is
// an error if the folder holds another run, unless this run resumes it. Does
// nothing if out= is empty. All workers call it. Returns 0, or -1 after fail().
int record_begin(struct trainer *t, const char *folder, int argc,
                 char *const *argv);

// Merge all ranks' rows and write summary.json, on worker 0. All workers call
// it. Returns 0, or -1 after fail().
int record_end(struct trainer *t);
