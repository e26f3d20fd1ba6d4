// say.h - appends text to a buffer of fixed size.

#ifndef LOCKSTEP_SAY_H
#define LOCKSTEP_SAY_H

#include <stddef.h>

struct say {
    char *text; // `size` bytes; text that does not fit is truncated
    size_t size, at;
};

// Appends text, formatted as by printf().
void say(struct say *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

// Appends the j-th of n words of a list, with what is before it: "a", ", b",
// " and c".
void say_one_of(struct say *s, int j, int n, const char *word);

#endif
