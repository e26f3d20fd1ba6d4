// collective.c - runs and times one verb for one row of collect_perf, and
// checks its numbers and its bytes.

#include "bench/collective.h"

#include "bench/workers.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "device/device.h"
#include "device/vector.h"
#include "horovod_ring/carriers.h"
#include "message/mpi_call.h"
#include "telemetry/align.h"

#include <limits.h>
#include <sched.h>

enum { ROOT = 0, DEPTH = 4, GRAIN = 1, UNTOUCHED = -1000, TAG = 1 };

// ---- a common start
//
// Members leave a barrier tens of microseconds apart. A small message takes
// less time than that, so it could arrive before its receiver has begun. So
// worker 0 names a moment in the future, and everybody waits for it. On one
// host all members read the same clock. On several hosts the clocks' offsets
// are found with barriers.

enum { ROUNDS = 9, AHEAD_NS = 300000 };

struct clocks { // of one member
    uint64_t host;
    struct align_round rounds[ROUNDS];
};

static int compare_clocks(struct collective *c)
{
    struct clocks mine = {.host = align_host()};
    struct align found = {0};
    struct clocks *all = mem_alloc((size_t)c->cluster->world, sizeof *all);
    int rc = all ? 0 : -1;
    for (int i = 0; !rc && i < ROUNDS; i++) {
        mine.rounds[i].entered_ns = now_ns();
        rc = cluster_barrier(c->cluster);
        mine.rounds[i].left_ns = now_ns();
    }
    if (!rc)
        rc = cluster_allgather(c->cluster, &mine, all, sizeof mine);
    if (!rc && (!mine.host || mine.host != all[0].host))
        rc = align_clocks(mine.rounds, all[0].rounds, ROUNDS, &found);
    c->offset_ns = found.offset_ns;
    mem_free(all);
    return rc;
}

// Returns at the moment, or later on a member that did not get a core in time.
static int wait_for_start(struct collective *c)
{
    uint64_t at;
    if (cluster_barrier(c->cluster)) // nobody gets `at` too late
        return -1;
    at = now_ns() + AHEAD_NS;
    if (cluster_bcast(c->cluster, &at, sizeof at))
        return -1;
    c->start_ns = at + (uint64_t)c->offset_ns;
    while (now_ns() < c->start_ns)
        sched_yield();
    return 0;
}

// ---- open and close

// The first row with this row's carrier. It owns the group that these rows
// share.
static int owner(int row)
{
    int first = 0;
    while (collect_rows[first].carrier != collect_rows[row].carrier)
        first++;
    return first;
}

static int open_group(struct collective *c, int row)
{
    struct group_job job = {.name = collect_rows[owner(row)].name,
                            .cluster = c->cluster,
                            .dev = c->dev,
                            .grain = GRAIN,
                            .largest = c->most,
                            .depth = DEPTH,
                            .pairs = true,
                            .slice_bytes = (size_t)c->plan->slice_kb * 1024,
                            .iface = c->plan->iface};
    struct group **g = &c->groups[owner(row)];
    if (!*g) {
        *g = group_open(collect_rows[row].carrier, &job);
        if (!*g || group_share(*g, c->own, 2 * c->most * sizeof *c->own))
            return -1;
    }
    c->groups[row] = *g;
    return 0;
}

int collective_open(struct collective *c, const struct collect_plan *plan,
                    struct cluster *cluster, size_t most)
{
    *c = (struct collective){.plan = plan, .cluster = cluster, .most = most};
    if (compare_clocks(c) || device_open(&c->dev, "cpu"))
        return -1;
    c->own = device_alloc_shared(c->dev, 2 * most, sizeof *c->own);
    if (!c->own)
        return -1;
    c->received = c->own + most;
    for (int i = 0; i < COLLECT_ROWS; i++)
        if (plan->use[i] && collect_rows[i].carrier && open_group(c, i))
            return -1;
    return 0;
}

void collective_close(struct collective *c)
{
    for (int i = 0; i < COLLECT_ROWS; i++)
        if (owner(i) == i)
            group_close(&c->groups[i]);
    if (!c->dev)
        return;
    device_free(c->dev, c->own);
    device_close(&c->dev);
}

// ---- run

static struct schedule schedule_of(const struct collective *c, int row,
                                   enum collect_verb verb, size_t n)
{
    return (struct schedule){
        .op = (enum schedule_op)collect_facts[verb].op,
        .algorithm = (enum schedule_algorithm)collect_rows[row].algorithm,
        .world = c->cluster->world,
        .n = n,
        .piece = (size_t)c->plan->slice_kb * 1024 / sizeof(float)};
}

static struct group_vector floats(float *at, struct group_chunk span)
{
    struct group_vector v = group_floats(at + span.off, span.n);
    v.awaited = true;
    return v;
}

