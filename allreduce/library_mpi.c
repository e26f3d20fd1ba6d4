// library_mpi.c - does the verbs of group.h with Open MPI's non-blocking
// collectives, as DDP does.
//
// A verb becomes one request. The thread that drives the group tests all
// requests now and then, since Open MPI moves data only inside its calls. If
// Open MPI was built without MPI_THREAD_MULTIPLE, there is no such thread
// (group.c); then data move only while a verb is posted and in group_await().
//
// allreduce/algorithm.h chooses the algorithm of all_reduce. For reduce_scatter
// libnbc has one algorithm: it sums the whole vector on member 0, which then
// sends every member its chunk. So member 0's link is a bottleneck: log2(size)
// S go into it, where a ring moves (size-1)/size S into each member. Bytes are
// counted as in allreduce/operands.h.

#include "allreduce/library_carriers.h"

#include "allreduce/algorithm.h"
#include "allreduce/operands.h"
#include "allreduce/rollcall.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "device/vector.h"
#include "message/mpi_call.h"
#include "telemetry/span.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { TAG_PAIR = 1, TAG_CREATE = 3 };

enum { BLOCK = 4096 }; // elements: 16 KiB stay in the first-level cache

struct verb { // under way
    struct group_op op;
    uint64_t number;
    uint16_t *half; // fp32 in a 16-bit wire: the vector cast to 16 bits
    uint64_t begun_ns;
    bool ended;
};

// A number format of two bytes, which MPI does not know.
struct format {
    MPI_Datatype type;
    MPI_Op sum;
};

struct library {
    MPI_Comm comm;
    struct format fp16, bf16;
    struct rollcall roll;
    bool has_comm, has_formats;

    struct verb *verbs;    // ticket k at k % depth
    MPI_Request *requests; // in the same order
    int *chunks; // `size` lengths and offsets for each of a ticket's vectors
    int *ended;  // indices that MPI_Testsome returns
    uint16_t **unused; // spare vectors of job.largest elements
    size_t nunused;
    // Verbs begun so far; verbs done, counted from the first without a gap.
    uint64_t begun, done;

    uint64_t moved_ns;
    bool called; // rollcall_say() was called after moved_ns
    struct span_lane *lane;
    uint64_t recorded_ns; // end of the lane's last span
};

// ---- number formats

// Adds numbers of two bytes in fp32, and rounds once.
static void add(const uint16_t *in, uint16_t *inout, size_t n,
                enum dtype format)
{
    float wide[BLOCK];
    for (size_t i = 0; i < n; i += BLOCK) {
        size_t len = n - i < BLOCK ? n - i : BLOCK;
        vector_cast(wide, DTYPE_F32, in + i, format, len);
        vector_add_into_wire(inout + i, format, wide, len);
    }
}

static void add_f16(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)type;
    add(in, inout, (size_t)*n, DTYPE_F16);
}

static void add_bf16(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)type;
    add(in, inout, (size_t)*n, DTYPE_BF16);
}

static void format_open(struct format *f, MPI_User_function *add_all)
{
    MPI(MPI_Type_contiguous(2, MPI_BYTE, &f->type));
    MPI(MPI_Type_commit(&f->type));
    MPI(MPI_Op_create(add_all, 1, &f->sum));
}

static void format_close(struct format *f)
{
    MPI(MPI_Op_free(&f->sum));
    MPI(MPI_Type_free(&f->type));
}

static struct format format_of(const struct library *l, enum dtype t)
{
    const struct format formats[] = {
        [DTYPE_F32] = {MPI_FLOAT, MPI_SUM},
        [DTYPE_F16] = l->fp16,
        [DTYPE_BF16] = l->bf16,
        [DTYPE_F64] = {MPI_DOUBLE, MPI_SUM},
        [DTYPE_BYTE] = {MPI_BYTE, MPI_OP_NULL},
    };
    return formats[t];
}

// ---- one verb

// A 16-bit vector for a verb: a spare one, or a new one. NULL after fail().
static uint16_t *take_half(struct group *g)
{
    struct library *l = g->state;
    if (l->nunused)
        return l->unused[--l->nunused];
    return mem_alloc(g->job.largest, sizeof(uint16_t));
}

// Cast the numbers that this member gives to 16 bits. After an all_gather or a
// broadcast all members must have the same numbers, so round them in its own
// vector, too.
static int cast_down(struct group *g, struct verb *v)
{
    const struct group_vector *x = &v->op.vector;
    struct group_chunk own = operand_given(g, &v->op);
    bool result =
        v->op.verb == GROUP_ALL_GATHER || v->op.verb == GROUP_BROADCAST;
    v->half = take_half(g);
    if (!v->half)
        return -1;
    vector_cast_scaled(v->half + own.off, x->wire, group_at(x, own.off),
                       x->scale, own.n);
    if (result)
        vector_cast(group_at(x, own.off), DTYPE_F32, v->half + own.off, x->wire,
                    own.n);
    return 0;
}

// The lengths and offsets of the chunks of a verb's vector, as MPI takes them.
// It reads these arrays until the verb has ended.
struct chunks {
    int *lengths, *offsets;
};

