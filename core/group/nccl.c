// nccl.c - a communicator of NCCL whose waits have a deadline, and the events
// after its verbs.

#include "group/nccl.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "device/busy.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

enum { NAP_NS = 20000, SPINS = 500 };

// Whether two ranks share a device. *a and *b become the first such pair.
static bool find_shared(const unsigned char (*ids)[DEVICE_ID], int world,
                        int *a, int *b)
{
    for (*a = 0; *a < world; ++*a)
        for (*b = *a + 1; *b < world; ++*b)
            if (!memcmp(ids[*a], ids[*b], DEVICE_ID))
                return true;
    return false;
}

int nccl_is_supported(const struct group_job *job, char why[128])
{
    unsigned char id[DEVICE_ID], (*ids)[DEVICE_ID];
    int world = job->cluster->world, a, b;
    if (device_is_host(job->dev)) {
        snprintf(why, 128, "NCCL joins GPUs, not host memory");
        return 0;
    }
    ids = mem_alloc((size_t)world, sizeof *ids);
    if (!ids)
        return -1;
    device_identity(job->dev, id);
    int rc = cluster_allgather(job->cluster, id, ids, sizeof id);
    bool shared = !rc && find_shared((const unsigned char(*)[DEVICE_ID])ids,
                                     world, &a, &b);
    mem_free(ids);
    if (shared)
        snprintf(why, 128, "ranks %d and %d share a GPU, which NCCL refuses", a,
                 b);
    return rc ? -1 : !shared;
}

ncclDataType_t nccl_type(enum dtype t)
{
    static const ncclDataType_t types[] = {
        [DTYPE_F32] = ncclFloat32,   [DTYPE_F16] = ncclFloat16,
        [DTYPE_BF16] = ncclBfloat16, [DTYPE_F64] = ncclFloat64,
        [DTYPE_BYTE] = ncclUint8,
    };
    return types[t];
}

// ---- errors

void nccl_abort(struct group *g)
{
    struct nccl *n = g->state;
    if (n->comm && !n->lost)
        ncclCommAbort(n->comm);
    n->lost = true;
}

// Aborts the communicator and fails. The error of the barrier names the ranks
// that do not answer. If all ranks answer, the fault is between them.
__attribute__((format(printf, 2, 3))) static int blame(struct group *g,
                                                       const char *format, ...)
{
    char why[256];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    nccl_abort(g);
    if (cluster_barrier(g->job.cluster))
        return fail("%s: %s: %s", g->name, why, fail_message());
    return fail("%s: %s, though every rank answers; try: NCCL_DEBUG=WARN",
                g->name, why);
}

bool nccl_has_begun(ncclResult_t r)
{
    return r == ncclSuccess || r == ncclInProgress;
}

// The state of the last call, or the error of asking for it.
static ncclResult_t state_of(const struct nccl *n)
{
    ncclResult_t state = ncclInProgress;
    ncclResult_t r = ncclCommGetAsyncError(n->comm, &state);
    return r == ncclSuccess ? state : r;
}

static bool is_late(const struct group *g, uint64_t since)
{
    return (double)(now_ns() - since) > g->job.cluster->timeout_s * 1e9;
}

// Waits until a non-blocking communicator has done the last call. NCCL ends
// every group of calls in a thread that it starts for that, which takes less
// time than a nap. So the first SPINS checks, about 100 us on an idle core,
// only yield in between.
static int settle(struct group *g, const char *call)
{
    uint64_t start = now_ns();
    for (int looks = 1;; looks++) {
        ncclResult_t state = state_of(g->state);
        if (state == ncclSuccess)
            return 0;
        if (state != ncclInProgress)
            return blame(g, "%s: %s", call, ncclGetErrorString(state));
        if (is_late(g, start))
            return blame(g, "%s: not done within %g s", call,
                         g->job.cluster->timeout_s);
        if (looks < SPINS)
            sched_yield();
        else
            sleep_ns(NAP_NS);
    }
}

int nccl_asked(struct group *g, ncclResult_t r, const char *call)
{
    if (r == ncclSuccess)
        return 0;
    return r == ncclInProgress
               ? settle(g, call)
               : blame(g, "%s: %s", call, ncclGetErrorString(r));
}

int nccl_grouped(struct group *g, ncclResult_t first, const char *call)
{
    ncclResult_t last = ncclGroupEnd();
    return nccl_asked(g, nccl_has_begun(first) ? last : first, call);
}

// Naps once during a wait that began at `since`. 0, or -1 after fail() if a
// peer is lost or the deadline has passed.
static int rest(struct group *g, uint64_t since)
{
    const struct nccl *n = g->state;
    if (n->lost)
        return fail("%s: the communicator was aborted", g->name);
    ncclResult_t state = state_of(n);
    if (!nccl_has_begun(state))
        return blame(g, "a peer is lost (%s)", ncclGetErrorString(state));
    if (is_late(g, since))
        return blame(g, "waited %g s for the other ranks",
                     g->job.cluster->timeout_s);
    sleep_ns(NAP_NS);
    return 0;
}

