// result_stages.h - what the stages of a run waited, beside what they should.

#ifndef LOCKSTEP_RESULT_STAGES_H
#define LOCKSTEP_RESULT_STAGES_H

#include "lockstep/result.h"

// Of a run with stages, by DIR's steps.csv and breakdown.csv: the share of a
// step in which a stage waits for others, the mean of all; the same by the law
// of equal stages (timetable_bubble()), and by the timetable run with each
// stage's measured times of forward and backward, links taking none, and
// what else is in a step behind it; the time of that step. NaN where the
// run has no stages, or what it takes was not measured.
void result_stages(struct result *r, const char *dir);

#endif