static int post_move(struct collective *c, struct group *g,
                     const struct move *m, uint64_t *ticket)
{
    struct group_vector v = floats(m->adds ? c->received : c->own, m->span);
    return m->sends ? group_send(g, &v, m->peer, ticket)
                    : group_recv(g, &v, m->peer, ticket);
}

// Runs a schedule round by round: a round begins when the one before is done.
static int run_schedule(struct collective *c, struct group *g,
                        const struct schedule *s)
{
    struct move m[2];
    uint64_t ticket;
    for (int k = 0, n; (n = schedule_next(s, g->rank, k, m)) > 0; k += n) {
        for (int i = 0; i < n; i++)
            if (post_move(c, g, &m[i], &ticket))
                return -1;
        if (group_await(g, ticket))
            return -1;
        if (m[0].adds)
            vector_add(c->own + m[0].span.off, c->received + m[0].span.off,
                       DTYPE_F32, m[0].span.n);
    }
    return 0;
}

static int run_verb(struct collective *c, struct group *g,
                    enum collect_verb verb, size_t n)
{
    const struct group_chunk all = {.n = n};
    const struct group_vector own = floats(c->own, all);
    const struct group_vector in = floats(c->received, all);
    struct group_op op = {.verb = collect_facts[verb].verb,
                          .vector = own,
                          .peer = ROOT};
    int left = (g->rank + g->size - 1) % g->size;
    uint64_t ticket;
    if (verb == COLLECT_SENDRECV)
        op.peer = (g->rank + 1) % g->size;
    if (verb == COLLECT_ALL_TO_ALL) {
        op.given = own;
        op.vector = in;
    }
    int rc = group_post(g, &op, &ticket);
    if (!rc && verb == COLLECT_SENDRECV)
        rc = group_recv(g, &in, left, &ticket);
    return rc ? -1 : group_await(g, ticket);
}

