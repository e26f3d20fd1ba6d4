// man.h - prints manual pages and completion scripts from the table of commands
// and the table of keys, so that they say the same as --help.

#ifndef LOCKSTEP_MAN_H
#define LOCKSTEP_MAN_H

#include "lockstep/commands.h"

// Prints the manual page of "lockstep", "trainer" or "ps_server" as roff. `all`
// are the n commands of lockstep. 0, or -1 after fail().
int man_print(FILE *f, const char *program, const struct command *const *all,
              int n);

// Prints a script for "bash" or "zsh" that completes the words of lockstep,
// trainer and ps_server. 0, or -1 after fail().
int completion_print(FILE *f, const char *shell,
                     const struct command *const *all, int n);

#endif
