// supervise.c - runs one loop that handles the output of every child, and the
// signals to this process, which it reads from a signalfd.
//
// A job goes through these stages. enter() never goes back; take_signals() and
// job_close() may leave stages out:
//
//              reap(), check_ranks(), start_again():
//              no worker goes on; servers may end by themselves
//     RUNNING -------------------------------------------------> SETTLING
//      |   |   reap(): a process failed; others may fail, too      |   |
//      |   +---------------------------------> JUDGING <-----------+   |
//      |   check_ranks(), take_signals(),       |                      |
//      |   job_close(): SIGTERM or ours         |  escalate(): SIGTERM |
//      +------------------------------------> ENDING <-----------------+
//                                               |  escalate(), or
//                                               v  take_signals(): the second
//                                            KILLING: SIGKILL
//
//  1. Every stage but RUNNING has a deadline, after which escalate() enters
//     ENDING, then KILLING. So a job ends whatever its processes do.
//  2. Only reap() ends a child, after it has taken all that the child wrote.
//  3. `failed` is the guiltiest of the children that failed before ENDING
//     (child_guilt()). What fails later is a consequence. In an elastic job a
//     worker counts only if a server is stopped (note_failure()), or if no
//     other is left but such as blame a server (elastic_all_lost()).
//  4. When job_run() and job_close() return, no child is alive.

#include "launch/supervise.h"

#include "base/base.h"
#include "base/file.h"
#include "launch/child.h"
#include "launch/elastic.h"
#include "launch/mpirun.h"
#include "launch/progress.h"
#include "launch/scratch.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum stage { RUNNING, SETTLING, JUDGING, ENDING, KILLING };

static const double judge_s = 0.25;

struct job {
    struct job_config config;
    FILE *log;
    int signals; // the signalfd
    sigset_t ours, before;
    struct child *children;
    struct pollfd *polls; // the signalfd, and two streams of each child
    int n;
    enum stage stage;
    uint64_t deadline_ns; // of this stage, unless RUNNING
    int stopped_by;       // the signal that we got; 0: none
    struct child *failed; // the likeliest cause of a failure; NULL: none
    struct mpirun_report mpi;
    struct scratch *scratch; // of mpirun; NULL: none
    uint64_t turn_ns;        // of the last turn of the loop
    char late[512];   // the error if ranks of mpirun were silent for too long
    const char *mark; // job_answer() waits for a line that begins so
    char *answer;
    size_t answer_size;
    bool crashed, stepped; // stepped: a worker did, in this turn of the loop
};

int job_open(struct job **job, const struct job_config *c)
{
    struct job *j = *job = mem_alloc(1, sizeof *j);
    if (!j)
        return -1;
    j->config = *c;
    j->signals = -1;
    j->mpi.words = openmpi_here;
    j->children = mem_alloc((size_t)c->children, sizeof *j->children);
    j->polls = mem_alloc(1 + 2 * (size_t)c->children, sizeof *j->polls);
    if (!j->children || !j->polls)
        return -1;
    if (c->log_path[0] && !(j->log = file_append(c->log_path)))
        return -1;
    sigemptyset(&j->ours);
    static const int heard[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof heard / sizeof *heard; i++)
        sigaddset(&j->ours, heard[i]);
    sigprocmask(SIG_BLOCK, &j->ours, &j->before);
    j->signals = signalfd(-1, &j->ours, SFD_CLOEXEC | SFD_NONBLOCK);
    if (j->signals < 0)
        return fail("signalfd: %s", strerror(errno));
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    return 0;
}

// Writes a line to the log and, unless `to` is NULL, to the terminal.
static void write_out(struct job *j, const char *who, const char *text,
                      FILE *to)
{
    if (j->log) {
        fprintf(j->log, "[%s] %s\n", who, text);
        fflush(j->log);
    }
    if (!to)
        return;
    progress_hide(j->config.progress);
    fprintf(to, "%s\n", text);
    fflush(to);
    progress_show(j->config.progress);
}

