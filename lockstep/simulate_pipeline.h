// simulate_pipeline.h - `lockstep simulate pipeline=gpipe`: a step of a model
// that is cut into stages, on paper.

#ifndef LOCKSTEP_SIMULATE_PIPELINE_H
#define LOCKSTEP_SIMULATE_PIPELINE_H

#include <stdbool.h>
#include <stdio.h>

// Whether one of the words is pipeline=..
bool simulate_pipeline_is_asked(int nwords, char **words);

// The timetables of all that the words ask for, printed and drawn: the exit
// status, or -1 after fail().
int simulate_pipeline(int nwords, char **words);

// Its words, for --help.
void simulate_pipeline_explain(FILE *f);

#endif
