// say.c - see say.h.

#include "lockstep/say.h"

#include <stdarg.h>
#include <stdio.h>

void say(struct say *s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(s->text + s->at, s->size - s->at, fmt, ap);
    va_end(ap);
    s->at += n < 0 ? 0 : (size_t)n;
    if (s->at >= s->size)
        s->at = s->size - 1;
}

void say_one_of(struct say *s, int j, int n, const char *word)
{
    say(s, "%s%s", j == 0 ? "" : j == n - 1 ? " and " : ", ", word);
}
