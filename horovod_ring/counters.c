// counters.c - members on one host publish their progress in shared memory.

#include "horovod_ring/counters.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "group/group.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    LINE = 128,   // bytes of two cache lines, or of one of Apple's
    LOOK_MS = 100 // time between checks of the other members
};

struct slot {
    struct {
        _Alignas(LINE) _Atomic uint64_t at;
    } counters[COUNTERS];
    _Alignas(LINE) _Atomic uint32_t futex; // changed by others
    _Atomic uint32_t asleep;
    _Atomic int32_t failed; // 0, or 1 + the rank at fault
    _Atomic uint32_t left;  // 1 when this member has closed
    _Alignas(LINE) char place[2][COUNTERS_PLACE];
};

struct peer {
    struct shared_name name;
    struct slot *slot;
    int watch; // a pidfd
};

// ---- opening

static uint64_t inode_of(const char *path)
{
    struct stat st;
    return stat(path, &st) ? 0 : st.st_ino;
}

// A hash of everything that members must have in common: host, user,
// namespaces.
static uint64_t host_hash(void)
{
    char text[256] = "", host[256] = "";
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    gethostname(host, sizeof host - 1);
    uint64_t parts[] = {inode_of("/proc/self/ns/pid"),
                        inode_of("/proc/self/ns/net"), geteuid(),
                        hash_bytes(host, strlen(host))};
    return hash_more(hash_bytes(text, got > 0 ? (size_t)got : 0), parts,
                     sizeof parts);
}

struct probe {
    uint64_t host;
    struct shared_name name;
};

static bool can_map(const struct probe *all, int world)
{
    for (int r = 0; r < world; r++) {
        void *p = shared_map(&all[r].name, true);
        shared_unmap(p, &all[r].name);
        if (!p)
            return false;
    }
    return true;
}

int counters_possible(const struct group_job *job, char why[128])
{
    struct cluster *c = job->cluster;
    struct probe mine = {.host = host_hash()};
    int *maps = mem_alloc((size_t)c->world, sizeof *maps), possible = -1;
    struct probe *all = mem_alloc((size_t)c->world, sizeof *all);
    void *piece = maps && all ? shared_alloc(1, &mine.name) : NULL;
    if (!piece || cluster_allgather(c, &mine, all, sizeof mine))
        goto free_all;
    int other = 0;
    while (other < c->world && all[other].host == all[0].host)
        other++;
    int can = other == c->world && can_map(all, c->world);
    if (cluster_allgather(c, &can, maps, sizeof can))
        goto free_all;
    possible = c->world <= COUNTERS_WORLD;
    if (!possible)
        snprintf(why, 128, "%d workers; at most %d can share memory", c->world,
                 COUNTERS_WORLD);
    for (int r = c->world - 1; r >= 0; r--) {
        if (maps[r])
            continue;
        possible = 0;
        snprintf(why, 128, "rank %d cannot map the others' memory",
                 cluster_job_rank(c->ranks, r));
    }
    if (other < c->world)
        snprintf(why, 128,
                 "rank %d is on another host, or in a namespace of its own",
                 cluster_job_rank(c->ranks, other));
free_all:
    if (piece)
        shared_free(piece, &mine.name);
    mem_free(all);
    mem_free(maps);
    return possible;
}

static int map_peer(struct peer *p)
{
    p->slot = shared_map(&p->name, true);
    // Before Linux 5.3 there is no pidfd: only the deadline shows a death.
    p->watch = (int)syscall(SYS_pidfd_open, p->name.pid, 0);
    return p->slot ? 0 : -1;
}

