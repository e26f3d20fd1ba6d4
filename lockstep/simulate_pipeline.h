// simulate_pipeline.h - `lockstep simulate pipeline=gpipe` computes the
// timetable of a step of a model that is divided into stages.

#ifndef LOCKSTEP_SIMULATE_PIPELINE_H
#define LOCKSTEP_SIMULATE_PIPELINE_H

#include <stdbool.h>
#include <stdio.h>

// Returns whether one of the words is pipeline=.
bool simulate_pipeline_is_asked(int nwords, char **words);

// Prints and draws the timetables that the words ask for. Returns the exit
// status, or -1 after fail().
int simulate_pipeline(int nwords, char **words);

// Prints its part of `lockstep simulate --help`.
void simulate_pipeline_explain(FILE *f);

#endif
