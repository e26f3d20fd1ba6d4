// man.h - manual pages and the words that a shell can complete, written from
// the table of commands and the table of keys: they say what --help says.

#ifndef LOCKSTEP_MAN_H
#define LOCKSTEP_MAN_H

#include "lockstep/commands.h"

// The page of a program as roff: "lockstep", "trainer" or "ps_server". 0, or -1
// after fail().
int man_print(FILE *f, const char *program, const struct command *const *all,
              int n);

// A script for "bash" or "zsh" that completes lockstep, trainer and ps_server.
// 0, or -1 after fail().
int completion_print(FILE *f, const char *shell,
                     const struct command *const *all, int n);

#endif
