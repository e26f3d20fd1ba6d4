// study.h - starts the Python package study/lockstep, which runs experiments,
// reads finished runs and makes forecasts.

#pragma once

#include "launch/command.h"

// Becomes a command of the package. Returns only after fail().
int study_become(const char *command, int nwords, char *const *words);

// Prints what a command says for --help, without the keys of a run. Commands of
// the package have no explain(): the package says it. Returns an exit status,
// after which the package has said why, or -1 after fail().
int study_explain(const struct command *c, FILE *f);
