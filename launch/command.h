// command.h - a command of `lockstep`. Each has a file of its own.
// lockstep/commands.h lists them all.

#pragma once

#include <stdbool.h>
#include <stdio.h>

// One command: `lockstep NAME words...`. run() gets the words after the name
// and returns the exit status; -1 after fail(). run_all(), in its place, gets
// all commands, too: a list that ends with NULL. If there is neither, the
// Python package has the command (study.h); without explain() it has its help.
struct command {
    const char *name;
    const char *words;        // what follows the name, for --help
    const char *help;         // one line; NULL: internal, --help omits it
    void (*explain)(FILE *f); // prints `NAME --help`; also for too few words
    bool all_keys;            // its --help also lists every key of a run
    int least;                // the least number of words
    bool hands_on;            // passes the words after the first to a program
    int (*run)(int nwords, char **words);
    int (*run_all)(const struct command *const *all, int nwords, char **words);
};
