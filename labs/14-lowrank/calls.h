// calls.h - lab 14: the calls between the grader and the student's process.

#ifndef LABS_LOWRANK_CALLS_H
#define LABS_LOWRANK_CALLS_H

#include "labs/14-lowrank/lowrank.h"

enum { LOWRANK_ORTHOGONAL, LOWRANK_EXCHANGE };

enum { LOWRANK_SUM }; // the function that the grader offers

#endif