static void take_line(void *ctx, struct child *c, int stream, char *text)
{
    struct job *j = ctx;
    int rank = c->rank;
    char who[JOB_NAME];
    bool worker = c->kind == JOB_WORKER;
    if (c->kind == JOB_MPIRUN)
        worker = mpirun_line(&j->mpi, &text, &rank, &stream);
    if (stream == 0 && worker && mpirun_beat(&j->mpi, rank, text))
        return;
    if (stream == 0 && worker &&
        strncmp(text, PROGRESS_MARK, strlen(PROGRESS_MARK)) == 0) {
        progress_take(j->config.progress, text + strlen(PROGRESS_MARK));
        j->stepped |= c->alive;
        if (c->kind == JOB_WORKER)
            child_begin(c->last, &c->began);
        else
            mpirun_begin(&j->mpi, rank);
        return;
    }
    if (j->mark && c == &j->children[j->n - 1] &&
        strncmp(text, j->mark, strlen(j->mark)) == 0) {
        snprintf(j->answer, j->answer_size, "%s", text + strlen(j->mark));
        j->mark = NULL;
        return;
    }
    if (c->kind == JOB_WORKER)
        text = child_without_rank(text, rank);
    if (c->kind != JOB_MPIRUN)
        child_keep_last(c->last, text);
    if (worker && j->mpi.workers && rank >= j->mpi.workers)
        mpirun_name(&j->mpi, rank, who);
    else if (worker)
        snprintf(who, sizeof who, "%d", rank);
    else
        snprintf(who, sizeof who, "%s", c->name);
    if (child_error(text)) { // the terminal shows it when the job ends
        char line[CHILD_LINE + 8];
        snprintf(line, sizeof line, "error: %s", child_error(text));
        write_out(j, who, line, NULL);
        return;
    }
    bool show = worker ? rank == 0 : c->kind == JOB_SERVER && stream == 1;
    write_out(j, who, text, show ? stream == 0 ? stdout : stderr : NULL);
}

// Returns the place of a new child: that of a dead child with its rank, or else
// a new one.
static struct child *place_of(struct job *j, const struct job_child *what)
{
    for (int i = 0; i < j->n; i++) {
        struct child *c = &j->children[i];
        if (!c->alive && c->kind == what->kind && c->rank == what->rank)
            return c;
    }
    CHECK(j->n < j->config.children);
    return &j->children[j->n];
}

int job_start(struct job *j, const struct job_child *what)
{
    struct child *c = place_of(j, what);
    if (child_spawn(c, what, &j->ours))
        return -1;
    j->n += c == &j->children[j->n];
    if (what->kind != JOB_MPIRUN)
        return 0;
    j->mpi.workers = what->rank;
    j->mpi.most = j->config.mpirun;
    j->scratch = what->scratch;
    return 0;
}

static void enter(struct job *j, enum stage stage, int sig)
{
    if (stage <= j->stage)
        return;
    j->stage = stage;
    double seconds = stage == JUDGING ? judge_s : j->config.grace_s;
    j->deadline_ns = now_ns() + (uint64_t)(seconds * 1e9);
    for (int i = 0; sig && i < j->n; i++)
        child_signal(&j->children[i], sig);
}

// Calls fail() with the reason why a process ended. The only process of a job
// needs no name. Returns -1.
static int fail_with(struct job *j, const char *name, int status,
                     const char *last, const char *when)
{
    const char *error = child_error(last);
    j->crashed |= !error;
    return error && WIFEXITED(status) && j->n == 1 && !*when
               ? fail("%s", error)
               : child_fail(name, status, last, when);
}

// Handles the loss of a worker in an elastic job; fail_message() says why.
static void lose(struct job *j, struct child *c)
{
    const struct job_again *again = j->config.again;
    char text[CHILD_LINE];
    snprintf(text, sizeof text, "%s; the other workers go on", fail_message());
    bool lost = !c->began && !child_error(c->last);
    double wait_s =
        again ? again->wanted(again->ctx, c->rank, lost, text, sizeof text)
              : -1;
    if (wait_s >= 0)
        c->again_ns = now_ns() + (uint64_t)(wait_s * 1e9);
    write_out(j, "lockstep", text, stderr);
}

// Handles the loss of dead workers. If one blames a server, the next step of
// another worker shows that it is wrong.
static void lose_undecided(struct job *j, bool stepped)
{
    for (struct child *c = j->children; c < j->children + j->n; c++) {
        if (!c->undecided || (!stepped && elastic_blames_server(c)))
            continue;
        c->undecided = false;
        fail_with(j, c->name, c->status, c->last, "");
        lose(j, c);
    }
}

