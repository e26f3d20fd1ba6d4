// train.c - `lockstep train` starts a job, supervises it, starts it again after
// failures (restarts=N), and says how it ended.

#include "launch/command.h"

#include "base/base.h"
#include "base/file.h"
#include "config/config.h"
#include "launch/launch.h"
#include "launch/progress.h"
#include "launch/settle.h"
#include "launch/supervise.h"
#include "netns/netns.h"
#include "telemetry/cell.h"
#include "telemetry/steps.h"
#include "telemetry/trace.h"
#include "telemetry/trace_parts.h"
#include "train/folder.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const double grace_s = 5; // between SIGTERM and SIGKILL

static void explain(FILE *f)
{
    fprintf(
        f,
        "lockstep train [FILE.ini] [key=value] ...\n\n"
        "Trains GPT-2 with one worker, or with workers=N that synchronise by "
        "sync=NAME.\n"
        "  lockstep train                      one worker, on the C headers of "
        "this machine\n"
        "  lockstep train run.ini steps=200    settings of a file, and one of "
        "its keys changed\n"
        "  lockstep train sync=ring workers=2  two workers in a ring\n"
        "  lockstep train RUN/run.json         repeat an earlier run\n"
        "  lockstep train resume=RUN steps=99  continue a run from its newest "
        "checkpoint\n\n");
}

// Makes the folder out=, or without out= a new folder in runs/ with the time as
// its name. *made is true if the folder did not exist before.
static int choose_out(struct run *r, bool *made)
{
    bool named = r->out[0] != '\0';
    char stamp[32];
    time_t now = time(NULL);
    struct tm tm;
    strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", localtime_r(&now, &tm));
    for (int i = 1; i < 100; i++) {
        char more[8] = "";
        if (i > 1)
            snprintf(more, sizeof more, "-%d", i);
        if (!named &&
            text_into(r->out, sizeof r->out, "runs/%s%s", stamp, more))
            return -1;
        int rc = file_make_folder(r->out);
        *made = rc == 1;
        if (rc < 0)
            return fail("out=%s: %s; try: a folder that you may write to",
                        r->out, fail_message());
        if (*made || named)
            return 0;
    }
    return fail("runs/%s and %s-2 .. %s-99 exist already; try: out=DIR", stamp,
                stamp, stamp);
}

// Returns whether the job began its first step: run.json is written just before
// it.
static bool began(const struct run *r)
{
    return folder_has(r->out, "run.json");
}

// Opens the emulated hosts that net= asks for. If there can be none, net=?RATE
// runs on the host's own links, and run.json says so. 0, or -1 after fail().
static int emulate(struct netns **net, const struct run *r)
{
    const char *rate = launch_net(r, true);
    *net = NULL;
    if (!*rate || !strcmp(rate, LAUNCH_UNSHAPED) ||
        netns_open(net, rate, launch_hosts(r)) == 0)
        return 0;
    if (*r->net != '?')
        return -1;
    log_line("%s; the run uses unshaped links instead of net=%s",
             fail_message(), rate);
    return 0;
}

// Merges the samples and traces of all processes, also those that servers wrote
// last.
static int merge_samples(const struct run *r)
{
    return parts_merge_csv(r->out, "util", true) || trace_merge(r->out, true);
}

// Merges the rows that workers left behind after the last start: they could not
// do so, or one came back when it was done.
static int merge_rows(const struct run *r)
{
    return steps_merge(r->out, r->workers) ||
           parts_drop_csv(r->out, "breakdown", r->workers);
}

// Merges, and keeps the message of a run that failed.
static int merge(int (*what)(const struct run *r), const struct run *r,
                 int status)
{
    char why[1024];
    snprintf(why, sizeof why, "%s", fail_message());
    if (what(r) && (status >= 0 || !strstr(why, fail_message())))
        log_line("%s", fail_message());
    return status < 0 ? fail("%s", why) : status;
}

