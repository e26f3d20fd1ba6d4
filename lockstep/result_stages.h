// result_stages.h - how long the stages of a run waited, and should wait.

#ifndef LOCKSTEP_RESULT_STAGES_H
#define LOCKSTEP_RESULT_STAGES_H

#include "lockstep/result.h"

// Sets the metrics of a run with stages, from its steps.csv and breakdown.csv:
//
//     BUBBLE            share of a step in which a stage waits, mean of all
//     BUBBLE_LAW        the same for equal stages (timetable_bubble())
//     BUBBLE_TIMETABLE  the same by the timetable with each stage's measured
//                       forward and backward, without time for messages, and
//                       with the rest of a step behind it
//     STEP_TIMETABLE    seconds of that step
//
// Leaves a metric NaN if the run has no stages or did not measure its parts.
void result_stages(struct result *r, const char *dir);

#endif
