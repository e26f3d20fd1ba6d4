// fake_nccl.c - NCCL's functions, over shared memory between workers.

#include "tests/fake_nccl.h"

#include "base/base.h"
#include "device/vector.h"
#include "tests/queue_device.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <nccl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { RANKS = 4, WORLDS = 8, MAIL_BYTES = 1 << 22 };

// Holds one message at a time from one rank to another. It is full if `full` is
// the number of this world; messages of earlier worlds do not count. At most
// WORLDS worlds may be open at the same time.
struct mailbox {
    atomic_uint full;
    size_t bytes;
    char data[MAIL_BYTES];
};

struct shared {
    atomic_uint worlds;
    atomic_int fault;
    struct mailbox mail[WORLDS][RANKS][RANKS]; // [world][from][to]
};

static struct shared *shared;

struct ncclComm {
    int rank, world;
    unsigned id;
    int looks; // how often its state will still be ncclInProgress
    atomic_bool aborted;
};

struct order {
    struct ncclComm *comm;
    enum { SEND, RECV, ALL_REDUCE, REDUCE, SCATTER, GATHER, BROADCAST } kind;
    const void *out;
    void *in;
    size_t n;
    ncclDataType_t type;
    int peer; // or the root
};

enum { GROUP = 8 };
static _Thread_local struct order group[GROUP];
static _Thread_local int grouped, depth;
static _Thread_local void *group_stream;
static int aborted, unaligned, looks_after = 3, ctas;

void fake_nccl_setup(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
}

