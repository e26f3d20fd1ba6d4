// child.c - fork, exec and pipes.

#include "lockstep/child.h"

#include "base/base.h"
#include "cluster/net.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

// In the child, between fork and exec: only what is safe there.
static _Noreturn void become(const struct job_child *what, pid_t parent,
                             const sigset_t *blocked, int out, int err)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) // it died before prctl()
        _exit(127);
    int null = open("/dev/null", O_RDONLY);
    if (null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
        _exit(127);
    if (what->host && net_enter(what->host)) {
        dprintf(2, "host %s: %s\n", what->host, strerror(errno));
        _exit(127);
    }
    if (what->cores)
        sched_setaffinity(0, sizeof *what->cores, what->cores);
    sigprocmask(SIG_UNBLOCK, blocked, NULL);
    execvp(what->argv[0], what->argv);
    dprintf(2, "%s: %s\n", what->argv[0], strerror(errno));
    _exit(127);
}

static int open_pipes(int out[2], int err[2])
{
    if (pipe2(out, O_CLOEXEC))
        return fail("pipe: %s", strerror(errno));
    if (pipe2(err, O_CLOEXEC)) {
        close(out[0]);
        close(out[1]);
        return fail("pipe: %s", strerror(errno));
    }
    fcntl(out[0], F_SETFL, O_NONBLOCK);
    fcntl(err[0], F_SETFL, O_NONBLOCK);
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

int child_spawn(struct child *c, const struct job_child *what,
                const sigset_t *blocked)
{
    int out[2], err[2];
    if (open_pipes(out, err))
        return -1;
    pid_t parent = getpid();
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        become(what, parent, blocked, out[1], err[1]);
    close(out[1]);
    close(err[1]);
    if (pid < 0) {
        close(out[0]);
        close(err[0]);
        return fail("fork: %s", strerror(errno));
    }
    setpgid(pid, pid); // whoever of us two comes first
    *c = (struct child){.kind = what->kind, .rank = what->rank, .pid = pid};
    c->alive = true;
    c->streams[0].fd = out[0];
    c->streams[1].fd = err[0];
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

// Hand on the whole lines of a stream, and a line that fills the buffer.
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

void child_close(struct child *c, child_line *fn, void *ctx)
{
    for (int s = 0; s < 2; s++) {
        child_read(c, s, fn, ctx);
        close_stream(c, s, fn, ctx);
    }
}

void child_status_text(int status, char out[64])
{
    if (WIFSIGNALED(status))
        snprintf(out, 64, "killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(out, 64, "exit code %d", WEXITSTATUS(status));
}
