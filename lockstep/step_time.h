// step_time.h - measures how long one worker computes a step on this machine.

#ifndef LOCKSTEP_STEP_TIME_H
#define LOCKSTEP_STEP_TIME_H

struct model_config;
struct run;

enum { STEP_TIME_STEPS = 3 };

struct step_time { // seconds of a step
    double step_s, forward_s, backward_s, update_s;
};

// Trains the model *c for STEP_TIME_STEPS steps in a process of its own, with
// the batch, accum, precision, recompute, optimizer, momentum, data and threads
// of *r. 0, or -1 after fail().
int step_time(const struct run *r, const struct model_config *c,
              struct step_time *out);

#endif
