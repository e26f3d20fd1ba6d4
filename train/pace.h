// pace.h - a worker that sleeps instead of computing: pace=F,B.
//
// A forward of one chunk and one micro-batch takes F ms, a backward B ms, and
// what it waits for slices; all that travels does so as in training. So
// schedules can be measured with more stages than there are processors, or with
// another processor's times. Nothing is learned: gradients are 0, and there is
// no loss.

#ifndef TRAIN_PACE_H
#define TRAIN_PACE_H

#include "pipeline/timetable.h"

struct model_step;
struct trainer;

// Sleep an action's time, with the joins of its layers in between, spread
// evenly. A backward with a watermark lets it fall as time passes, as if all
// parameters of the chunk took equally long; a failed sync_ready() shows in
// t->ready_failed. 0, or -1 after fail().
int pace_action(struct trainer *t, struct action a, const struct model_step *s);

#endif