// ---- restarts=N
//
// After a failure the launcher ends all processes, waits, and starts them
// again, at most N times. It does the same for a dead worker, server or host: a
// checkpoint has all that any backend needs to continue. If the job fails twice
// after the same step, it is not started again, since it would fail again. A
// loss during the restart, before a new step, does not count as the same
// failure.
//
// In an elastic job only the dead worker is started again, while other workers
// go on. It gets the parameters from the servers, not from a checkpoint.

enum { LINE = 2048, WHY = 1280, STEP = 3 };

static const double first_wait_s = 1, longest_wait_s = 60;

struct restart {
    int done;       // restarts so far
    long failed_at; // the last step that was done before the last failure
    int rank;       // the worker that failed then; -1: the whole job
};

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

// Whether what out= holds is of this run. If resume= names a run, out= may hold
// another one until this one writes its run.json, after the launcher's .lock.
static bool is_own(const struct run *r)
{
    char path[2][CONFIG_PATH + 32];
    struct stat lock, json;
    snprintf(path[0], sizeof path[0], "%s/.lock", r->out);
    snprintf(path[1], sizeof path[1], "%s/run.json", r->out);
    if (!*r->resume || !strcmp(r->resume, "auto"))
        return true;
    if (stat(path[0], &lock) || stat(path[1], &json))
        return false;
    const struct timespec *from = &lock.st_mtim, *at = &json.st_mtim;
    return at->tv_sec > from->tv_sec ||
           (at->tv_sec == from->tv_sec && at->tv_nsec >= from->tv_nsec);
}

