// lr_schedule.h - the learning rate of a step, and the loss scale of fp16.

#pragma once

#include <stdbool.h>

enum schedule_kind { SCHEDULE_CONSTANT, SCHEDULE_COSINE, SCHEDULE_LINEAR };

struct schedule {
    enum schedule_kind kind;
    float lr, min_lr; // the peak, and the rate after the last step
    int warmup;       // steps of linear rise from lr/warmup to lr
    int steps;        // of the whole run
};

// The learning rate of a step, counted from 0. From `steps` on it is min_lr, or
// lr if the schedule is constant.
float schedule_lr(const struct schedule *s, int step);

// Dynamic loss scaling (Micikevicius et al., ICLR 2018): the scale is halved on
// overflow, and doubled after `window` steps without one. A static scale has
// window 0.
struct loss_scale {
    float scale;
    int window; // steps; 0: never change
    int good;   // steps since the last change or overflow
};

// Adapts the scale after a step; it stays in [1, 2^24]. `overflow`: the step
// was skipped (sync_out.skipped, sync/sync.h).
void loss_scale_update(struct loss_scale *s, bool overflow);
