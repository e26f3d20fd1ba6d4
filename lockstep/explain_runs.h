// explain_runs.h - makes a page that shows one step of each of several runs.

#ifndef LOCKSTEP_EXPLAIN_RUNS_H
#define LOCKSTEP_EXPLAIN_RUNS_H

#include <stdbool.h>

// Returns whether a word is the folder of a run.
bool explain_runs_are_asked(const char *word);

// Writes the page for the words RUN [RUN ..] [step=N] [out=FILE] [svg=FILE].
// Returns the exit status, or -1 after fail().
int explain_runs(int nwords, char **words);

#endif
