// argv.h - collects the arguments of a command for exec().

#pragma once

#include "config/config.h"

enum { ARGV_MAX = 256, ARGV_TEXT = 16 * CONFIG_PATH };

struct argv {
    int n;
    char *at[ARGV_MAX + 1]; // NULL-terminated
    size_t used;
    char text[ARGV_TEXT];
};

// Append one word, formatted as by printf(), the words of a text, which blanks
// separate, or n words. The words are copied. 0, or -1 after fail() if there
// are more than ARGV_MAX words or ARGV_TEXT bytes.
int argv_add(struct argv *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
int argv_add_text(struct argv *a, const char *text);
int argv_add_all(struct argv *a, int n, char *const *words);

// Append the path of one of Lockstep's programs (base/share.h). 0, or -1 after
// fail() if it is not found.
int argv_add_program(struct argv *a, const char *name);
