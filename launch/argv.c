// argv.c - collects the arguments of a command in one buffer.

#include "launch/argv.h"

#include "base/base.h"
#include "base/share.h"

#include <stdarg.h>
#include <string.h>

int argv_add(struct argv *a, const char *fmt, ...)
{
    size_t space = sizeof a->text - a->used;
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(a->text + a->used, space, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= space || a->n == ARGV_MAX)
        return fail("a command of more than %d words or %d bytes", ARGV_MAX,
                    ARGV_TEXT);
    a->at[a->n++] = a->text + a->used;
    a->at[a->n] = NULL;
    a->used += (size_t)n + 1;
    return 0;
}

int argv_add_text(struct argv *a, const char *text)
{
    for (size_t n; *(text += strspn(text, " ")); text += n) {
        n = strcspn(text, " ");
        if (argv_add(a, "%.*s", (int)n, text))
            return -1;
    }
    return 0;
}

int argv_add_all(struct argv *a, int n, char *const *words)
{
    for (int i = 0; i < n; i++) {
        if (argv_add(a, "%s", words[i]))
            return -1;
    }
    return 0;
}

int argv_add_program(struct argv *a, const char *name)
{
    char path[CONFIG_PATH];
    return share_program(path, sizeof path, name) ? -1
                                                  : argv_add(a, "%s", path);
}