// Handles a child that ended with a failure. If a server has been stopped, no
// worker can go on without it, so the job has failed.
static void note_failure(struct job *j, struct child *c)
{
    bool served = !child_any_stopped(j->children, j->n, JOB_SERVER);
    c->undecided = j->config.elastic && c->kind == JOB_WORKER && served;
    if (c->undecided)
        lose_undecided(j, false);
    else if (!j->failed || child_guilt(c) > child_guilt(j->failed))
        j->failed = c;
}

static bool goes_on(const struct job *j)
{
    return elastic_goes_on(j->children, j->n, j->config.elastic);
}

static void reap(struct job *j)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0) {
        for (int i = 0; i < j->n; i++) {
            struct child *c = &j->children[i];
            if (c->pid != pid || !c->alive)
                continue;
            c->stopped = WIFSTOPPED(status);
            c->stopped_s = 0;
            if (c->stopped || WIFCONTINUED(status))
                continue;
            c->alive = false;
            c->status = status;
            child_close(c, take_line, j);
            if (status != 0 && j->stage <= JUDGING)
                note_failure(j, c);
        }
    }
    if (!j->failed)
        j->failed = elastic_all_lost(j->children, j->n);
    if (j->failed)
        enter(j, JUDGING, 0);
    else if (!goes_on(j))
        enter(j, SETTLING, 0);
}

// Reads signals. The first SIGINT, SIGTERM or SIGHUP ends the job; a second one
// kills it at once.
static void take_signals(struct job *j)
{
    struct signalfd_siginfo info;
    while (read(j->signals, &info, sizeof info) == sizeof info) {
        int sig = (int)info.ssi_signo;
        if (sig == SIGCHLD)
            continue;
        enter(j, j->stopped_by ? KILLING : ENDING,
              j->stopped_by ? SIGKILL : sig);
        j->stopped_by = sig;
    }
    reap(j);
}

// Kills children that have been stopped for too long: the others may be done
// without them, and then nobody else notices it.
static void check_stopped(struct job *j, double seconds)
{
    char line[CHILD_LINE];
    for (int i = 0; i < j->n; i++)
        if (child_kill_stopped(&j->children[i], seconds, j->config.stopped_s,
                               line))
            write_out(j, "lockstep", line, stderr);
}

// Ends the job if ranks of mpirun have been silent for too long, and mpirun if
// all ranks are done.
static void check_ranks(struct job *j, double seconds)
{
    if (mpirun_done(&j->mpi))
        enter(j, SETTLING, 0);
    else if (mpirun_late(&j->mpi, seconds, j->late, sizeof j->late))
        enter(j, ENDING, SIGTERM);
}

// Returns the seconds since the last turn of the loop. A turn in which this
// process itself was stopped counts one second.
static double end_turn(struct job *j)
{
    uint64_t now = now_ns();
    double seconds = j->turn_ns ? (double)(now - j->turn_ns) * 1e-9 : 0;
    j->turn_ns = now;
    return seconds < 1 ? seconds : 1;
}

// Starts those dead workers again whose wait is over, unless the job is ending.
static void start_again(struct job *j)
{
    const struct job_again *again = j->config.again;
    for (int i = 0; i < j->n && j->stage == RUNNING; i++) {
        struct child *c = &j->children[i];
        if (!c->again_ns || now_ns() < c->again_ns)
            continue;
        c->again_ns = 0;
        if (!again->start(again->ctx, j, c->rank))
            continue;
        fail("%s: not started again: %s", c->name, fail_message());
        lose(j, c); // as if it had died at once
        if (!goes_on(j))
            enter(j, SETTLING, 0);
    }
}

static void escalate(struct job *j)
{
    double seconds = end_turn(j);
    if (j->stage == RUNNING)
        check_ranks(j, seconds);
    if (j->stage == RUNNING && j->config.stopped_s > 0)
        check_stopped(j, seconds);
    start_again(j);
    if (j->stage == RUNNING || now_ns() < j->deadline_ns)
        return;
    if (j->stage == SETTLING || j->stage == JUDGING)
        enter(j, ENDING, SIGTERM);
    else
        enter(j, KILLING, SIGKILL);
}

