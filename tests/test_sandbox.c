// test_sandbox.c - a process that runs a student's file may not make certain
// system calls.

#include "labs/sandbox.h"

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/test.h"

static const char mark[] = "/tmp/lockstep-sandbox-must-not-be";

static bool is_refused(long result)
{
    return result == -1 && errno == EPERM;
}

static void *nothing(void *arg)
{
    return arg;
}

// Runs in a process of its own. Returns the number of the first call that was
// allowed but must be refused, or refused but must be allowed. Returns 0 if
// there is none.
static int try_all(const char *there)
{
    struct timespec moment = {0, 1};
    char *const words[] = {(char *)"true", NULL};
    pthread_t thread;
    if (sandbox_enter())
        return 1;
    if (!is_refused(open(mark, O_WRONLY | O_CREAT, 0600)))
        return 2;
    if (!is_refused(open(there, O_RDWR)) || !is_refused(truncate(there, 0)))
        return 3;
    if (!is_refused(unlink(there)) || !is_refused(rename(there, mark)))
        return 4;
    if (!is_refused(mkdir(mark, 0700)) || !is_refused(symlink(there, mark)))
        return 5;
    if (!is_refused(fork()))
        return 6;
    if (!is_refused(execv("/bin/true", words)))
        return 7;
    if (!is_refused(socket(AF_INET, SOCK_STREAM, 0)))
        return 8;
    if (!is_refused(kill(getppid(), 0)))
        return 9;
    if (clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL) != EPERM)
        return 10;
    if (pthread_create(&thread, NULL, nothing, NULL) ||
        pthread_join(thread, NULL))
        return 11;
    int fd = open(there, O_RDONLY);
    if (fd < 0 || close(fd))
        return 12;
    return 0;
}

// The number of files that can be open at the same time.
static int open_many(const char *there)
{
    int most = 0;
    if (sandbox_enter())
        return 0;
    while (most < 200 && open(there, O_RDONLY) >= 0)
        most++;
    return most;
}

// Writes beyond the largest size that a file may have, to a file that was open
// before.
static int write_far(const char *there)
{
    int fd = open(there, O_RDWR);
    if (fd < 0 || sandbox_enter())
        return 1;
    return pwrite(fd, "x", 1, 64 << 20) == 1 ? 2 : 3;
}

// Calls try() in a child process. Returns the child's wait status.
static int end_of(int try(const char *there), const char *there)
{
    int status;
    pid_t pid = fork();
    if (pid == 0)
        _exit(try(there));
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void little_can_be_done(void **state)
{
    (void)state;
    char there[] = "/tmp/lockstep-sandbox-XXXXXX";
    int fd = mkstemp(there);
    assert_true(fd >= 0);
    close(fd);
    int status = end_of(try_all, there);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    status = end_of(open_many, there);
    assert_true(WIFEXITED(status));
    assert_in_range(WEXITSTATUS(status), 1, 64);
    status = end_of(write_far, there);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGXFSZ);
    assert_int_equal(unlink(there), 0);
    assert_int_equal(access(mark, F_OK), -1);
}

int main(void)
{
    // In a container without seccomp filters there is nothing to test.
    if (prctl(PR_GET_SECCOMP) < 0)
        return TEST_SKIPPED;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(little_can_be_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
