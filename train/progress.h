// progress.h - how the run goes, for a person or for the launcher.
//
// By hand worker 0 writes a line for people every log= steps, and where it has
// evaluated. Under the launcher (LOCKSTEP_PROGRESS set) every worker writes
// lines
//
//     @progress rank=0 world=4 step=10 steps=500 loss=2.31 tokens_per_s=5200
//     eta_s=93 line=1
//
// (one line each) to standard output, at most five a second besides those with
// line=1, which the launcher shows. tokens_per_s is the worker's own: its
// tokens of a step over the median of its latest steps.

#ifndef TRAIN_PROGRESS_H
#define TRAIN_PROGRESS_H

#include "train/trainer.h"

struct step_row;

enum { PROGRESS_STEPS = 1024 };

struct progress {
    bool supervised;
    uint64_t began, said;             // ns
    int first_step;                   // done when this process began
    uint64_t step_us[PROGRESS_STEPS]; // of the latest, in a ring
};

void progress_begin(struct progress *p, const struct trainer *t);
void progress_step(struct progress *p, const struct trainer *t,
                   const struct step_row *row);

#endif