// Waits at most `ms` for output, a signal or a deadline, and handles it.
static void listen_once(struct job *j, int ms)
{
    j->polls[0] = (struct pollfd){.fd = j->signals, .events = POLLIN};
    for (int i = 0; i < j->n; i++) {
        for (int s = 0; s < 2; s++)
            j->polls[1 + 2 * i + s] =
                (struct pollfd){.fd = j->children[i].streams[s].fd,
                                .events = POLLIN};
    }
    if (poll(j->polls, (nfds_t)(1 + 2 * j->n), ms) > 0) {
        for (int k = 0; k < 2 * j->n; k++) {
            if (j->polls[1 + k].revents)
                child_read(&j->children[k / 2], k % 2, take_line, j);
        }
        lose_undecided(j, j->stepped);
        j->stepped = false;
        if (j->polls[0].revents)
            take_signals(j);
    }
    escalate(j);
}

int job_answer(struct job *j, const char *mark, double seconds, char *out,
               size_t size)
{
    struct child *c = &j->children[j->n - 1];
    uint64_t until = now_ns() + (uint64_t)(seconds * 1e9);
    j->mark = mark;
    j->answer = out;
    j->answer_size = size;
    while (j->mark && c->alive && j->stage == RUNNING && now_ns() < until)
        listen_once(j, 50);
    if (!j->mark)
        return 0;
    j->mark = NULL;
    if (!c->alive)
        return fail_with(j, c->name, c->status, c->last, "");
    j->crashed = true;
    return fail("%s: no answer within %g s of its start%s%s", c->name, seconds,
                *c->last ? "; last line: " : "", c->last);
}

// Calls fail() with the cause of the job's failure. Returns -1.
static int fail_with_cause(struct job *j)
{
    struct child *c = j->failed;
    char name[JOB_NAME], said[MESH_SENTENCE];
    char when[32] = "";
    const char *last = c->last;
    int status = c->status;
    long step = j->config.last_step ? j->config.last_step(j->config.ctx)
                                    : progress_step(j->config.progress);
    snprintf(name, sizeof name, "%s", c->name);
    if (c->kind == JOB_MPIRUN)
        mpirun_cause(&j->mpi, name, &status, &last);
    if (step > 0)
        snprintf(when, sizeof when, " after step %ld", step);
    int rc = fail_with(j, name, status, last, when);
    if (j->config.mesh)
        fail("%s", mesh_say(j->config.mesh, fail_message(), said));
    return rc;
}

// An elastic job has ended. Returns 0 if a worker has reached the end of the
// run, or -1 after fail() with the cause of a loss.
static int fail_lost(struct job *j)
{
    const struct child *worst = elastic_worst(j->children, j->n);
    if (!worst)
        return 0;
    fail_with(j, worst->name, worst->status, worst->last, "");
    j->crashed = true;
    return fail("no worker reached the end of the run; %s", fail_message());
}

int job_run(struct job *j)
{
    reap(j);
    while (child_any_alive(j->children, j->n) ||
           (j->stage == RUNNING && goes_on(j)))
        listen_once(j, 100);
    if (j->stopped_by)
        return 128 + j->stopped_by;
    if (*j->late) {
        j->crashed = true;
        return fail("%s", j->late);
    }
    if (j->failed)
        return fail_with_cause(j);
    if (mpirun_done(&j->mpi))
        return 0;
    if (mpirun_lacks(&j->mpi, j->late, sizeof j->late)) {
        j->crashed = true;
        return fail("%s", j->late);
    }
    return fail_lost(j);
}

bool job_crashed(const struct job *j)
{
    return j->crashed;
}

bool job_stopped(const struct job *j)
{
    return j->stopped_by != 0;
}

void job_close(struct job **job)
{
    struct job *j = *job;
    if (!j)
        return;
    if (j->signals >= 0) {
        reap(j);
        if (child_any_alive(j->children, j->n))
            enter(j, ENDING, SIGTERM);
        while (child_any_alive(j->children, j->n))
            listen_once(j, 200);
        child_kill_strays();
        close(j->signals);
        sigprocmask(SIG_SETMASK, &j->before, NULL);
    }
    scratch_close(&j->scratch);
    if (j->log)
        fclose(j->log);
    mem_free(j->mpi.last);
    mem_free(j->polls);
    mem_free(j->children);
    mem_free(j);
    *job = NULL;
}
