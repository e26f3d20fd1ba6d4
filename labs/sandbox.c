// sandbox.c - limits, and a filter of system calls (seccomp, Linux).
//
// The filter allows the calls that are listed, which are those of memory, of
// messages on open sockets, of output and of the end of a process, and refuses
// all others. All ranks print to one file: what one of them has printed no
// other can read. A sanitizer that reports an error makes more calls, for
// example to find the names of functions. They fail, and it reports without
// them.

#include "labs/sandbox.h"

#include "base/base.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined __x86_64__
enum { NATIVE = (int)AUDIT_ARCH_X86_64 };
#elif defined __aarch64__
enum { NATIVE = (int)AUDIT_ARCH_AARCH64 };
#else
#error "sandbox.c: add this machine's AUDIT_ARCH, see linux/audit.h"
#endif

static const int allowed[] = {
    SYS_write,         SYS_writev,       SYS_sendto,         SYS_recvfrom,
    SYS_close,         SYS_munmap,       SYS_madvise,        SYS_mremap,
    SYS_brk,           SYS_futex,        SYS_sched_yield,    SYS_getpid,
    SYS_gettid,        SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn,
    SYS_sigaltstack,   SYS_exit,         SYS_exit_group,     SYS_getrandom,
    SYS_clock_gettime,
};

// Calls that are allowed if argument & mask == value. A signal goes to the own
// process only, as abort() sends it; no data becomes code.
struct judged {
    int call, argument;
    unsigned mask, value;
};

enum {
    ALLOWED = (int)sizeof allowed / (int)sizeof *allowed,
    JUDGED = 3,
    INSTRUCTIONS = 5 + 2 * ALLOWED + 5 * JUDGED,
    NUMBER = offsetof(struct seccomp_data, nr),
    ARCH = offsetof(struct seccomp_data, arch),
    ARGUMENTS = offsetof(struct seccomp_data, args),
};

// With x32 a number has this bit; then it is not in the list.
static int filter_calls(void)
{
    const struct judged judged[JUDGED] = {
        {SYS_tgkill, 0, ~0u, (unsigned)getpid()},
        {SYS_mmap, 2, PROT_EXEC, 0},
        {SYS_mprotect, 2, PROT_EXEC, 0},
    };
    struct sock_filter code[INSTRUCTIONS];
    unsigned short n = 0;
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARCH);
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                             (unsigned)NATIVE, 1, 0);
    code[n++] =
        (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, NUMBER);
    for (int i = 0; i < ALLOWED; i++) {
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                                 (unsigned)allowed[i], 0, 1);
        code[n++] =
            (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    for (int i = 0; i < JUDGED; i++) { // the last statement follows a refusal
        unsigned at = ARGUMENTS + 8u * (unsigned)judged[i].argument;
        unsigned end = (unsigned)(5 * (JUDGED - 1 - i));
        code[n++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                         (unsigned)judged[i].call, 0, 4);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K,
                                                 judged[i].mask);
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                                 judged[i].value, 0, 1 + end);
        code[n++] =
            (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
                                             SECCOMP_RET_ERRNO | EPERM);
    struct sock_fprog program = {n, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return fail("no_new_privs: %s", strerror(errno));
    // A container may not support filters. The other limits still hold.
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) && errno != EINVAL)
        return fail("seccomp: %s", strerror(errno));
    return 0;
}

// The bytes of data that this process has mapped: with the address sanitizer,
// terabytes that it never uses.
static rlim_t mapped_data(void)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f && fscanf(f, "%*u %*u %*u %*u %*u %lu", &pages) != 1)
        pages = 0;
    if (f)
        fclose(f);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

int sandbox_enter(size_t stack)
{
    const struct {
        int what;
        rlim_t most;
    } limits[] = {
        {RLIMIT_CPU, 5},
        {RLIMIT_CORE, 0},
        {RLIMIT_FSIZE, 64 << 20},
        {RLIMIT_DATA, mapped_data() + ((rlim_t)1 << 30)},
        {RLIMIT_STACK, stack ? stack : RLIM_INFINITY},
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct rlimit l = {limits[i].most, limits[i].most};
        if (limits[i].most != RLIM_INFINITY && setrlimit(limits[i].what, &l))
            return fail("limit %d: %s", limits[i].what, strerror(errno));
    }
    return filter_calls();
}