static struct chunks chunks_of(const struct group *g, const struct verb *v,
                               const struct group_vector *x)
{
    const struct library *l = g->state;
    size_t slot = 2 * (size_t)(v->number % g->job.depth) + (x == &v->op.given);
    int *lengths = l->chunks + 2 * slot * (size_t)g->size;
    struct chunks k = {lengths, lengths + g->size};
    for (int c = 0; c < g->size; c++) {
        struct group_chunk chunk = group_chunk_of(x, g->job.grain, g->size, c);
        k.lengths[c] = (int)chunk.n;
        k.offsets[c] = (int)chunk.off;
    }
    return k;
}

// group.c has copied this member's own chunk.
static void ask_all_to_all(struct group *g, const struct verb *v,
                           MPI_Request *r)
{
    const struct library *l = g->state;
    const struct group_vector *to = &v->op.vector, *from = &v->op.given;
    struct chunks in = chunks_of(g, v, to), out = chunks_of(g, v, from);
    MPI_Datatype type = format_of(l, to->wire).type;
    in.lengths[g->rank] = out.lengths[g->rank] = 0;
    MPI(MPI_Ialltoallv(from->data, out.lengths, out.offsets, type, to->data,
                       in.lengths, in.offsets, type, l->comm, r));
}

static void ask(struct group *g, const struct verb *v, MPI_Request *r)
{
    const struct library *l = g->state;
    const struct group_op *op = &v->op;
    struct format f = format_of(l, op->vector.wire);
    void *data = v->half ? (void *)v->half : op->vector.data;
    bool root = g->rank == op->peer;
    int n = (int)op->vector.n;
    struct chunks k = chunks_of(g, v, &v->op.vector);
    switch (op->verb) {
    case GROUP_ALL_REDUCE:
        MPI(MPI_Iallreduce(MPI_IN_PLACE, data, n, f.type, f.sum, l->comm, r));
        break;
    case GROUP_REDUCE_SCATTER:
        MPI(MPI_Ireduce_scatter(MPI_IN_PLACE, data, k.lengths, f.type, f.sum,
                                l->comm, r));
        break;
    case GROUP_ALL_GATHER:
        MPI(MPI_Iallgatherv(MPI_IN_PLACE, 0, f.type, data, k.lengths, k.offsets,
                            f.type, l->comm, r));
        break;
    case GROUP_BROADCAST:
        MPI(MPI_Ibcast(data, n, f.type, op->peer, l->comm, r));
        break;
    case GROUP_REDUCE:
        MPI(MPI_Ireduce(root ? MPI_IN_PLACE : data, root ? data : NULL, n,
                        f.type, f.sum, op->peer, l->comm, r));
        break;
    case GROUP_SEND:
        MPI(MPI_Isend(data, n, f.type, op->peer, TAG_PAIR, l->comm, r));
        break;
    case GROUP_RECV:
        MPI(MPI_Irecv(data, n, f.type, op->peer, TAG_PAIR, l->comm, r));
        break;
    default:
        ask_all_to_all(g, v, r);
    }
}

// Copy the result into the vector. With MPI_IN_PLACE a reduce_scatter leaves
// its chunk at the vector's start, which this verb may overwrite.
static void take(struct group *g, struct verb *v)
{
    struct library *l = g->state;
    const struct group_vector *x = &v->op.vector;
    struct group_chunk own = operand_taken(g, &v->op);
    size_t from = v->op.verb == GROUP_REDUCE_SCATTER ? 0 : own.off;
    if (v->half) {
        vector_cast(group_at(x, own.off), DTYPE_F32, v->half + from, x->wire,
                    own.n);
        l->unused[l->nunused++] = v->half;
    } else if (from != own.off) {
        memmove(group_at(x, own.off), group_at(x, from),
                own.n * dtype_bytes(x->type));
    }
}

static void end(struct group *g, struct verb *v)
{
    struct library *l = g->state;
    uint64_t from = v->begun_ns, now = now_ns();
    if (from < l->recorded_ns)
        from = l->recorded_ns; // verbs may overlap, spans of a lane may not
    span_add(l->lane, SPAN_RECEIVE, (int)v->number, from, now);
    l->recorded_ns = now;
    take(g, v);
    v->ended = true;
}

// ---- a group's functions

static int library_begin(struct group *g, const struct group_op *op)
{
    struct library *l = g->state;
    size_t slot = (size_t)(l->begun % g->job.depth);
    struct verb *v = &l->verbs[slot];
    size_t n = op->vector.n > op->given.n ? op->vector.n : op->given.n;
    if (n > INT_MAX)
        return fail("%s: %zu elements in one %s, MPI's limit is %d; try: "
                    "sync=ring",
                    g->name, n, group_verb_name(op->verb), INT_MAX);
    *v = (struct verb){.op = *op, .number = l->begun, .begun_ns = now_ns()};
    if (group_casts(&op->vector) && cast_down(g, v))
        return -1;
    operands_count(g, op);
    ask(g, v, &l->requests[slot]);
    l->begun++;
    l->moved_ns = now_ns();
    l->called = false;
    return 0;
}