// ---- verbs

void nccl_begin(struct group *g)
{
    struct nccl *n = g->state;
    struct device *d = g->job.dev;
    device_record(d, &n->filled, DEVICE_COMPUTE);
    device_follow(d, DEVICE_COMM, &n->filled);
    busy_begin(d, DEVICE_COMM);
}

void nccl_end(struct group *g)
{
    struct nccl *n = g->state;
    struct device *d = g->job.dev;
    busy_end(d, DEVICE_COMM);
    device_record(d, &n->ended[n->begun % n->depth], DEVICE_COMM);
    n->begun++;
    n->waits_ns = 0;
}

int nccl_all_to_all(struct group *g, const struct group_op *op)
{
    const struct nccl *n = g->state;
    const struct group_vector *to = &op->vector, *from = &op->given;
    ncclDataType_t type = nccl_type(to->wire);
    ncclResult_t result = ncclGroupStart();
    for (int i = 1; i < g->size; i++) {
        int r = (g->rank + i) % g->size;
        struct group_chunk out = group_chunk_of(from, g->job.grain, g->size, r);
        struct group_chunk in = group_chunk_of(to, g->job.grain, g->size, r);
        if (out.n && nccl_has_begun(result))
            result = ncclSend(group_at(from, out.off), out.n, type, r, n->comm,
                              n->stream);
        if (in.n && nccl_has_begun(result))
            result = ncclRecv(group_at(to, in.off), in.n, type, r, n->comm,
                              n->stream);
    }
    return nccl_grouped(g, result, "all_to_all");
}

// The event of the newest verb; NULL before the first verb.
static const struct device_event *newest(const struct nccl *n)
{
    return n->begun ? &n->ended[(n->begun - 1) % n->depth] : NULL;
}

int nccl_await_all(struct group *g)
{
    const struct nccl *n = g->state;
    uint64_t start = now_ns();
    while (n->begun && !device_reached(g->job.dev, newest(n)))
        if (rest(g, start))
            return -1;
    return 0;
}

int nccl_advance(struct group *g, uint64_t *done)
{
    struct nccl *n = g->state;
    while (n->done < n->begun &&
           device_reached(g->job.dev, &n->ended[n->done % n->depth])) {
        n->done++;
        n->waits_ns = 0;
    }
    *done = n->done;
    return 0;
}

// The deadline counts from the time when the host began to wait, since it may
// have posted the verb long before.
int nccl_wait(struct group *g)
{
    struct nccl *n = g->state;
    if (!n->waits_ns)
        n->waits_ns = now_ns();
    return rest(g, n->waits_ns);
}

void nccl_follow(struct group *g)
{
    const struct device_event *e = newest(g->state);
    if (e)
        device_follow(g->job.dev, DEVICE_COMPUTE, e);
}

// ---- open and close

// Rank 0 sends this to the others.
struct invitation {
    ncclUniqueId id;
    ncclResult_t result; // of making the id
};

// Makes a communicator of all members.
static int join(struct group *g)
{
    struct nccl *n = g->state;
    struct cluster *c = g->job.cluster;
    struct invitation all;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    memset(&all, 0, sizeof all);
    if (c->rank == 0)
        all.result = ncclGetUniqueId(&all.id);
    if (cluster_bcast(c, &all, sizeof all))
        return -1;
    if (all.result != ncclSuccess)
        return fail("%s: NCCL starts no communicator on rank 0: %s; try: "
                    "NCCL_DEBUG=WARN",
                    g->name, ncclGetErrorString(all.result));
    if (prctl(PR_SET_TIMERSLACK, 1UL)) // the kernel adds 50 us to every nap
        log_line("%s: naps of this thread are long: %s", g->name,
                 strerror(errno));
    config.blocking = 0;
    if (g->job.ctas > 0)
        config.maxCTAs = g->job.ctas;
    ncclResult_t r =
        ncclCommInitRankConfig(&n->comm, c->world, all.id, c->rank, &config);
    return nccl_asked(g, r, "joining the ranks");
}

int nccl_open(struct group *g)
{
    struct nccl *n = g->state;
    struct device *d = g->job.dev;
    n->stream = device_handle(d, DEVICE_COMM);
    n->ended = mem_alloc(g->job.depth, sizeof *n->ended);
    if (!n->ended || device_event_open(d, &n->filled))
        return -1;
    for (; n->depth < g->job.depth; n->depth++)
        if (device_event_open(d, &n->ended[n->depth]))
            return -1;
    return join(g);
}

void nccl_close(struct group *g)
{
    struct nccl *n = g->state;
    struct device *d = g->job.dev;
    if (n->comm && !n->lost) {
        if (nccl_asked(g, ncclCommFinalize(n->comm), "leaving"))
            log_line("%s", fail_message());
        else
            ncclCommDestroy(n->comm);
    }
    device_finish(d);
    for (size_t i = 0; i < n->depth; i++)
        device_event_close(d, &n->ended[i]);
    device_event_close(d, &n->filled);
    mem_free(n->ended);
}
