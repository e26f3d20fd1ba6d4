// result_stages.h - computes how long the stages of a run waited, and how long
// they would have waited by the law and by the timetable.

#ifndef LOCKSTEP_RESULT_STAGES_H
#define LOCKSTEP_RESULT_STAGES_H

#include "lockstep/result.h"

// Sets the metrics of a run with stages, from its steps.csv and breakdown.csv:
//
//     BUBBLE            share of a step in which a stage waits: measured, mean
//                       of all stages
//     BUBBLE_LAW        the same if all stages are equal (timetable_bubble())
//     BUBBLE_TIMETABLE  the same if the timetable runs with each stage's
//                       measured forward and backward. Messages take no time.
//                       The rest of the measured step follows at the end.
//     STEP_TIMETABLE    seconds of the step of BUBBLE_TIMETABLE
//
// Leaves a metric NaN if the run has no stages or did not measure its parts.
void result_stages(struct result *r, const char *dir);

#endif
