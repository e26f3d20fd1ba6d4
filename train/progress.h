// progress.h - progress reports for a person or for the launcher.
//
// A run without launcher: worker 0 prints a line for people every log= steps,
// and after each evaluation. Under the launcher (LOCKSTEP_PROGRESS is set)
// every worker prints lines
//
//     @progress rank=0 world=4 step=10 steps=500 loss=2.31 val_loss=nan
//     tokens_per_s=5200 eta_s=93 memory_bytes=61000000 line=1
//
// (one line each) to standard output. The launcher shows those with line=1.
// There are at most five others a second. val_loss is nan except after an
// evaluation. tokens_per_s is the worker's own rate: its tokens of a step
// divided by the median time of its latest steps.

#pragma once

#include "train/trainer.h"

struct step_row;

enum { PROGRESS_STEPS = 1024 };

struct progress {
    bool supervised;
    uint64_t began, said;             // ns
    int first_step;                   // steps done before this process began
    uint64_t step_us[PROGRESS_STEPS]; // of the latest steps, a ring buffer
};

// Prints what runs: workers, parameters, memory.
void progress_begin(struct progress *p, const struct trainer *t);
// Reports the step of *row if a report is due. After the last step it also logs
// the peak memory.
void progress_step(struct progress *p, const struct trainer *t,
                   const struct step_row *row);
