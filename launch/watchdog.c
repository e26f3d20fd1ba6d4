// watchdog.c - `lockstep watchdog PROGRAM words...` runs PROGRAM for as long as
// standard input stays open.
//
// On another host only an open standard input shows that the launcher is still
// running: when ssh ends, it does not end the programs that it started. The
// first line of standard input is a variable for PROGRAM's environment, the
// job's secret. It is not one of ssh's arguments, because every user of either
// host could read them.

#include "launch/command.h"

#include "base/base.h"
#include "base/process.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GRACE_MS = 5000 }; // between SIGTERM and SIGKILL

// Reads the first line of standard input, byte by byte, so that the bytes after
// it stay unread.
static int take_secret(void)
{
    char line[PATH_MAX] = "", *equals;
    size_t n = 0;
    while (n < sizeof line - 1 && read(0, line + n, 1) == 1 && line[n] != '\n')
        n++;
    if (line[n] != '\n')
        return fail("watchdog: standard input ended before the secret");
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

static int unblock(void *before)
{
    return sigprocmask(SIG_SETMASK, before, NULL);
}

// Returns whether standard input has ended. Ignores bytes that arrive on it.
static bool hung_up(void)
{
    char some[256];
    return read(0, some, sizeof some) <= 0;
}

// Returns a signal that PROGRAM should get, too; 0 if PROGRAM has ended.
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
    kill(-pid, SIGKILL); // processes that it may have left behind
    return status;
}

static int watchdog(int nwords, char **words)
{
    static const int ours[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP};
    sigset_t set, before;
    if (nwords < 1)
        return fail("watchdog: the program to run is missing");
    if (take_secret())
        return -1;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        sigaddset(&set, ours[i]);
    sigprocmask(SIG_BLOCK, &set, &before);
    int signals = signalfd(-1, &set, SFD_CLOEXEC);
    if (signals < 0)
        return fail("watchdog: %s", strerror(errno));
    struct process p = {.words = words,
                        .group = true,
                        .orphan = SIGKILL,
                        .prepare = unblock,
                        .arg = &before};
    if (process_start(&p))
        return -1;
    int status = watch(p.pid, signals);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

const struct command command_watchdog = {.name = "watchdog", .run = watchdog};
