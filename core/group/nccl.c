// nccl.c - an NCCL communicator whose waits have a deadline.

#include "group/nccl.h"

#include "base/base.h"
#include "cluster/cluster.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

enum { NAP_NS = 20000, SPINS = 500 };

static bool late(const struct nccl *n, uint64_t start)
{
    return (double)(now_ns() - start) > n->cluster->timeout_s * 1e9;
}

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

int nccl_is_supported(struct cluster *cluster, struct device *dev,
                      char why[128])
{
    unsigned char id[DEVICE_ID], (*ids)[DEVICE_ID];
    int world = cluster->world, a, b;
    if (device_is_host(dev)) {
        snprintf(why, 128, "NCCL joins GPUs, not host memory");
        return 0;
    }
    ids = mem_alloc((size_t)world, sizeof *ids);
    if (!ids)
        return -1;
    device_identity(dev, id);
    int rc = cluster_allgather(cluster, id, ids, sizeof id);
    bool shared = !rc && find_shared((const unsigned char(*)[DEVICE_ID])ids,
                                     world, &a, &b);
    mem_free(ids);
    if (rc)
        return -1;
    if (shared)
        snprintf(why, 128, "ranks %d and %d share a GPU, which NCCL refuses", a,
                 b);
    return shared ? 0 : 1;
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

// Only this ends kernels that wait for a peer.
void nccl_abort(struct nccl *n)
{
    if (n->comm && !n->lost)
        ncclCommAbort(n->comm);
    n->lost = true;
}

// Aborts the communicator and fails. The error of the barrier names the ranks
// that do not answer. If all ranks answer, the fault is between them.
static int blame(struct nccl *n, const char *what)
{
    char why[256];
    nccl_abort(n);
    snprintf(why, sizeof why, "%s", what);
    if (cluster_barrier(n->cluster)) {
        char missing[512];
        snprintf(missing, sizeof missing, "%s", fail_message());
        return fail("%s: %s: %s", n->name, why, missing);
    }
    return fail("%s: %s, though every rank answers; try: NCCL_DEBUG=WARN",
                n->name, why);
}

// Waits until a non-blocking communicator has done the last call. NCCL ends
// every group of calls in a thread that it starts for that, which takes less
// time than a nap. So the first SPINS checks, about 100 us on an idle core,
// only yield in between.
static int settle(struct nccl *n, const char *call)
{
    uint64_t start = now_ns();
    char what[256];
    for (int looks = 1;; looks++) {
        ncclResult_t state = ncclInProgress;
        ncclResult_t r = ncclCommGetAsyncError(n->comm, &state);
        if (r == ncclSuccess && state == ncclSuccess)
            return 0;
        if (r != ncclSuccess || state != ncclInProgress) {
            snprintf(what, sizeof what, "%s: %s", call,
                     ncclGetErrorString(r != ncclSuccess ? r : state));
            return blame(n, what);
        }
        if (late(n, start)) {
            snprintf(what, sizeof what, "%s: not done within %g s", call,
                     n->cluster->timeout_s);
            return blame(n, what);
        }
        if (looks < SPINS)
            sched_yield();
        else
            sleep_ns(NAP_NS);
    }
}

int nccl_asked(struct nccl *n, ncclResult_t r, const char *call)
{
    char what[256];
    if (r == ncclSuccess)
        return 0;
    if (r == ncclInProgress)
        return settle(n, call);
    snprintf(what, sizeof what, "%s: %s", call, ncclGetErrorString(r));
    return blame(n, what);
}

int nccl_grouped(struct nccl *n, ncclResult_t first, const char *call)
{
    ncclResult_t last = ncclGroupEnd();
    bool began = first == ncclSuccess || first == ncclInProgress;
    return nccl_asked(n, began ? last : first, call);
}

int nccl_rest(struct nccl *n, uint64_t since)
{
    ncclResult_t state = ncclSuccess;
    char what[256];
    if (n->lost)
        return fail("%s: the communicator was aborted", n->name);
    ncclResult_t r = ncclCommGetAsyncError(n->comm, &state);
    if (r != ncclSuccess || (state != ncclSuccess && state != ncclInProgress)) {
        snprintf(what, sizeof what, "a peer is lost (%s)",
                 ncclGetErrorString(r != ncclSuccess ? r : state));
        return blame(n, what);
    }
    if (late(n, since)) {
        snprintf(what, sizeof what, "waited %g s for the other ranks",
                 n->cluster->timeout_s);
        return blame(n, what);
    }
    sleep_ns(NAP_NS);
    return 0;
}

int nccl_await(struct nccl *n, const struct device_event *e)
{
    uint64_t start = now_ns();
    int reached;
    if (n->lost)
        return fail("%s: the communicator was aborted", n->name);
    while ((reached = device_reached(n->dev, e)) == 0)
        if (nccl_rest(n, start))
            return -1;
    return reached > 0 ? 0 : -1;
}

// ---- open and close

// Rank 0 sends this to the others.
struct invitation {
    ncclUniqueId id;
    ncclResult_t result; // of making the id
};

int nccl_open(struct nccl *n, struct cluster *cluster, struct device *dev,
              const char *name, int ctas)
{
    struct invitation all;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    *n = (struct nccl){.name = name,
                       .cluster = cluster,
                       .dev = dev,
                       .stream = device_handle(dev, DEVICE_COMM)};
    memset(&all, 0, sizeof all);
    if (cluster->rank == 0)
        all.result = ncclGetUniqueId(&all.id);
    if (cluster_bcast(cluster, &all, sizeof all))
        return -1;
    if (all.result != ncclSuccess)
        return fail("%s: NCCL starts no communicator on rank 0: %s; try: "
                    "NCCL_DEBUG=WARN",
                    name, ncclGetErrorString(all.result));
    if (prctl(PR_SET_TIMERSLACK, 1UL)) // the kernel adds 50 us to every nap
        log_line("%s: naps of this thread are long: %s", name, strerror(errno));
    config.blocking = 0;
    if (ctas > 0)
        config.maxCTAs = ctas;
    ncclResult_t r = ncclCommInitRankConfig(&n->comm, cluster->world, all.id,
                                            cluster->rank, &config);
    return nccl_asked(n, r, "joining the ranks");
}

void nccl_close(struct nccl *n)
{
    if (n->comm && !n->lost) {
        ncclResult_t r = ncclCommFinalize(n->comm);
        if (nccl_asked(n, r, "leaving"))
            log_line("%s", fail_message());
        else
            ncclCommDestroy(n->comm);
    }
    *n = (struct nccl){0};
}
