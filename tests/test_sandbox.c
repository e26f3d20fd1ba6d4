// test_sandbox.c - a process that runs a student's file may not make certain
// system calls.

#include "labs/sandbox.h"

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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
// allowed but must be refused. Returns 0 if there is none.
static int try_all(const char *there)
{
    struct timespec moment = {0, 1};
    struct rlimit limit = {1, 1};
    char *const words[] = {(char *)"true", NULL};
    pthread_t thread;
    char byte;
    int fd = open(there, O_RDWR);
    if (fd < 0 || sandbox_enter(0))
        return 1;
    if (!is_refused(read(fd, &byte, 1)) || !is_refused(lseek(fd, 0, SEEK_SET)))
        return 14;
    if (!is_refused(open(mark, O_WRONLY | O_CREAT, 0600)))
        return 2;
    if (!is_refused(open(there, O_RDONLY)) || !is_refused(truncate(there, 0)))
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
    if (!is_refused(kill(getppid(), 0)) ||
        !is_refused(syscall(SYS_tgkill, getppid(), getppid(), 0)) ||
        !is_refused(syscall(SYS_tkill, getppid(), 0)) ||
        !is_refused(syscall(SYS_rt_sigqueueinfo, getppid(), 0, NULL)) ||
        !is_refused(syscall(SYS_pidfd_open, getppid(), 0)))
        return 9;
    if (clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL) != EPERM)
        return 10;
    if (pthread_create(&thread, NULL, nothing, NULL) == 0)
        return 11;
    if (!is_refused(
            syscall(SYS_prlimit64, getppid(), RLIMIT_NOFILE, &limit, NULL)))
        return 12;
    if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
             0) != MAP_FAILED)
        return 13;
    return 0;
}

// What a process needs remains: memory, open descriptors, its own end.
static int compute(const char *there)
{
    int fd = open(there, O_RDWR);
    if (fd < 0 || sandbox_enter(0))
        return 1;
    char *p = malloc(8 << 20);
    if (!p || write(fd, memset(p, 1, 8 << 20), 8 << 20) != 8 << 20)
        return 2;
    free(p);
    abort();
}

static int take_memory(const char *there)
{
    (void)there;
    if (sandbox_enter(0))
        return 1;
    void *p = mmap(NULL, (size_t)2 << 30, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? 0 : 2;
}

// Writes beyond the largest size that a file may have, to a file that was open
// before.
static int write_far(const char *there)
{
    int fd = open(there, O_RDWR);
    if (fd < 0 || lseek(fd, 64 << 20, SEEK_SET) < 0 || sandbox_enter(0))
        return 1;
    return write(fd, "x", 1) == 1 ? 2 : 3;
}

static int sum(volatile const char *p)
{
    return p[0] + p[4095];
}

// Uses `pages` of 4 KiB of stack, in functions of one page each.
static int go_deep(int pages)
{
    volatile char page[4096];
    page[0] = page[4095] = 1;
    return pages ? go_deep(pages - 1) + sum(page) : 0;
}

static int use_stack(const char *there)
{
    (void)there;
    return sandbox_enter(256 << 10) || go_deep(30) < 0;
}

static int use_too_much_stack(const char *there)
{
    (void)there;
    return sandbox_enter(256 << 10) || go_deep(100) < 0;
}

#ifdef __x86_64__
// Makes getpid() as 32-bit programs do: by another table of numbers.
static int call_as_32_bits(const char *there)
{
    long result = 20;
    (void)there;
    if (sandbox_enter(0))
        return 1;
    __asm__ volatile("int $0x80" : "+a"(result) : : "memory");
    return 2;
}
#endif

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

static void ends_by(int signal, int try(const char *there), const char *there)
{
    int status = end_of(try, there);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), signal);
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
    assert_int_equal(end_of(take_memory, there), 0);
    assert_int_equal(end_of(use_stack, there), 0);
    ends_by(SIGSEGV, use_too_much_stack, there);
    ends_by(SIGABRT, compute, there);
    ends_by(SIGXFSZ, write_far, there);
#ifdef __x86_64__
    ends_by(SIGSYS, call_as_32_bits, there);
#endif
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