// Returns the last step that any worker of this run has done.
static long last_step(void *ctx)
{
    const struct run *r = ctx;
    long step = 0;
    for (int rank = 0; is_own(r) && rank < r->workers; rank++) {
        long last = last_step_of(r, rank);
        step = last > step ? last : step;
    }
    return step;
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
// `lost`: without an error of its own, before a step. Returns the seconds to
// wait before a restart; below 0: never. Adds this, or why not, to why[].
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

// The job failed, and fail_message() says how. Returns whether to start it
// again. If so, it has logged the restart and has waited, and *r has the
// changed settings of the next start. If not, fail_message() may say why not.
static bool restart_wanted(struct restart *s, struct run *r,
                           const char *log_path, bool lost)
{
    char why[WHY], from[32], line[LINE];
    snprintf(why, sizeof why, "%s", fail_message());
    double wait_s = decide(s, r, -1, last_step(r), lost, why, sizeof why);
    if (wait_s < 0) {
        fail("%s", why);
        return false;
    }
    int newest = is_own(r) ? folder_latest(r->out) : -1;
    snprintf(from, sizeof from, "checkpoint-%d", newest);
    snprintf(line, sizeof line, "%s, from %s", why,
             newest >= 0  ? from
             : *r->resume ? r->resume
                          : "step 0: there is no checkpoint yet");
    log_line("%s", line);
    FILE *log = file_append(log_path);
    if (log) {
        fprintf(log, "[lockstep] %s\n", line);
        fclose(log);
    }
    sleep_ns((uint64_t)(wait_s * 1e9));
    // it resumes from this run's newest checkpoint, if there is one
    return newest < 0 && *r->resume ? true : !config_set(r, "resume", "auto");
}

// The context of struct job_again.
struct again {
    struct run *run;
    struct restart *restart;
    const struct netns *net;
    char servers[LAUNCH_ENDPOINTS];
};

static double worker_wanted(void *ctx, int rank, bool lost, char *why,
                            size_t size)
{
    const struct again *a = ctx;
    long step = is_own(a->run) ? last_step_of(a->run, rank) : 0;
    return decide(a->restart, a->run, rank, step, lost, why, size);
}

static int start_worker(void *ctx, struct job *j, int rank)
{
    const struct again *a = ctx;
    return launch_worker(j, a->run, a->net, rank, a->servers);
}

// ---- the job

// How a start of the job ended.
struct ending {
    bool crashed; // without an error of its own: the log may tell more
    bool stepped; // it made a step
};

// Starts and supervises the job. Returns what job_run() returns.
static int supervise(struct run *r, struct restart *restart,
                     const char *log_path, struct ending *e)
{
    struct progress *progress = NULL;
    struct job *j = NULL;
    struct netns *net;
    if (emulate(&net, r))
        return -1;
    struct again a = {.run = r, .restart = restart, .net = net};
    struct job_again again = {worker_wanted, start_worker, &a};
    struct job_config config = {
        .children = launch_children(r),
        .log_path = log_path,
        .grace_s = grace_s,
        .stopped_s = grace_s + r->timeout,
        .elastic = r->settings.elastic,
        .again = &again,
        .mpirun = {.ranks = launch_children(r),
                   .start_s = LAUNCH_START_S + r->timeout,
                   .quiet_s = grace_s + r->timeout},
        .mesh = &r->mesh,
        .last_step = last_step,
        .ctx = r,
    };
    if (config.children < 0 || progress_open(&progress)) {
        netns_close(&net);
        return -1;
    }
    config.progress = progress;
    int status = job_open(&j, &config) || launch(j, r, net, a.servers) ? -1 : 0;
    if (status == 0 || (j && job_stopped(j)))
        status = job_run(j);
    e->crashed = j && job_crashed(j);
    e->stepped = progress_step(progress) > 0;
    job_close(&j);
    netns_close(&net);
    progress_close(&progress);
    return began(r) ? merge(merge_samples, r, status) : status;
}

// Removes the folder of a run that did not begin. Returns -1 and keeps the
// message.
static int forget(const struct run *r)
{
    char why[1024];
    snprintf(why, sizeof why, "%s", fail_message());
    if (file_remove_folder(r->out))
        log_line("%s", fail_message());
    if (!strncmp(r->out, "runs/", 5))
        rmdir("runs"); // fails if it has other runs
    return fail("%s", why);
}

// What helps after the loss of a process that left no error.
static const char *remedy(const struct run *r, const struct ending *e)
{
    if (!e->crashed || !e->stepped || r->restarts > 0 ||
        strstr(fail_message(), "; try: "))
        return "";
    return r->save > 0 ? "; try: resume=auto, or restarts=3 from the start on"
                       : "; try: save=100 restarts=3, to go on after a loss";
}

// Trains in the locked folder out=. Returns the exit status, or -1 after
// fail().
static int train_locked(struct run *r, bool made)
{
    struct ending e = {0};
    char log_path[CONFIG_PATH];
    if (settle_check(r) ||
        text_into(log_path, sizeof log_path, "%s/log.txt", r->out))
        return made ? forget(r) : -1;
    signal(SIGXFSZ, SIG_IGN); // as train/main.c does
    uint64_t start = now_ns();
    struct restart again = {0};
    int status = supervise(r, &again, log_path, &e);
    while (status < 0 &&
           restart_wanted(&again, r, log_path, e.crashed && !e.stepped))
        status = supervise(r, &again, log_path, &e);
    if (began(r))
        status = merge(merge_rows, r, status);
    double seconds = (double)(now_ns() - start) * 1e-9;
    if (status < 0 && made && !e.crashed && !began(r))
        return forget(r);
    if (status < 0 && access(log_path, F_OK))
        return -1;
    if (status < 0)
        return fail("%s%s; log: %s", fail_message(), remedy(r, &e), log_path);
    if (status > 0)
        fprintf(stderr, "lockstep: stopped by signal %d (%s); log: %s\n",
                status - 128, strsignal(status - 128), log_path);
    else
        printf("done in %.0f s: %s\n", seconds, r->out);
    return status;
}

static int train(int nwords, char **words)
{
    struct run r;
    bool made = false;
    if (settle_words(&r, nwords, words) || config_say_changes(&r) ||
        choose_out(&r, &made))
        return -1;
    int lock = folder_lock(r.out);
    if (lock < 0)
        return -1;
    // is_own() reads its time; the file may be that of a job that was killed
    int status = futimens(lock, NULL)
                     ? fail("%s/.lock: %s", r.out, strerror(errno))
                     : train_locked(&r, made);
    folder_unlock(lock, r.out);
    return status;
}

const struct command command_train = {
    .name = "train",
    .words = "[FILE.ini] [key=value] ..",
    .help = "train a model; --help lists every key",
    .explain = explain,
    .all_keys = true,
    .run = train,
};
