// progress.h - how the run goes, for a person or for the launcher.
//
// Under the launcher (LOCKSTEP_PROGRESS set) every worker writes lines
//
//     @progress rank=0 step=10 steps=500 loss=2.31 tokens_per_s=5200 eta_s=93
//
// to standard output, at most five a second; by hand worker 0 writes a line
// for people every log= steps.

#ifndef TRAIN_PROGRESS_H
#define TRAIN_PROGRESS_H

#include "train/trainer.h"

struct step_row;

struct progress {
    bool supervised;
    uint64_t began, said; // ns
    int first_step;       // done when this process began
};

void progress_begin(struct progress *p, const struct trainer *t);
void progress_step(struct progress *p, const struct trainer *t,
                   const struct step_row *row);

#endif
