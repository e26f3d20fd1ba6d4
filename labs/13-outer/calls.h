// calls.h - lab 13: the calls between the grader and the student's process.

#ifndef LABS_OUTER_CALLS_H
#define LABS_OUTER_CALLS_H

#include "labs/13-outer/outer.h"

enum { OUTER_STEP, OUTER_TRAIN };

enum { OUTER_INNER }; // the function that the grader offers

struct outer_rates {
    float lr, momentum;
};

#endif
