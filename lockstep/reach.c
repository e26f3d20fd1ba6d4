// reach.c - runs ssh, or the program of LOCKSTEP_RSH, as a child with pipes.

#include "lockstep/reach.h"

#include "base/base.h"
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANSWER "@answer "
#define ERROR  "error "

static const double end_s = 1;

static int prepare(void *arg)
{
    (void)arg;
    signal(SIGPIPE, SIG_DFL);
    return 0;
}

static int start(struct reach *r, char *const *argv)
{
    struct process p = {.words = argv,
                        .in = PROCESS_PIPE,
                        .out = PROCESS_PIPE,
                        .err = PROCESS_OUTPUT,
                        .group = true,
                        .orphan = SIGKILL,
                        .prepare = prepare};
    if (process_start(&p))
        return -1;
    r->pid = p.pid;
    r->in = p.ends[0];
    r->out = p.ends[1];
    fcntl(r->out, F_SETFL, O_NONBLOCK);
    return 0;
}

int reach_open(struct reach *r, const struct host *host)
{
    struct argv *a = mem_alloc(1, sizeof *a);
    *r = (struct reach){.host = host, .pid = -1, .in = -1, .out = -1};
    int rc = !a || hosts_reach(a, host, "probe") || start(r, a->at) ? -1 : 0;
    mem_free(a);
    return rc;
}

int reach_ask(struct reach *r, const char *fmt, ...)
{
    char line[REACH_TEXT];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof line - 1, fmt, ap);
    va_end(ap);
    if (n < 0 || n >= (int)sizeof line - 1)
        return fail("a question of more than %d bytes", REACH_TEXT);
    line[n++] = '\n';
    r->asked++;
    // If the probe has ended, reach_take() says why.
    return write(r->in, line, (size_t)n) == n || errno == EPIPE
               ? 0
               : fail("%s: %s", r->host->name, strerror(errno));
}

// Takes a whole line from the bytes read; false if there is none yet.
static bool next_line(struct reach *r, char *out, size_t size)
{
    char *end = memchr(r->text, '\n', r->n);
    if (!end && r->n < sizeof r->text)
        return false;
    size_t n = end ? (size_t)(end - r->text) : r->n;
    snprintf(out, size, "%.*s", (int)n, r->text);
    out[strcspn(out, "\r")] = '\0';
    n += end != NULL;
    r->n -= n;
    memmove(r->text, r->text + n, r->n);
    return true;
}

static int ended(const struct reach *r)
{
    const char *last = *r->last ? r->last : "it ended without a message";
    return fail("%s", last);
}

// Returns whether this is a late answer to an earlier question. If not, moves
// *text behind the question's number. An older Lockstep answers without a
// number. The first answer tells its version, and then it gets no more
// questions.
static bool is_late(const struct reach *r, const char **text)
{
    char *end;
    long number = strtol(*text, &end, 10);
    if (end == *text || *end != '\t')
        return false;
    *text = end + 1;
    return number < r->asked;
}

int reach_take(struct reach *r, uint64_t until, char *out, size_t size)
{
    char line[REACH_TEXT + 1];
    for (;;) {
        while (next_line(r, line, sizeof line)) {
            const char *text = line + strlen(ANSWER);
            if (strncmp(line, ANSWER, strlen(ANSWER))) {
                snprintf(r->last, sizeof r->last, "%.255s", line);
                text_visible(r->last);
                continue;
            }
            if (is_late(r, &text))
                continue;
            if (!strncmp(text, ERROR, strlen(ERROR)))
                return fail("%s", text + strlen(ERROR));
            return text_into(out, size, "%s", text);
        }
        // Reads once even after `until`: waiting for other hosts may have
        // taken the time.
        uint64_t now = now_ns(), left = now < until ? until - now : 0;
        struct pollfd p = {.fd = r->out, .events = POLLIN};
        if (poll(&p, 1, (int)((left + 999999) / 1000000)) <= 0 && !left)
            return fail("no answer in time%s%s", *r->last ? ": " : "", r->last);
        ssize_t got = read(r->out, r->text + r->n, sizeof r->text - r->n);
        if (got == 0)
            return ended(r);
        r->n += got > 0 ? (size_t)got : 0;
    }
}

void reach_close(struct reach *r)
{
    if (r->in >= 0)
        close(r->in);
    if (r->out >= 0)
        close(r->out);
    char name[] = "probe", *const words[] = {name, NULL};
    struct process p = {.words = words, .group = true, .pid = r->pid};
    if (r->pid > 0)
        process_wait(&p, end_s); // a killed one is no error
    r->pid = r->in = r->out = -1;
}