int counters_open(struct counters *c, struct cluster *cluster, const char *name)
{
    struct shared_name *all = NULL;
    struct peer *mine;
    int rc = -1, world = cluster->world;
    *c = (struct counters){.name = name,
                           .rank = cluster->rank,
                           .world = world,
                           .ranks = cluster->ranks,
                           .timeout_s = cluster->timeout_s,
                           .crowded = world > sysconf(_SC_NPROCESSORS_ONLN),
                           .culprit = -1};
    c->peers = mem_alloc((size_t)world, sizeof *c->peers);
    all = mem_alloc((size_t)world, sizeof *all);
    if (!c->peers || !all)
        goto free_all;
    for (int r = 0; r < world; r++)
        c->peers[r].watch = -1;
    mine = &c->peers[c->rank];
    mine->slot = shared_alloc(sizeof *mine->slot, &mine->name);
    if (!mine->slot ||
        cluster_allgather(cluster, &mine->name, all, sizeof *all))
        goto free_all;
    for (int r = 0; r < world; r++) {
        c->peers[r].name = all[r];
        if (r != c->rank && map_peer(&c->peers[r]))
            goto free_all;
    }
    rc = cluster_barrier(cluster); // all have mapped before any may close
free_all:
    mem_free(all);
    return rc;
}