static void sendrecv(float *own, float *received, int n, int rank, int world)
{
    int right = (rank + 1) % world, left = (rank + world - 1) % world;
    MPI(MPI_Sendrecv(own, n, MPI_FLOAT, right, TAG, received, n, MPI_FLOAT,
                     left, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

static void all_to_all(float *own, float *received, int part, int world)
{
    int counts[WORKERS_MOST], at[WORKERS_MOST];
    CHECK(world <= WORKERS_MOST);
    for (int r = 0; r < world; r++) {
        counts[r] = part;
        at[r] = r * part;
    }
    MPI(MPI_Alltoallv(own, counts, at, MPI_FLOAT, received, counts, at,
                      MPI_FLOAT, MPI_COMM_WORLD));
}

// Calls MPI's own blocking function for a verb, in place where MPI can.
// sendrecv, all_to_all and reduce_scatter receive into c->received. An MPI
// error ends the job.
static void mpi_call(const struct collective *c, enum collect_verb verb,
                     size_t n)
{
    const MPI_Comm all = MPI_COMM_WORLD;
    int rank = c->cluster->rank, world = c->cluster->world;
    float *own = c->own, *received = c->received;
    int count = (int)n, part = count / world;
    float *mine = own + (size_t)rank * (size_t)part;
    float *sum = received + (size_t)rank * (size_t)part;
    bool root = rank == ROOT;
    CHECK(n <= INT_MAX);
    switch (verb) {
    case COLLECT_ALL_REDUCE:
        MPI(MPI_Allreduce(MPI_IN_PLACE, own, count, MPI_FLOAT, MPI_SUM, all));
        break;
    case COLLECT_REDUCE_SCATTER:
        MPI(MPI_Reduce_scatter_block(own, sum, part, MPI_FLOAT, MPI_SUM, all));
        break;
    case COLLECT_ALL_GATHER:
        MPI(MPI_Allgather(MPI_IN_PLACE, 0, MPI_FLOAT, own, part, MPI_FLOAT,
                          all));
        break;
    case COLLECT_BROADCAST:
        MPI(MPI_Bcast(own, count, MPI_FLOAT, ROOT, all));
        break;
    case COLLECT_REDUCE:
        MPI(MPI_Reduce(root ? MPI_IN_PLACE : own, root ? own : NULL, count,
                       MPI_FLOAT, MPI_SUM, ROOT, all));
        break;
    case COLLECT_SCATTER:
        MPI(MPI_Scatter(own, part, MPI_FLOAT, root ? MPI_IN_PLACE : mine, part,
                        MPI_FLOAT, ROOT, all));
        break;
    case COLLECT_GATHER:
        MPI(MPI_Gather(root ? MPI_IN_PLACE : mine, part, MPI_FLOAT, own, part,
                       MPI_FLOAT, ROOT, all));
        break;
    case COLLECT_ALL_TO_ALL:
        all_to_all(own, received, part, world);
        break;
    default:
        sendrecv(own, received, count, rank, world);
    }
}

static int run(struct collective *c, int row, enum collect_verb verb, size_t n)
{
    struct group *g = c->groups[row];
    if (!g) {
        mpi_call(c, verb, n);
        return 0;
    }
    if (collect_rows[row].algorithm == NO_SCHEDULE)
        return run_verb(c, g, verb, n);
    struct schedule s = schedule_of(c, row, verb, n);
    return run_schedule(c, g, &s);
}

// ---- the numbers

static void fill(struct collective *c, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        c->own[i] = table_number(c->cluster->rank, i);
        c->received[i] = UNTOUCHED;
    }
}

// The elements that the verb promises this member.
static struct group_chunk result(const struct collective *c,
                                 enum collect_verb verb, size_t n)
{
    const struct cluster *m = c->cluster;
    bool parts = verb == COLLECT_REDUCE_SCATTER || verb == COLLECT_SCATTER;
    bool rooted = verb == COLLECT_REDUCE || verb == COLLECT_GATHER;
    if (parts)
        return group_chunk(n, GRAIN, m->world, m->rank);
    return (struct group_chunk){.n = rooted && m->rank != ROOT ? 0 : n};
}

// Whether a verb's result is in `received`, and not in `own`.
static bool is_received(int row, enum collect_verb verb)
{
    bool own_call = !collect_rows[row].carrier;
    return verb == COLLECT_SENDRECV || verb == COLLECT_ALL_TO_ALL ||
           (own_call && verb == COLLECT_REDUCE_SCATTER);
}

static float expected(const struct collective *c, enum collect_verb verb,
                      size_t n, size_t i)
{
    int world = c->cluster->world, rank = c->cluster->rank;
    size_t part = n / (size_t)world;
    float sum = 0;
    switch (verb) {
    case COLLECT_BROADCAST:
    case COLLECT_SCATTER:
        return table_number(ROOT, i);
    case COLLECT_ALL_GATHER:
    case COLLECT_GATHER:
        return table_number((int)(i / part), i);
    case COLLECT_ALL_TO_ALL:
        return table_number((int)(i / part), (size_t)rank * part + i % part);
    case COLLECT_SENDRECV:
        return table_number((rank + world - 1) % world, i);
    default:
        for (int r = 0; r < world; r++)
            sum += table_number(r, i);
        return sum;
    }
}

static double count_wrong(const struct collective *c, int row,
                          enum collect_verb verb, size_t n)
{
    struct group_chunk span = result(c, verb, n);
    float *at = is_received(row, verb) ? c->received : c->own;
    double wrong = 0;
    if (c->plan->spoil && c->cluster->rank == 0)
        at[span.off] += 1;
    for (size_t i = span.off; i < span.off + span.n; i++)
        wrong += at[i] != expected(c, verb, n, i);
    return wrong;
}

// ---- the bytes

static double law(const struct collective *c, int row, enum collect_verb verb,
                  size_t n)
{
    const struct collect_row *r = &collect_rows[row];
    const struct group_op op = {.verb = collect_facts[verb].verb,
                                .vector = group_floats(c->own, n),
                                .given = group_floats(c->own, n),
                                .peer = ROOT};
    const struct plan ring = {.rank = c->cluster->rank,
                              .world = c->cluster->world,
                              .grain = GRAIN};
    struct schedule s = schedule_of(c, row, verb, n);
    size_t elements;
    if (r->algorithm != NO_SCHEDULE)
        elements = schedule_sends(&s, ring.rank);
    else if (!r->carrier)
        return -1;
    else if (verb == COLLECT_SENDRECV)
        elements = n;
    else if (r->carrier == &ring_tcp)
        elements = plan_elements(&ring, &op, OUT);
    else if (r->carrier == &ring_shm)
        elements = ring_shm_elements(&op, GRAIN, ring.rank, ring.world, OUT);
    else
        return -1;
    return (double)(elements * sizeof(float));
}

// ---- time and check

int collective_time(struct collective *c, int row, enum collect_verb verb,
                    size_t n, double *seconds)
{
    fill(c, n);
    if (wait_for_start(c))
        return -1;
    int rc = run(c, row, verb, n);
    *seconds = (double)(now_ns() - c->start_ns) * 1e-9;
    return rc;
}

int collective_check(struct collective *c, int row, enum collect_verb verb,
                     size_t n, struct collect_check *out)
{
    struct group *g = c->groups[row];
    uint64_t before = g ? g->stats.bytes_out : 0;
    double seconds;
    if (collective_time(c, row, verb, n, &seconds))
        return -1;
    *out = (struct collect_check){.wrong = count_wrong(c, row, verb, n),
                                  .sent = -1,
                                  .law = law(c, row, verb, n)};
    if (out->law >= 0)
        out->sent = (double)(g->stats.bytes_out - before);
    return 0;
}
