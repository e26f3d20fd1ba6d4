// say.h - sentences, one behind the other, into a buffer that may end.

#ifndef LOCKSTEP_SAY_H
#define LOCKSTEP_SAY_H

#include <stddef.h>

struct say {
    char *text; // of `size` bytes; what does not fit is cut
    size_t size, at;
};

void say(struct say *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

// The j-th of n words of an enumeration: "a", ", b", " and c".
void say_one_of(struct say *s, int j, int n, const char *word);

#endif
