// pace.h - lets a worker sleep instead of computing: pace=F,B.
//
// A forward of one chunk and one micro-batch takes F ms, a backward B ms, plus
// the waits for other slices. All messages travel as in training. This measures
// schedules with more stages than there are processors, or with another
// processor's times. Nothing is learned: gradients are 0, and there is no loss.

#pragma once

#include "pipeline/timetable.h"

struct model_step;
struct trainer;

// Sleep as long as an action takes, with the joins of its layers spread evenly
// over that time. A backward with a watermark lowers it as time passes, as if
// all parameters of the chunk took equally long; it sets t->ready_failed if
// sync_ready() fails. Returns 0, or -1 after fail().
int pace_action(struct trainer *t, struct action a, const struct model_step *s);