static void map_file(void)
{
    int file = open(getenv("FAKE_NCCL"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CHECK(file >= 0 && ftruncate(file, sizeof *shared) == 0);
    shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(shared != MAP_FAILED);
    close(file);
}

void fake_nccl_fault(enum fake_fault fault)
{
    shared->fault = (int)fault;
}

void fake_nccl_looks(int looks)
{
    looks_after = looks;
}

int fake_nccl_unaligned(void)
{
    return unaligned;
}

int fake_nccl_ctas(void)
{
    return ctas == NCCL_CONFIG_UNDEF_INT ? 0 : ctas;
}

int fake_nccl_said(const char *what)
{
    if (!strstr(fail_message(), what))
        return fail("does not say \"%s\": %.200s", what, fail_message());
    return aborted == 1 ? 0 : fail("aborted %d times", aborted);
}

static enum dtype dtype_of(ncclDataType_t t)
{
    return t == ncclFloat32   ? DTYPE_F32
           : t == ncclFloat64 ? DTYPE_F64
           : t == ncclFloat16 ? DTYPE_F16
           : t == ncclUint8   ? DTYPE_BYTE
                              : DTYPE_BF16;
}

static size_t bytes_of(ncclDataType_t t)
{
    return dtype_bytes(dtype_of(t));
}

// ---- messages

static bool gone(const struct ncclComm *c)
{
    return c->aborted;
}

// Sleeps until *word is no longer `seen`, but at most 10 ms.
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
    struct mailbox *m = &shared->mail[c->id % WORLDS][c->rank][to];
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
    struct mailbox *m = &shared->mail[c->id % WORLDS][from][c->rank];
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

// ---- collectives, in rank order at the root

// Copies the root's n elements at `at` to every rank.
static void broadcast(const struct order *o, char *at, int root)
{
    size_t bytes = o->n * bytes_of(o->type);
    for (int r = 0; r < o->comm->world; r++)
        if (o->comm->rank == root && r != root)
            post(o->comm, r, at, bytes);
    if (o->comm->rank != root)
        fetch(o->comm, root, at, bytes);
}

static void add(void *sum, const void *theirs, const struct order *o)
{
    enum dtype t = dtype_of(o->type);
    if (t == DTYPE_F64)
        vector_add_doubles(sum, theirs, o->n);
    else
        vector_add(sum, theirs, t, o->n);
}

// On the root, `in` becomes the sum of n elements of `out` over all ranks,
// added in fp32 or in doubles.
static void reduce(const struct order *o, const char *out, char *in, int root)
{
    size_t bytes = o->n * bytes_of(o->type);
    enum dtype t = dtype_of(o->type);
    if (o->comm->rank != root) {
        post(o->comm, root, out, bytes);
        return;
    }
    enum dtype wide = t == DTYPE_F64 ? t : DTYPE_F32;
    char *sum = malloc(o->n * dtype_bytes(wide) + 1);
    char *theirs = malloc(bytes + 1);
    CHECK(sum && theirs);
    if (t == DTYPE_F64)
        memcpy(sum, out, bytes);
    else
        vector_cast(sum, DTYPE_F32, out, t, o->n);
    for (int r = 0; r < o->comm->world && !gone(o->comm); r++) {
        if (r == root)
            continue;
        fetch(o->comm, r, theirs, bytes);
        add(sum, theirs, o);
    }
    if (t == DTYPE_F64)
        memcpy(in, sum, bytes);
    else
        vector_cast(in, t, sum, DTYPE_F32, o->n);
    free(sum);
    free(theirs);
}

static void obey(const struct order *o)
{
    size_t bytes = o->n * bytes_of(o->type);
    const char *out = o->out;
    char *in = o->in;
    int world = o->comm->world, rank = o->comm->rank;
    switch (o->kind) {
    case SEND:
        post(o->comm, o->peer, out, bytes);
        break;
    case RECV:
        fetch(o->comm, o->peer, in, bytes);
        break;
    case ALL_REDUCE:
        reduce(o, out, in, 0);
        broadcast(o, in, 0);
        break;
    case REDUCE:
        reduce(o, out, in, o->peer);
        break;
    case SCATTER: // n elements to each
        for (int r = 0; r < world; r++)
            reduce(o, out + (size_t)r * bytes, in, r);
        break;
    case GATHER: // n elements from each
        memmove(in + (size_t)rank * bytes, out, bytes);
        for (int r = 0; r < world; r++)
            broadcast(o, in + (size_t)r * bytes, r);
        break;
    case BROADCAST:
        broadcast(o, in, o->peer);
    }
}

struct batch {
    struct order orders[GROUP];
    int n;
};

// Does the receives of a group last. So ranks that send to each other cannot
// wait for each other in a circle.
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

static ncclResult_t ask(void *stream)
{
    struct batch *b = malloc(sizeof *b);
    CHECK(b);
    group[0].comm->looks = looks_after;
    b->n = grouped;
    memcpy(b->orders, group, sizeof group);
    grouped = 0;
    queue_device_ask(stream, run, b);
    return ncclInProgress;
}

static ncclResult_t take(struct order o, void *stream)
{
    CHECK(grouped < GROUP && o.comm->looks == 0);
    if (shared->fault == FAKE_BAD_CALL && o.kind == ALL_REDUCE)
        return ncclInvalidArgument;
    unaligned += (uintptr_t)o.out % 16 != 0;
    unaligned += (uintptr_t)o.in % 16 != 0;
    group[grouped++] = o;
    group_stream = stream;
    return depth == 0 ? ask(stream) : ncclSuccess;
}

// ---- NCCL's names

ncclResult_t ncclGroupStart(void); // nccl.h declares them the old way
ncclResult_t ncclGroupEnd(void);

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    if (!shared)
        map_file();
    unsigned world = ++shared->worlds;
    memset(id, 0, sizeof *id);
    if (shared->fault == FAKE_NO_ID)
        return ncclSystemError;
    memcpy(id->internal, &world, sizeof world);
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int world,
                                    ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    CHECK(world <= RANKS && config->blocking == 0);
    if (!shared)
        map_file();
    ctas = config->maxCTAs;
    *comm = calloc(1, sizeof **comm);
    CHECK(*comm);
    (*comm)->rank = rank;
    (*comm)->world = world;
    memcpy(&(*comm)->id, id.internal, sizeof(unsigned));
    (*comm)->looks = looks_after;
    return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state)
{
    bool busy = comm->looks > 0 || shared->fault == FAKE_NEVER_JOINS;
    comm->looks -= comm->looks > 0;
    *state = shared->fault == FAKE_LOST_PEER ? ncclRemoteError
             : busy                          ? ncclInProgress
                                             : ncclSuccess;
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    comm->aborted = true; // its memory stays: the queue may still read it
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
           : r == ncclSystemError   ? "unhandled system error"
                                    : "error";
}

ncclResult_t ncclGroupStart(void)
{
    depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    return --depth == 0 && grouped ? ask(group_stream) : ncclSuccess;
}

ncclResult_t ncclSend(const void *out, size_t n, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream)
{
    return take((struct order){.comm = comm,
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
    return take((struct order){.comm = comm,
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
    return take((struct order){.comm = comm,
                               .kind = ALL_REDUCE,
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
    CHECK(out == in);
    return take((struct order){.comm = comm,
                               .kind = BROADCAST,
                               .in = in,
                               .n = n,
                               .type = type,
                               .peer = root},
                stream);
}

ncclResult_t ncclReduce(const void *out, void *in, size_t n,
                        ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream)
{
    CHECK(op == ncclSum);
    return take((struct order){.comm = comm,
                               .kind = REDUCE,
                               .out = out,
                               .in = in,
                               .n = n,
                               .type = type,
                               .peer = root},
                stream);
}

ncclResult_t ncclReduceScatter(const void *out, void *in, size_t n,
                               ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream)
{
    CHECK(op == ncclSum);
    return take((struct order){.comm = comm,
                               .kind = SCATTER,
                               .out = out,
                               .in = in,
                               .n = n,
                               .type = type},
                stream);
}

ncclResult_t ncclAllGather(const void *out, void *in, size_t n,
                           ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream)
{
    return take((struct order){.comm = comm,
                               .kind = GATHER,
                               .out = out,
                               .in = in,
                               .n = n,
                               .type = type},
                stream);
}
