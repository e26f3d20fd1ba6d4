// error.c - fail(), die(), CHECK() and the log.
//
// The message is thread-local so that a communication thread's failure does not
// overwrite the trainer's. The other two globals, log_rank and for_launcher,
// only say how a log line begins.

#include "base/base.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Thread_local char message[1024];
static int log_rank = -1;
static bool for_launcher;

// Some errors have the same remedy wherever they are noticed.
static void add_remedy(char *text, size_t size, int error, const char *remedy)
{
    const char *name = strerror(error);
    size_t n = strlen(text), most = strlen(name);
    if (n >= most && !strcmp(text + n - most, name))
        snprintf(text + n, size - n, "; try: %s", remedy);
}

int fail(const char *fmt, ...)
{
    char next[sizeof message]; // fmt's arguments may point into message
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(next, sizeof next, fmt, ap);
    va_end(ap);
    add_remedy(next, sizeof next, ENOSPC, "df, or out= on another disk");
    add_remedy(next, sizeof next, EMFILE, "ulimit -n 4096");
    memcpy(message, next, sizeof message);
    return -1;
}

const char *fail_message(void)
{
    return message;
}

// Replaces control characters, also those that Unicode has from 0x80 on.
void text_visible(char *text)
{
    for (unsigned char *p = (unsigned char *)text; *p; p++) {
        if (*p < ' ' || *p == 127)
            *p = '?';
        else if (p[0] == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0)
            p[0] = p[1] = '?';
    }
}

// One write() a line, so that lines of several ranks do not mix.
static void write_line(bool error, const char *fmt, va_list ap)
{
    char line[1280], rank[16] = "";
    if (log_rank >= 0)
        snprintf(rank, sizeof rank, "[%d]", log_rank);
    int at = 0;
    if (error && for_launcher)
        at = snprintf(line, sizeof line, LOG_ERROR_MARK);
    else if (error)
        at = snprintf(line, sizeof line,
                      "%.99s%s: ", program_invocation_short_name, rank);
    else if (*rank)
        at = snprintf(line, sizeof line, "%s ", rank);
    char *text = line + at;
    at += vsnprintf(text, sizeof line - 1 - (size_t)at, fmt, ap);
    text_visible(text);
    if (at > (int)sizeof line - 2)
        at = sizeof line - 2;
    line[at++] = '\n';
    if (write(STDERR_FILENO, line, (size_t)at) < 0)
        return; // the error cannot be reported anywhere
}

void log_set_rank(int rank)
{
    log_rank = rank;
}

void log_for_launcher(void)
{
    for_launcher = getenv("LOCKSTEP_PROGRESS") != NULL;
}

void log_as_lockstep(void)
{
    static char name[] = "lockstep";
    program_invocation_short_name = name;
}

void log_line(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    write_line(false, fmt, ap);
    va_end(ap);
}

void log_error(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    write_line(true, fmt, ap);
    va_end(ap);
}

void die(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    write_line(true, fmt, ap);
    va_end(ap);
    exit(1);
}

void check_failed(const char *file, int line, const char *cond)
{
    log_error("%s:%d: CHECK(%s) failed: a bug in lockstep", file, line, cond);
    abort();
}

int text_into(char *out, size_t size, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(out, size, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= size)
        return fail("text of %d bytes does not fit in %zu: %.60s...", n, size,
                    out);
    return 0;
}
