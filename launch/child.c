// child.c - starts, reads and signals one process of a job.

#include "launch/child.h"

#include "base/base.h"
#include "base/process.h"
#include "base/secret.h"
#include "launch/cores.h"
#include "netns/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>

static const double strays_s = 30;

enum { STACK = 8 << 20, LEAST_STACK = 1 << 20 }; // 8 MiB: Linux's default
enum { STATUS = 80 };

// mpirun waits by select(), and aborts at a file descriptor of 1024: whoever
// connects often enough could end the job.
static void limit_files(void)
{
    struct rlimit most;
    if (getrlimit(RLIMIT_NOFILE, &most) || most.rlim_cur <= FD_SETSIZE)
        return;
    most.rlim_cur = FD_SETSIZE;
    setrlimit(RLIMIT_NOFILE, &most);
}

// A thread's stack has the size of this limit. If it is small, libraries end by
// SIGSEGV. Returns 0, or -1 after a line to stderr.
static int widen_stack(void)
{
    struct rlimit most;
    if (getrlimit(RLIMIT_STACK, &most) || most.rlim_cur >= STACK)
        return 0;
    most.rlim_cur = most.rlim_max < STACK ? most.rlim_max : STACK;
    if (most.rlim_cur >= LEAST_STACK && !setrlimit(RLIMIT_STACK, &most))
        return 0;
    dprintf(2,
            "the limit of the stack is %llu KiB, a worker needs %d KiB; try: "
            "ulimit -s %d\n",
            (unsigned long long)most.rlim_max >> 10, LEAST_STACK >> 10,
            STACK >> 10);
    return -1;
}

struct place {
    const struct job_child *what;
    const sigset_t *blocked;
};

static int prepare(void *arg)
{
    const struct place *place = arg;
    const struct job_child *what = place->what;
    if (what->host && netns_enter(what->host)) {
        dprintf(2, "host %s: %s\n", what->host, strerror(errno));
        return PROCESS_NO_PROGRAM;
    }
    if (what->cores)
        cores_take(what->cores);
    if (what->kind == JOB_MPIRUN)
        limit_files();
    if (widen_stack())
        return PROCESS_NO_PROGRAM;
    sigprocmask(SIG_UNBLOCK, place->blocked, NULL);
    signal(SIGXFSZ, SIG_DFL); // Open MPI hangs if it is ignored
    return 0;
}

static void set_name(struct child *c)
{
    if (c->kind == JOB_MPIRUN)
        snprintf(c->name, sizeof c->name, "mpirun");
    else
        snprintf(c->name, sizeof c->name, "%s %d",
                 c->kind == JOB_SERVER ? "server" : "rank", c->rank);
}

// Writes the first line that `lockstep watchdog` reads. This does not wait,
// since the pipe is empty. If ssh has ended already, that is noticed later.
static void pass_secret(int fd)
{
    const char *name = secret_name(), *value = getenv(name);
    void (*then)(int) = signal(SIGPIPE, SIG_IGN);
    dprintf(fd, "%s=%s\n", name, value ? value : "");
    signal(SIGPIPE, then);
}

int child_spawn(struct child *c, const struct job_child *what,
                const sigset_t *blocked)
{
    struct place place = {what, blocked};
    struct process p = {.words = what->argv,
                        .in = what->watched ? PROCESS_PIPE : PROCESS_NULL,
                        .out = PROCESS_PIPE,
                        .err = PROCESS_PIPE,
                        .group = true,
                        .orphan = SIGKILL,
                        .prepare = prepare,
                        .arg = &place};
    if (process_start(&p))
        return -1;
    if (what->watched)
        pass_secret(p.ends[0]);
    fcntl(p.ends[1], F_SETFL, O_NONBLOCK);
    fcntl(p.ends[2], F_SETFL, O_NONBLOCK);
    *c = (struct child){.kind = what->kind, .rank = what->rank, .pid = p.pid};
    c->alive = true;
    c->input = p.ends[0];
    c->streams[0].fd = p.ends[1];
    c->streams[1].fd = p.ends[2];
    set_name(c);
    return 0;
}

static void end_line(struct child *c, int s, size_t n, child_line *fn,
                     void *ctx)
{
    char *text = c->streams[s].text;
    if (n > 0 && text[n - 1] == '\r')
        n--;
    text[n] = '\0';
    fn(ctx, c, s, text);
}

// Calls fn() for each complete line, and for a line that fills the buffer.
static void cut_lines(struct child *c, int s, child_line *fn, void *ctx)
{
    struct stream *st = &c->streams[s];
    char *newline;
    while ((newline = memchr(st->text, '\n', st->n))) {
        size_t len = (size_t)(newline - st->text), used = len + 1;
        end_line(c, s, len, fn, ctx);
        st->n -= used;
        memmove(st->text, st->text + used, st->n);
    }
    if (st->n == CHILD_LINE - 1) {
        end_line(c, s, st->n, fn, ctx);
        st->n = 0;
    }
}

static void close_stream(struct child *c, int s, child_line *fn, void *ctx)
{
    struct stream *st = &c->streams[s];
    if (st->fd < 0)
        return;
    if (st->n > 0)
        end_line(c, s, st->n, fn, ctx);
    close(st->fd);
    st->fd = -1;
    st->n = 0;
}

