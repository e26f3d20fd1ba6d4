// sandbox.c - limits, and a filter of system calls (seccomp, Linux).
//
// The filter refuses the calls that are listed, and allows all others. A list
// of allowed calls would have to name those of every version of the sanitizers,
// which are too many. The first line of defence is the list of functions that a
// student's file may call (labs/grading/build.py). This filter is the second.

#include "labs/sandbox.h"

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static const int refused[] = {
    SYS_execve,     SYS_execveat,
    SYS_ptrace,     SYS_socket,
    SYS_socketpair, SYS_process_vm_readv,
    SYS_kill,       SYS_process_vm_writev,
    SYS_setsid,     SYS_setpgid,
    SYS_nanosleep,  SYS_clock_nanosleep,
    SYS_unlinkat,   SYS_renameat2,
    SYS_mkdirat,    SYS_symlinkat,
    SYS_linkat,     SYS_mknodat,
    SYS_truncate,   SYS_fchmodat,
    SYS_fchownat,   SYS_io_uring_setup,
#ifdef SYS_renameat
    SYS_renameat,
#endif
#ifdef SYS_fork // the older calls, where a machine still has them
    SYS_fork,       SYS_vfork,
    SYS_creat,      SYS_unlink,
    SYS_rename,     SYS_mkdir,
    SYS_rmdir,      SYS_symlink,
    SYS_link,       SYS_mknod,
    SYS_chmod,      SYS_chown,
    SYS_lchown,
#endif
};

// Calls that are refused by one argument: if (argument & mask) != allowed.
static const struct {
    int call, argument;
    unsigned mask, allowed;
} judged[] = {
    {SYS_clone, 0, CLONE_THREAD, CLONE_THREAD}, // a thread is no process
    {SYS_openat, 2, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY},
#ifdef SYS_open
    {SYS_open, 1, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY},
#endif
};

// A filter cannot see the arguments of these calls. If they are refused with
// ENOSYS, the C library uses older calls.
static const int unknown[] = {SYS_clone3, SYS_openat2};

enum {
    REFUSED = (int)sizeof refused / (int)sizeof *refused,
    JUDGED = (int)sizeof judged / (int)sizeof *judged,
    UNKNOWN = (int)sizeof unknown / (int)sizeof *unknown,
    INSTRUCTIONS = 2 + 2 * REFUSED + 6 * JUDGED + 2 * UNKNOWN,
    NUMBER = offsetof(struct seccomp_data, nr),
};

static int filter_calls(void)
{
    struct sock_filter code[INSTRUCTIONS];
    unsigned short n = 0;
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, NUMBER);
    for (int i = 0; i < REFUSED; i++) {
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                                 (unsigned)refused[i], 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
                                                 SECCOMP_RET_ERRNO | EPERM);
    }
    for (int i = 0; i < UNKNOWN; i++) {
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                                 (unsigned)unknown[i], 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
                                                 SECCOMP_RET_ERRNO | ENOSYS);
    }
    for (int i = 0; i < JUDGED; i++) {
        unsigned at = (unsigned)offsetof(struct seccomp_data, args) +
                      8u * (unsigned)judged[i].argument;
        code[n++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                         (unsigned)judged[i].call, 0, 5);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K,
                                                 judged[i].mask);
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                                 judged[i].allowed, 1, 0);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
                                                 SECCOMP_RET_ERRNO | EPERM);
        code[n++] =
            (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    code[n++] =
        (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {n, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return fail("no_new_privs: %s", strerror(errno));
    // A container may not support filters. The other limits still hold.
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) && errno != EINVAL)
        return fail("seccomp: %s", strerror(errno));
    return 0;
}

int sandbox_enter(void)
{
    static const struct {
        int what;
        rlim_t most;
    } limits[] = {
        {RLIMIT_CPU, 5},
        {RLIMIT_CORE, 0},
        {RLIMIT_FSIZE, 64 << 20},
        {RLIMIT_NOFILE, 64},
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct rlimit l = {limits[i].most, limits[i].most};
        if (setrlimit(limits[i].what, &l))
            return fail("limit %d: %s", limits[i].what, strerror(errno));
    }
    return filter_calls();
}
