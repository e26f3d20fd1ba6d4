// restart.c - decides whether a failed job is started again, and from which
// checkpoint.

#include "launch/restart.h"

#include "base/base.h"
#include "base/file.h"
#include "telemetry/cell.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE = 2048, WHY = 768, STEP = 3 };

static const double first_wait_s = 1, longest_wait_s = 60;

// Returns the step of the last whole row of a steps.csv; 0 if it has none.
static long last_row(const char *path)
{
    char line[LINE];
    long step = 0, read;
    FILE *f = file_open(path);
    while (f && fgets(line, sizeof line, f))
        if (strchr(line, '\n') &&
            sscanf(cell_at(line, STEP), "%ld", &read) == 1)
            step = read;
    if (f)
        fclose(f);
    return step;
}

// Returns the last step that a worker has done: the last one with a row.
static long last_step_of(const struct run *r, int rank)
{
    char path[CONFIG_PATH + 32];
    if (r->workers == 1)
        snprintf(path, sizeof path, "%s/steps.csv", r->out);
    else
        snprintf(path, sizeof path, "%s/steps.%d.csv", r->out, rank);
    return access(path, F_OK) ? 0 : last_row(path);
}

long restart_last_step(const struct run *r)
{
    long step = 0;
    for (int rank = 0; rank < r->workers; rank++) {
        long last = last_step_of(r, rank);
        step = last > step ? last : step;
    }
    return step;
}

// Writes the name of the newest checkpoint, "checkpoint-30"; "" before the
// first.
static void newest(const struct run *r, char out[64])
{
    char path[CONFIG_PATH + 16];
    snprintf(path, sizeof path, "%s/latest", r->out);
    char *text = access(path, F_OK) ? NULL : file_read(path, 4096);
    snprintf(out, 64, "%.*s", text ? (int)strcspn(text, "\n") : 0,
             text ? text : "");
    mem_free(text);
}

static void say(const char *log_path, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void say(const char *log_path, const char *fmt, ...)
{
    char line[LINE];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    log_line("%s", line);
    FILE *log = file_append(log_path);
    if (!log)
        return;
    fprintf(log, "[lockstep] %s\n", line);
    fclose(log);
}

// Sets the words for the next start: it resumes from this run's newest
// checkpoint, if there is one.
static int change_words(struct run *r, bool saved)
{
    return saved || !*r->resume ? config_set(r, "resume", "auto") : 0;
}

static void tell_restarts(const struct restart *s)
{
    char number[16];
    snprintf(number, sizeof number, "%d", s->done);
    setenv("LOCKSTEP_RESTARTS", number, 1);
}

// Returns the wait before a restart. It doubles with each restart.
static double wait_of(const struct restart *s)
{
    double wait_s = first_wait_s;
    for (int i = 1; i < s->done && wait_s < longest_wait_s; i++)
        wait_s *= 2;
    return wait_s > longest_wait_s ? longest_wait_s : wait_s;
}

bool restart_wanted(struct restart *s, struct run *r, const char *log_path,
                    bool lost)
{
    char why[WHY], from[64];
    long step = restart_last_step(r);
    snprintf(why, sizeof why, "%s", fail_message());
    if (s->done == r->restarts)
        return false;
    if (s->done > 0 && s->rank < 0 && step == s->failed_at && !lost) {
        fail("%s; not restarted: it failed after step %ld before, so it would "
             "fail again",
             why, step);
        return false;
    }
    s->failed_at = step;
    s->rank = -1;
    s->done++;
    newest(r, from);
    double wait_s = wait_of(s);
    say(log_path, "%s; restart %d of %d in %g s, from %s", why, s->done,
        r->restarts, wait_s,
        *from        ? from
        : *r->resume ? r->resume
                     : "step 0: there is no checkpoint yet");
    sleep_ns((uint64_t)(wait_s * 1e9));
    tell_restarts(s);
    return !change_words(r, *from);
}

double restart_worker_wanted(struct restart *s, struct run *r, int rank,
                             bool lost, char *why, size_t size)
{
    long step = last_step_of(r, rank);
    size_t at = strlen(why);
    if (s->done == r->restarts)
        return -1;
    if (s->done > 0 && s->rank == rank && step == s->failed_at && !lost) {
        snprintf(why + at, size - at,
                 "; not restarted: it failed after step %ld before, so it "
                 "would fail again",
                 step);
        return -1;
    }
    s->failed_at = step;
    s->rank = rank;
    s->done++;
    double wait_s = wait_of(s);
    snprintf(why + at, size - at,
             "; restart %d of %d, of rank %d alone, in %g s", s->done,
             r->restarts, rank, wait_s);
    tell_restarts(s);
    return wait_s;
}