void child_read(struct child *c, int s, child_line *fn, void *ctx)
{
    struct stream *st = &c->streams[s];
    while (st->fd >= 0) {
        ssize_t n = read(st->fd, st->text + st->n, CHILD_LINE - 1 - st->n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            close_stream(c, s, fn, ctx);
            return;
        }
        st->n += (size_t)n;
        cut_lines(c, s, fn, ctx);
    }
}

void child_signal(const struct child *c, int sig)
{
    if (c->alive)
        kill(-c->pid, sig);
}

bool child_kill_stopped(struct child *c, double seconds, double most,
                        char line[CHILD_LINE])
{
    if (!c->alive || !c->stopped || (c->stopped_s += seconds) < most)
        return false;
    snprintf(line, CHILD_LINE,
             "%s: a signal has stopped it for %g s; it is killed", c->name,
             most);
    child_signal(c, SIGKILL);
    c->stopped = false;
    return true;
}

bool child_any_alive(const struct child *c, int n)
{
    for (int i = 0; i < n; i++)
        if (c[i].alive)
            return true;
    return false;
}

bool child_any_stopped(const struct child *c, int n, enum job_kind kind)
{
    for (int i = 0; i < n; i++)
        if (c[i].alive && c[i].stopped && c[i].kind == kind)
            return true;
    return false;
}

int child_guilt(const struct child *c)
{
    return 2 * WIFSIGNALED(c->status) + (c->kind != JOB_SERVER);
}

void child_close(struct child *c, child_line *fn, void *ctx)
{
    for (int s = 0; s < 2; s++) {
        child_read(c, s, fn, ctx);
        close_stream(c, s, fn, ctx);
    }
    if (c->input >= 0)
        close(c->input);
    c->input = -1;
}

// The name of a signal that ends a process by itself, or NULL.
static const char *signal_name(int number)
{
    static const struct {
        int number;
        const char *name;
    } all[] = {
        {SIGABRT, "SIGABRT"}, {SIGALRM, "SIGALRM"}, {SIGBUS, "SIGBUS"},
        {SIGFPE, "SIGFPE"},   {SIGHUP, "SIGHUP"},   {SIGILL, "SIGILL"},
        {SIGINT, "SIGINT"},   {SIGKILL, "SIGKILL"}, {SIGPIPE, "SIGPIPE"},
        {SIGQUIT, "SIGQUIT"}, {SIGSEGV, "SIGSEGV"}, {SIGSYS, "SIGSYS"},
        {SIGTERM, "SIGTERM"}, {SIGTRAP, "SIGTRAP"}, {SIGXCPU, "SIGXCPU"},
        {SIGXFSZ, "SIGXFSZ"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].number == number)
            return all[i].name;
    return NULL;
}

// The status of waitpid() as text: "exit code 3", "killed by signal 9 (SIGKILL,
// Killed)".
static void status_text(int status, char out[STATUS])
{
    int sig = WTERMSIG(status);
    const char *name = WIFSIGNALED(status) ? signal_name(sig) : NULL;
    if (name)
        snprintf(out, STATUS, "killed by signal %d (%s, %s)", sig, name,
                 strsignal(sig));
    else if (WIFSIGNALED(status))
        snprintf(out, STATUS, "killed by signal %d", sig);
    else
        snprintf(out, STATUS, "exit code %d", WEXITSTATUS(status));
}

const char *child_error(const char *text)
{
    size_t n = strlen(LOG_ERROR_MARK);
    return strncmp(text, LOG_ERROR_MARK, n) == 0 ? text + n : NULL;
}

int child_fail(const char *name, int status, const char *last, const char *when)
{
    const char *error = child_error(last);
    bool full = WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ;
    char how[STATUS];
    status_text(status, how);
    if (error && WIFEXITED(status))
        return fail("%s%s: %s", name, when, error);
    if (error)
        return fail("%s: %s%s: %s", name, how, when, error);
    return fail("%s: %s%s%s%s%s", name, how, when, *last ? "; last line: " : "",
                last, full ? "; try: ulimit -f unlimited" : "");
}

void child_keep_last(char last[CHILD_LAST], const char *text)
{
    if (text[0] && !child_error(last))
        snprintf(last, CHILD_LAST, "%.*s", CHILD_LAST - 1, text);
}

void child_begin(char last[CHILD_LAST], bool *began)
{
    if (!*began && !child_error(last))
        last[0] = '\0';
    *began = true;
}

char *child_without_rank(char *text, int rank)
{
    char tag[16];
    int n = snprintf(tag, sizeof tag, "[%d] ", rank);
    return strncmp(text, tag, (size_t)n) == 0 ? text + n : text;
}

// Killing them can leave us more children, so it repeats.
void child_kill_strays(void)
{
    char path[64];
    uint64_t began = now_ns();
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    for (;;) {
        FILE *f = fopen(path, "re");
        int pid, n = 0;
        if (!f)
            return;
        for (; fscanf(f, "%d", &pid) == 1; n++)
            kill(pid, SIGKILL);
        fclose(f);
        if (n == 0)
            return;
        if ((double)(now_ns() - began) > strays_s * 1e9) {
            log_line("%d processes do not end after SIGKILL; the last one has "
                     "process id %d",
                     n, pid);
            return;
        }
        while (waitpid(-1, NULL, WNOHANG) > 0)
            continue;
        usleep(10000);
    }
}