static int library_advance(struct group *g, uint64_t *done)
{
    struct library *l = g->state;
    int n;
    MPI(MPI_Testsome((int)g->job.depth, l->requests, &n, l->ended,
                     MPI_STATUSES_IGNORE));
    if (n == MPI_UNDEFINED)
        n = 0;
    for (int i = 0; i < n; i++)
        end(g, &l->verbs[l->ended[i]]);
    while (l->done < l->begun && l->verbs[l->done % g->job.depth].ended)
        l->done++;
    if (n > 0) {
        l->moved_ns = now_ns();
        l->called = false;
    }
    *done = l->done;
    return 0;
}

// mpi_nap() yields the core and sleeps at most 200 us, so nobody has to wake
// it.
static int library_wait(struct group *g)
{
    struct library *l = g->state;
    double idle = (double)(now_ns() - l->moved_ns) * 1e-9;
    double waited = (double)group_waited(g->since_ns, l->moved_ns) * 1e-9;
    double limit = g->job.cluster->timeout_s;
    char who[256];
    if (idle > limit / 2 && !l->called) {
        rollcall_say(&l->roll, (int64_t)l->begun);
        l->called = true;
    }
    if (waited < limit) {
        mpi_nap(l->moved_ns);
        return 0;
    }
    rollcall_missing(&l->roll, (int64_t)l->done + 1, who, sizeof who);
    return fail("%s: %llu of %llu exchanges done after %g s, waiting for %s",
                g->name, (unsigned long long)l->done,
                (unsigned long long)l->begun, limit,
                *who ? who : "the network (all ranks take part)");
}

// ---- open and close

static int open_memory(struct group *g)
{
    struct library *l = g->state;
    size_t depth = g->job.depth;
    l->verbs = mem_alloc(depth, sizeof *l->verbs);
    l->requests = mem_alloc(depth, sizeof(MPI_Request));
    l->chunks = mem_alloc(4 * depth * (size_t)g->size, sizeof *l->chunks);
    l->ended = mem_alloc(depth, sizeof *l->ended);
    l->unused = mem_alloc(depth, sizeof *l->unused);
    if (!l->verbs || !l->requests || !l->chunks || !l->ended || !l->unused)
        return -1;
    for (size_t i = 0; i < depth; i++)
        l->requests[i] = MPI_REQUEST_NULL;
    return 0;
}

// Makes a communicator of the cluster's members, in their order. This call has
// no deadline, so an allgather of the cluster, which has one, comes first.
static int open_comm(struct group *g)
{
    struct library *l = g->state;
    MPI_Group all, members;
    int rank, *ranks = mem_alloc((size_t)g->size, sizeof *ranks);
    if (!ranks)
        return -1;
    MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    int rc = cluster_allgather(g->job.cluster, &rank, ranks, sizeof rank);
    if (!rc) {
        MPI(MPI_Comm_group(MPI_COMM_WORLD, &all));
        MPI(MPI_Group_incl(all, g->size, ranks, &members));
        MPI(MPI_Comm_create_group(MPI_COMM_WORLD, members, TAG_CREATE,
                                  &l->comm));
        MPI(MPI_Group_free(&members));
        MPI(MPI_Group_free(&all));
        l->has_comm = true;
    }
    mem_free(ranks);
    return rc;
}

static int library_open(struct group *g)
{
    struct library *l = g->state;
    int up, level;
    MPI(MPI_Initialized(&up));
    if (!up)
        return fail("%s: MPI is not initialised; try: mpirun -n 2 trainer "
                    "sync=allreduce",
                    g->name);
    MPI(MPI_Query_thread(&level));
    if (level != MPI_THREAD_MULTIPLE)
        g->job.thread = false;
    l->lane = spans_lane(g->job.spans, g->name);
    if (algorithm_use((enum algorithm)g->job.algorithm) || open_memory(g) ||
        open_comm(g))
        return -1;
    format_open(&l->fp16, add_f16);
    format_open(&l->bf16, add_bf16);
    l->has_formats = true;
    return rollcall_open(&l->roll, l->comm, g->job.cluster->ranks);
}

static void library_close(struct group *g)
{
    struct library *l = g->state;
    // A collective that has begun cannot be cancelled, and writes into memory
    // that is about to be freed. The job has failed anyway: end it here.
    if (l->done < l->begun) {
        log_line("%s", *fail_message() ? fail_message()
                                       : "closed before an exchange was done");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    rollcall_close(&l->roll);
    if (l->has_formats) {
        format_close(&l->fp16);
        format_close(&l->bf16);
    }
    if (l->has_comm)
        MPI(MPI_Comm_free(&l->comm));
    while (l->nunused)
        mem_free(l->unused[--l->nunused]);
    mem_free(l->unused);
    mem_free(l->ended);
    mem_free(l->chunks);
    mem_free(l->requests);
    mem_free(l->verbs);
}

const struct group_ops library_mpi = {
    .name = "mpi",
    .library = true,
    .threaded = true,
    .state_size = sizeof(struct library),
    .open = library_open,
    .begin = library_begin,
    .advance = library_advance,
    .wait = library_wait,
    .close = library_close,
};
