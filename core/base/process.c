// process.c - fork, exec, pipes and deadlines.

#include "base/process.h"

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STREAMS = 3 };

// ---- start

// Runs in the child.
static _Noreturn void become(const struct process *p, const int from[STREAMS],
                             pid_t parent)
{
    if (p->group)
        setpgid(0, 0);
    if (p->orphan)
        prctl(PR_SET_PDEATHSIG, p->orphan);
    if (p->orphan && getppid() != parent) // the parent died before prctl()
        _exit(PROCESS_NO_PROGRAM);
    for (int s = 0; s < STREAMS; s++)
        if (from[s] != s && dup2(from[s], s) < 0)
            _exit(PROCESS_NO_PROGRAM);
    int rc = p->prepare ? p->prepare(p->arg) : 0;
    if (rc)
        _exit(rc);
    execvp(p->words[0], p->words);
    dprintf(2, "%s: %s\n", p->words[0], strerror(errno));
    _exit(PROCESS_NO_PROGRAM);
}

// Opens what becomes stream s of the child, *theirs, and our end of a pipe.
static int open_stream(int want, int s, int *theirs, int *ours)
{
    int ends[2];
    if (want >= 0)
        *theirs = want ? want : s;
    else if (want == PROCESS_NULL)
        *theirs = open("/dev/null", (s ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
    else if (!pipe2(ends, O_CLOEXEC)) {
        *theirs = ends[s != 0];
        *ours = ends[s == 0];
    }
    return *theirs < 0 ? fail("pipe: %s", strerror(errno)) : 0;
}

int process_start(struct process *p)
{
    const int want[STREAMS] = {p->in, p->out, p->err};
    int theirs[STREAMS] = {-1, -1, -1}, rc = 0;
    pid_t parent = getpid();
    p->pid = -1;
    for (int s = 0; s < STREAMS; s++)
        p->ends[s] = -1;
    for (int s = 0; !rc && s < STREAMS; s++)
        rc = open_stream(want[s], s, &theirs[s], &p->ends[s]);
    fflush(NULL);
    if (!rc)
        p->pid = fork();
    if (p->pid == 0)
        become(p, theirs, parent);
    if (!rc && p->pid < 0)
        rc = fail("fork: %s", strerror(errno));
    for (int s = 0; s < STREAMS; s++) {
        if (want[s] < 0 && theirs[s] >= 0)
            close(theirs[s]);
        if (rc && p->ends[s] >= 0)
            close(p->ends[s]);
    }
    if (!rc && p->group)
        setpgid(p->pid, p->pid); // in case that it has not done so yet
    return rc;
}

// ---- wait

// Waits for at most `ns` until the program ends, without taking its status.
static void await_end(pid_t pid, uint64_t ns)
{
    int limit =
        ns < UINT64_C(2000000000000) ? (int)(ns / 1000000) + 1 : 2000000;
    struct pollfd p = {.fd = (int)syscall(SYS_pidfd_open, pid, 0),
                       .events = POLLIN};
    if (p.fd < 0)
        limit = 5; // Linux before 5.3
    poll(&p, 1, limit);
    if (p.fd >= 0)
        close(p.fd);
}

int process_wait(struct process *p, double seconds)
{
    int status;
    pid_t done;
    bool late = false;
    uint64_t until = now_ns() + (uint64_t)(seconds * 1e9);
    while ((done = waitpid(p->pid, &status, late ? 0 : WNOHANG)) != p->pid) {
        uint64_t now = now_ns();
        if (done < 0 && errno != EINTR)
            return fail("%s: %s", p->words[0], strerror(errno));
        if (now < until) {
            await_end(p->pid, until - now);
        } else if (!late) {
            late = true;
            kill(p->group ? -p->pid : p->pid, SIGKILL);
        }
    }
    if (late)
        return fail("%s: not done after %g s", p->words[0], seconds);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int process_run(struct process *p, double seconds)
{
    return process_start(p) ? -1 : process_wait(p, seconds);
}

// ---- a shell's command

int process_shell(struct process *p, const char *command, double seconds)
{
    char shell[] = "sh", option[] = "-c";
    // exec() does not change its words, though their type is not const.
    char *const words[] = {shell, option, (char *)(uintptr_t)command, NULL};
    p->words = words;
    return process_run(p, seconds);
}

int process_ask(const char *command, double seconds, char *line, size_t size)
{
    struct process p = {.group = true};
    line[0] = '\0';
    p.out = memfd_create("answer", MFD_CLOEXEC); // unlike a pipe, never full
    if (p.out < 0)
        return fail("memfd_create: %s", strerror(errno));
    int rc = process_shell(&p, command, seconds);
    ssize_t n = pread(p.out, line, size - 1, 0);
    close(p.out);
    line[n > 0 ? n : 0] = '\0';
    line[strcspn(line, "\n")] = '\0';
    return rc;
}
