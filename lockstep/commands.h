// commands.h - the commands of `lockstep`, one a file.

#ifndef LOCKSTEP_COMMANDS_H
#define LOCKSTEP_COMMANDS_H

#include <stdbool.h>
#include <stdio.h>

// One command: `lockstep NAME words...`. run() gets the words after the name
// and returns the exit status; -1 after fail().
struct command {
    const char *name;
    const char *words;        // what follows the name, for --help
    const char *help;         // one line; NULL: not for people, not listed
    void (*explain)(FILE *f); // for `NAME --help`, and where words are missing
    bool all_keys;            // its --help goes on with every key of a run
    int least;                // words that it needs
    bool hands_on;            // words behind the first are another program's
    int (*run)(int nwords, char **words);
};

extern const struct command command_train, command_sample, command_doctor,
    command_keys, command_predict, command_simulate, command_pin, command_run,
    command_report, command_compare, command_watch, command_bench,
    command_enter, command_watchdog, command_fit, command_explain, command_demo,
    command_probe;

#endif
