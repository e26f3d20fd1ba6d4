// argv.c - collects the arguments of a command in one buffer.

#include "lockstep/argv.h"

#include "base/base.h"
#include "base/process.h"
#include "base/share.h"

#include <stdarg.h>

enum { HELP_S = 60 };

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

int argv_help(const char *name, FILE *f)
{
    char path[CONFIG_PATH], help[] = "--help";
    char *const words[] = {path, help, NULL};
    struct process p = {.words = words, .out = fileno(f)};
    if (share_program(path, sizeof path, name))
        return -1;
    int rc = process_run(&p, HELP_S);
    return rc > 0 ? fail("%s --help: failed", name) : rc;
}
