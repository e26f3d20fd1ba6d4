// commands.h - the commands of `lockstep`. Each has a file of its own.

#ifndef LOCKSTEP_COMMANDS_H
#define LOCKSTEP_COMMANDS_H

#include <stdbool.h>
#include <stdio.h>

// One command: `lockstep NAME words...`. run() gets the words after the name
// and returns the exit status; -1 after fail().
struct command {
    const char *name;
    const char *words;        // what follows the name, for --help
    const char *help;         // one line; NULL: internal, --help omits it
    void (*explain)(FILE *f); // prints `NAME --help`; also for too few words
    bool all_keys;            // its --help also lists every key of a run
    int least;                // the least number of words
    bool hands_on;            // passes the words after the first to a program
    int (*run)(int nwords, char **words);
};

extern const struct command command_train, command_sample, command_doctor,
    command_keys, command_predict, command_simulate, command_pin, command_run,
    command_report, command_compare, command_watch, command_bench,
    command_enter, command_watchdog, command_fit, command_explain, command_demo,
    command_probe, command_plan, command_prepare, command_verify;

#endif
