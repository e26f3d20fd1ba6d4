// fake_nccl.c - NCCL's functions, over shared memory between forked workers.

#include "tests/fake_nccl.h"

#include "base/base.h"
#include "device/vector.h"
#include "tests/queue_device.h"

#include <linux/futex.h>
#include <nccl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { RANKS = 4, MAIL_BYTES = 1 << 22 };

// A letter from one rank to another; one at a time. It holds one while `full`
// is the number of this world: what an earlier one left is nothing.
struct mailbox {
    atomic_uint full;
    size_t bytes;
    char data[MAIL_BYTES];
};

struct shared {
    atomic_uint worlds;
    atomic_int fault;
    struct mailbox mail[RANKS][RANKS]; // [from][to]
};

static struct shared *shared;

struct ncclComm {
    int rank, world;
    unsigned id;
    atomic_bool aborted;
};

struct order {
    struct ncclComm *comm;
    enum { SEND, RECV, REDUCE, SPREAD } kind;
    const void *out;
    void *in;
    size_t n;
    ncclDataType_t type;
    int peer;
};

enum { GROUP = 8 };
static _Thread_local struct order group[GROUP];
static _Thread_local int grouped, depth;
static _Thread_local void *group_stream;
static int aborted;

void fake_nccl_setup(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
}

void fake_nccl_fault(enum fake_fault fault)
{
    shared->fault = (int)fault;
}

int fake_nccl_aborted(void)
{
    return aborted;
}

static size_t bytes_of(ncclDataType_t t)
{
    return t == ncclFloat32 ? 4 : 2;
}

static enum dtype dtype_of(ncclDataType_t t)
{
    return t == ncclFloat32   ? DTYPE_F32
           : t == ncclFloat16 ? DTYPE_F16
                              : DTYPE_BF16;
}

// ---- letters

static bool gone(const struct ncclComm *c)
{
    return c->aborted;
}

// Sleep until *word is changed from `seen`, or for a while; tell who sleeps.
static void doze(atomic_uint *word, unsigned seen)
{
    struct timespec most = {.tv_nsec = 10000000};
    syscall(SYS_futex, word, FUTEX_WAIT, seen, &most, NULL, 0);
}

static void change(atomic_uint *word, unsigned to)
{
    *word = to;
    syscall(SYS_futex, word, FUTEX_WAKE, 2, NULL, NULL, 0);
}

static void post(struct ncclComm *c, int to, const char *data, size_t bytes)
{
    struct mailbox *m = &shared->mail[c->rank][to];
    for (size_t at = 0; at < bytes; at += MAIL_BYTES) {
        size_t some = bytes - at < MAIL_BYTES ? bytes - at : MAIL_BYTES;
        while (m->full == c->id && !gone(c))
            doze(&m->full, c->id);
        if (gone(c))
            return;
        memcpy(m->data, data + at, some);
        m->bytes = some;
        change(&m->full, c->id);
    }
}

static void fetch(struct ncclComm *c, int from, char *data, size_t bytes)
{
    struct mailbox *m = &shared->mail[from][c->rank];
    for (size_t at = 0; at < bytes; at += MAIL_BYTES) {
        size_t some = bytes - at < MAIL_BYTES ? bytes - at : MAIL_BYTES;
        unsigned full;
        while ((full = m->full) != c->id && !gone(c))
            doze(&m->full, full);
        if (gone(c))
            return;
        CHECK(m->bytes == some);
        memcpy(data + at, m->data, some);
        change(&m->full, 0);
    }
}

// ---- collectives, in rank order through rank 0

static void spread_from_0(const struct order *o)
{
    size_t bytes = o->n * bytes_of(o->type);
    if (o->comm->rank == 0)
        for (int r = 1; r < o->comm->world; r++)
            post(o->comm, r, o->in, bytes);
    else
        fetch(o->comm, 0, o->in, bytes);
}

static void reduce_at_0(const struct order *o)
{
    size_t bytes = o->n * bytes_of(o->type);
    enum dtype t = dtype_of(o->type);
    if (o->comm->rank) {
        post(o->comm, 0, o->out, bytes);
    } else {
        float *sum = malloc(o->n * sizeof *sum + 1);
        char *theirs = malloc(bytes + 1);
        CHECK(sum && theirs);
        vector_cast(sum, DTYPE_F32, o->out, t, o->n);
        for (int r = 1; r < o->comm->world && !gone(o->comm); r++) {
            fetch(o->comm, r, theirs, bytes);
            vector_add(sum, theirs, t, o->n);
        }
        vector_cast(o->in, t, sum, DTYPE_F32, o->n);
        free(sum);
        free(theirs);
    }
    spread_from_0(o);
}