static void wake_sleepers(const struct counters *c)
{
    for (int r = 0; r < c->world; r++) {
        struct slot *s = c->peers[r].slot;
        if (!s || r == c->rank || !atomic_load(&s->asleep))
            continue;
        atomic_fetch_add(&s->futex, 1);
        syscall(SYS_futex, &s->futex, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    }
}

void counters_close(struct counters *c)
{
    if (!c->peers)
        return;
    struct peer *mine = &c->peers[c->rank];
    if (mine->slot) {
        atomic_store(&mine->slot->left, 1);
        wake_sleepers(c);
        shared_free(mine->slot, &mine->name);
    }
    for (int r = 0; r < c->world; r++) {
        if (c->peers[r].watch >= 0)
            close(c->peers[r].watch);
        if (r != c->rank)
            shared_unmap(c->peers[r].slot, &c->peers[r].name);
    }
    mem_free(c->peers);
    *c = (struct counters){0};
}

// ---- updating and waiting

// Who reads a value here also sees what its writer wrote before
// counters_set(). Reads and writes are sequentially consistent, because
// counters_set() and sleep_for_a_change() write one number and then read the
// other's: either the sleeper sees the new value, or the writer sees the
// sleeper.
uint64_t counters_read(const struct counters *c, int rank, enum counter k)
{
    return atomic_load(&c->peers[rank].slot->counters[k].at);
}

void counters_set(struct counters *c, enum counter k, uint64_t value)
{
    atomic_store(&c->peers[c->rank].slot->counters[k].at, value);
    wake_sleepers(c);
}

static int last_of(const struct counters *c, enum counter k)
{
    int last = 0;
    for (int r = 1; r < c->world; r++)
        if (counters_read(c, r, k) < counters_read(c, last, k))
            last = r;
    return last;
}

uint64_t counters_least(const struct counters *c, enum counter k)
{
    uint64_t least = counters_read(c, 0, k);
    for (int r = 1; r < c->world; r++) {
        uint64_t at = counters_read(c, r, k);
        least = at < least ? at : least;
    }
    return least;
}

char *counters_place(const struct counters *c, int rank, uint64_t turn)
{
    return c->peers[rank].slot->place[turn % 2];
}

// Counters only grow, so this differs after any change.
static uint64_t sum_of_all(const struct counters *c)
{
    uint64_t sum = 0;
    for (int r = 0; r < c->world; r++)
        for (int k = 0; k < COUNTERS; k++)
            sum += counters_read(c, r, (enum counter)k);
    return sum;
}

static bool is_behind(const struct counters *c, int r, const struct awaited *a)
{
    return (a->rank < 0 || a->rank == r) &&
           (a->k == MOVED || counters_read(c, r, a->k) < a->goal);
}

// All members must be ready for a step before any member does its part in it.
// So the last to be ready keeps all others waiting.
static int whom_we_await(const struct counters *c, const struct awaited *a)
{
    if (a->rank >= 0)
        return a->rank;
    int last = last_of(c, READY);
    return counters_read(c, last, READY) < a->goal ? last : last_of(c, a->k);
}

// Returns -1 after fail() if a member that we still need has failed or is gone.
// Numbers that a member wrote before its end are still good.
static int look_around(struct counters *c, const struct awaited *a,
                       bool (*come)(const void *arg), const void *arg)
{
    for (int r = 0; r < c->world; r++) {
        const struct peer *p = &c->peers[r];
        struct pollfd end = {.fd = p->watch, .events = POLLIN};
        if (r == c->rank)
            continue;
        int failed = atomic_load(&p->slot->failed);
        bool left = atomic_load(&p->slot->left);
        bool dead = poll(&end, 1, 0) > 0;
        if (failed > 0) {
            c->culprit = failed - 1;
            return fail("%s: rank %d failed, says rank %d", c->name,
                        cluster_job_rank(c->ranks, failed - 1),
                        cluster_job_rank(c->ranks, r));
        }
        if ((left || dead) && is_behind(c, r, a) && !come(arg)) {
            c->culprit = r;
            return fail("%s: rank %d %s", c->name,
                        cluster_job_rank(c->ranks, r),
                        left ? "closed" : "is gone");
        }
    }
    return 0;
}

#if defined(__x86_64__)
static void pause_core(void)
{
    __builtin_ia32_pause();
}
#elif defined(__aarch64__)
static void pause_core(void)
{
    __asm__ volatile("isb");
}
#else
static void pause_core(void)
{
}
#endif

// With fewer cores than members, the awaited member may need this core.
static void relax(const struct counters *c)
{
    if (c->crowded)
        sched_yield();
    pause_core();
}

// Sleeps until another member or counters_wake() wakes it, or for LOOK_MS. Does
// not sleep if a counter has changed since the last check. The futex is read
// before `woken`, and counters_wake() changes them in the opposite order, so no
// call of it is missed.
static void sleep_for_a_change(const struct counters *c)
{
    struct slot *mine = c->peers[c->rank].slot;
    const struct timespec most = {.tv_nsec = LOOK_MS * 1000000};
    uint32_t value = atomic_load(&mine->futex);
    atomic_store(&mine->asleep, 1);
    if (sum_of_all(c) == c->seen && !atomic_load(&c->woken))
        syscall(SYS_futex, &mine->futex, FUTEX_WAIT, value, &most, NULL, 0);
    atomic_store(&mine->asleep, 0);
}

// True when a counter has changed since the last such call.
static bool has_changed(struct counters *c)
{
    uint64_t before = c->seen;
    c->seen = sum_of_all(c);
    return c->seen != before;
}

bool counters_has_come(const struct counters *c, const struct awaited *a)
{
    return (a->rank < 0 ? counters_least(c, a->k)
                        : counters_read(c, a->rank, a->k)) >= a->goal;
}

void counters_wake(struct counters *c)
{
    struct slot *mine = c->peers[c->rank].slot;
    atomic_store(&c->woken, true);
    atomic_fetch_add(&mine->futex, 1);
    syscall(SYS_futex, &mine->futex, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static int late(struct counters *c, const struct awaited *a)
{
    c->culprit = whom_we_await(c, a);
    return fail("%s: nothing from rank %d for %g s; try: look at its log, or a "
                "longer timeout=",
                c->name, cluster_job_rank(c->ranks, c->culprit), c->timeout_s);
}

int counters_wait(struct counters *c, uint64_t since_ns, uint64_t spin_ns,
                  const struct awaited *first, bool (*come)(const void *arg),
                  const void *arg)
{
    uint64_t moved = 0, limit = (uint64_t)(c->timeout_s * 1e9);
    while (!come(arg) && !atomic_exchange(&c->woken, false)) {
        uint64_t now = now_ns();
        if (has_changed(c) || moved == 0)
            moved = now;
        if (now - moved <= spin_ns) {
            relax(c);
        } else if (group_waited(since_ns, moved) < limit) {
            sleep_for_a_change(c);
            if (look_around(c, first, come, arg))
                return -1;
        } else {
            return late(c, first);
        }
    }
    return 0;
}

void counters_abort(struct counters *c)
{
    int culprit = c->culprit < 0 ? c->rank : c->culprit;
    atomic_store(&c->peers[c->rank].slot->failed, 1 + culprit);
    wake_sleepers(c);
}
