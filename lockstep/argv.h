// argv.h - a growing list of words for exec.

#ifndef LOCKSTEP_ARGV_H
#define LOCKSTEP_ARGV_H

#include "config/config.h"

enum { ARGV_MAX = 256, ARGV_TEXT = 16 * CONFIG_PATH };

struct argv {
    int n;
    char *at[ARGV_MAX + 1]; // NULL-terminated
    size_t used;
    char text[ARGV_TEXT];
};

// Append a word. -1 after fail() when there are too many.
int argv_add(struct argv *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
int argv_add_all(struct argv *a, int n, char *const *words);

// Append the path of a program of ours (base/share.h).
int argv_add_program(struct argv *a, const char *name);

#endif
