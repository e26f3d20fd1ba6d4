// watchdog.c - `lockstep watchdog PROGRAM words...` runs PROGRAM for as long as
// standard input stays open. On another host only an open standard input shows
// that the launcher is still there: when ssh ends, it tells nothing to the
// programs that it started. The first line of standard input is a variable for
// PROGRAM's environment, the job's secret. It does not come in ssh's words,
// because every user of either host could read those.

#include "lockstep/commands.h"

#include "base/base.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GRACE_MS = 5000 }; // between SIGTERM and SIGKILL

// Reads byte by byte, because the bytes after the line are not ours.
static int take_secret(void)
{
    char line[PATH_MAX] = "", *equals;
    size_t n = 0;
    while (n < sizeof line - 1 && read(0, line + n, 1) == 1 && line[n] != '\n')
        n++;
    if (line[n] != '\n')
        return fail("watchdog: nobody is there");
    line[n] = '\0';
    equals = strchr(line, '=');
    if (strncmp(line, "LOCKSTEP_SECRET", 15) || !equals)
        return fail("watchdog: standard input does not begin with a secret");
    *equals = '\0';
    int rc = equals[1] && setenv(line, equals + 1, 1)
                 ? fail("watchdog: %s", strerror(errno))
                 : 0;
    explicit_bzero(line, sizeof line);
    return rc;
}

static pid_t start(char **words, const sigset_t *before)
{
    pid_t parent = getpid(), pid = fork();
    if (pid)
        return pid;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigprocmask(SIG_SETMASK, before, NULL);
    if (getppid() == parent)
        execvp(words[0], words);
    dprintf(2, "%s: %s\n", words[0], strerror(errno));
    _exit(127);
}

// Whether standard input has ended. Any bytes that come in are ignored.
static bool hung_up(void)
{
    char some[256];
    return read(0, some, sizeof some) <= 0;
}

// A signal that we should pass on; 0 when the program itself has ended.
static int signalled(int signals)
{
    struct signalfd_siginfo s;
    if (read(signals, &s, sizeof s) != sizeof s)
        return SIGTERM;
    return s.ssi_signo == SIGCHLD ? 0 : (int)s.ssi_signo;
}

// Waits until the program has ended. Returns its status in waitpid()'s form.
static int watch(pid_t pid, int signals)
{
    struct pollfd on[] = {{.fd = signals, .events = POLLIN},
                          {.fd = 0, .events = POLLIN}};
    int status, limit = -1;
    while (waitpid(pid, &status, WNOHANG) != pid) {
        int n = poll(on, 2, limit), sig = 0;
        if (n > 0 && on[0].revents)
            sig = signalled(signals);
        if (n > 0 && on[1].revents && hung_up()) {
            on[1].fd = -1;
            sig = SIGTERM;
        }
        if (n == 0)
            sig = SIGKILL;
        if (sig) {
            kill(-pid, sig);
            limit = GRACE_MS;
        }
    }
    kill(-pid, SIGKILL); // processes it may have left
    return status;
}

static int watchdog(int nwords, char **words)
{
    static const int ours[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP};
    sigset_t set, before;
    if (nwords < 1)
        return fail("watchdog: want a program to run");
    if (take_secret())
        return -1;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        sigaddset(&set, ours[i]);
    sigprocmask(SIG_BLOCK, &set, &before);
    int signals = signalfd(-1, &set, SFD_CLOEXEC);
    pid_t pid = signals < 0 ? -1 : start(words, &before);
    if (pid < 0)
        return fail("watchdog: %s", strerror(errno));
    int status = watch(pid, signals);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

const struct command command_watchdog = {.name = "watchdog", .run = watchdog};
