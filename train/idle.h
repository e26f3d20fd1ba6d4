// idle.h - how long the stages of a run waited for each other, and how long
// they would have waited by the timetable.

#pragma once

struct trainer;

struct idle {
    double bubble; // share of a step in which a stage waited, mean of stages
    // The share and the seconds of a step if the timetable ran with each
    // stage's measured forward and backward, and messages took no time. The
    // rest of the measured step follows at the end. NAN: trace=off measures no
    // parts of a step; with slices, their joins are not part of forward.
    double timetable_bubble, timetable_s;
};

// For a run with stages, from its breakdown.csv and the seconds of a step,
// which are means over all steps of all ranks.
void idle_of(const struct trainer *t, double step_s, double bubble_s,
             struct idle *out);
