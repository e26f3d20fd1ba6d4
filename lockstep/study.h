// study.h - starts the Python package study/lockstep, which runs experiments
// and reads finished runs: run, report, compare, verify, watch, and explain
// of runs.

#ifndef LOCKSTEP_STUDY_H
#define LOCKSTEP_STUDY_H

#include <stdio.h>

// Runs a command of the package with two words, or fewer if they are NULL, and
// writes to `to` what it prints. 0, or -1 after fail(); the package has then
// said why on standard error.
int study_call(FILE *to, const char *command, const char *word,
               const char *next);

// Becomes a command of the package. Returns only after fail().
int study_become(const char *command, int nwords, char *const *words);

#endif
