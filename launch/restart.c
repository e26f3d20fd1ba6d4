// restart.c - decides whether a failed job is started again, and from which
// checkpoint.

#include "launch/restart.h"

#include "base/base.h"
#include "base/file.h"
#include "telemetry/cell.h"
#include "train/folder.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE = 2048, WHY = 1280, STEP = 3 };

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

// Returns the wait before a restart. It doubles with each restart.
static double wait_of(const struct restart *s)
{
    double wait_s = first_wait_s;
    for (int i = 1; i < s->done && wait_s < longest_wait_s; i++)
        wait_s *= 2;
    return wait_s > longest_wait_s ? longest_wait_s : wait_s;
}

// Decides about a loss of this rank, or of the whole job (-1), after `step`.
// Returns and adds to why[] what restart_worker_wanted() does.
static double decide(struct restart *s, const struct run *r, int rank,
                     long step, bool lost, char *why, size_t size)
{
    char number[16], alone[32] = "";
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
    *s = (struct restart){s->done + 1, step, rank};
    snprintf(number, sizeof number, "%d", s->done);
    setenv("LOCKSTEP_RESTARTS", number, 1);
    if (rank >= 0)
        snprintf(alone, sizeof alone, ", of rank %d alone,", rank);
    snprintf(why + at, size - at, "; restart %d of %d%s in %g s", s->done,
             r->restarts, alone, wait_of(s));
    return wait_of(s);
}

bool restart_wanted(struct restart *s, struct run *r, const char *log_path,
                    bool lost)
{
    char why[WHY], from[32];
    snprintf(why, sizeof why, "%s", fail_message());
    double wait_s =
        decide(s, r, -1, restart_last_step(r), lost, why, sizeof why);
    if (wait_s < 0) {
        fail("%s", why);
        return false;
    }
    int newest = folder_latest(r->out);
    snprintf(from, sizeof from, "checkpoint-%d", newest);
    say(log_path, "%s, from %s", why,
        newest >= 0  ? from
        : *r->resume ? r->resume
                     : "step 0: there is no checkpoint yet");
    sleep_ns((uint64_t)(wait_s * 1e9));
    // it resumes from this run's newest checkpoint, if there is one
    return newest < 0 && *r->resume ? true : !config_set(r, "resume", "auto");
}

double restart_worker_wanted(struct restart *s, struct run *r, int rank,
                             bool lost, char *why, size_t size)
{
    return decide(s, r, rank, last_step_of(r, rank), lost, why, size);
}