static void obey(const struct order *o)
{
    size_t bytes = o->n * bytes_of(o->type);
    if (o->kind == SEND)
        post(o->comm, o->peer, o->out, bytes);
    else if (o->kind == RECV)
        fetch(o->comm, o->peer, o->in, bytes);
    else if (o->kind == REDUCE)
        reduce_at_0(o);
    else
        spread_from_0(o);
}

struct batch {
    struct order orders[GROUP];
    int n;
};

// Small messages leave before others are waited for: no ring can close.
static void run(void *ctx)
{
    struct batch *b = ctx;
    for (int i = 0; i < b->n; i++)
        if (b->orders[i].kind != RECV)
            obey(&b->orders[i]);
    for (int i = 0; i < b->n; i++)
        if (b->orders[i].kind == RECV)
            obey(&b->orders[i]);
    free(b);
}

static void ask(void *stream)
{
    struct batch *b = malloc(sizeof *b);
    CHECK(b);
    b->n = grouped;
    memcpy(b->orders, group, sizeof group);
    grouped = 0;
    queue_device_ask(stream, run, b);
}

static ncclResult_t add(struct order o, void *stream)
{
    CHECK(grouped < GROUP);
    if (shared->fault == FAKE_BAD_CALL && o.kind == REDUCE)
        return ncclInvalidArgument;
    group[grouped++] = o;
    group_stream = stream;
    if (depth == 0)
        ask(stream);
    return ncclSuccess;
}

// ---- NCCL's names

ncclResult_t ncclGroupStart(void); // nccl.h declares them the old way
ncclResult_t ncclGroupEnd(void);

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    unsigned world = ++shared->worlds;
    memset(id, 0, sizeof *id);
    memcpy(id->internal, &world, sizeof world);
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int world,
                                    ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    CHECK(world <= RANKS && config->blocking == 0);
    *comm = calloc(1, sizeof **comm);
    CHECK(*comm);
    (*comm)->rank = rank;
    (*comm)->world = world;
    memcpy(&(*comm)->id, id.internal, sizeof(unsigned));
    return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state)
{
    (void)comm;
    *state = shared->fault == FAKE_NEVER_JOINS ? ncclInProgress
             : shared->fault == FAKE_LOST_PEER ? ncclRemoteError
                                               : ncclSuccess;
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    comm->aborted = true; // its memory stays: the queue may still look at it
    aborted++;
    return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    (void)comm;
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    free(comm);
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t r)
{
    return r == ncclInvalidArgument ? "invalid argument"
           : r == ncclRemoteError   ? "remote process exited"
                                    : "error";
}

ncclResult_t ncclGroupStart(void)
{
    depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    if (--depth == 0 && grouped)
        ask(group_stream);
    return ncclInProgress; // as a communicator that connects on first use
}

ncclResult_t ncclSend(const void *out, size_t n, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream)
{
    return add((struct order){.comm = comm,
                              .kind = SEND,
                              .out = out,
                              .n = n,
                              .type = type,
                              .peer = peer},
               stream);
}

ncclResult_t ncclRecv(void *in, size_t n, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream)
{
    return add((struct order){.comm = comm,
                              .kind = RECV,
                              .in = in,
                              .n = n,
                              .type = type,
                              .peer = peer},
               stream);
}

ncclResult_t ncclAllReduce(const void *out, void *in, size_t n,
                           ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream)
{
    CHECK(op == ncclSum);
    return add((struct order){.comm = comm,
                              .kind = REDUCE,
                              .out = out,
                              .in = in,
                              .n = n,
                              .type = type},
               stream);
}

ncclResult_t ncclBroadcast(const void *out, void *in, size_t n,
                           ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream)
{
    CHECK(root == 0 && out == in);
    return add((struct order){.comm = comm,
                              .kind = SPREAD,
                              .in = in,
                              .n = n,
                              .type = type},
               stream);
}
