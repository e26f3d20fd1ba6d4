// record.h - writes a run's files in the folder of out=: run.json before the
// run, summary.json after it. Fills in the rows of steps.csv.

#pragma once

#include "telemetry/span.h"
#include "train/trainer.h"

struct step_row;

// Make the folder of out=, open this rank's steps.csv, and on worker 0 rewind
// the folder to the checkpoint `folder` (state_rewind()) and write run.json. If
// an elastic job has lost worker 0, the first worker that is there does both.
// Worker 0 rewinds before any call returns, so that any worker may save. It is
// an error if the folder holds a run, unless this run resumes it. Does nothing
// if out= is empty. All workers call it. Returns 0, or -1 after fail().
int record_begin(struct trainer *t, const char *folder, int argc,
                 char *const *argv);

// The bytes and times of steps.csv so far. record_step() fills in a step's row:
// its results, and what there is more now than `before` the step. The caller
// fills in loss_scale, time_s and val_loss.
struct so_far {
    struct group_stats moved[MESH_AXES];
    uint64_t spent[SPAN_KINDS], bubble_ns; // bubble_ns: see struct trainer
};
struct so_far record_so_far(const struct trainer *t);
void record_step(struct trainer *t, const struct so_far *before,
                 const struct sync_in *in, const struct sync_out *out,
                 struct step_row *row);

// Merge all ranks' rows and write summary.json, on worker 0. All workers call
// it. Returns 0, or -1 after fail().
int record_end(struct trainer *t);
