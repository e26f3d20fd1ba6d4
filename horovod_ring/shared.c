// shared.c - the ring's sums where all workers are on one host: no ring at all.
//
// What a ring does with messages, memory does better: every worker reads its
// own chunk out of all workers' gradients where they lie, and writes the sum
// into all of them, in one pass.
//
//     worker          0    1    2        0    1    2
//     gradients     a0   a1   a2       A    A    A
//                   b0   b1   b2  ->   B    B    B
//                   c0   c1   c2       C    C    C
//                   READY              SUMMED
//
//     time     2 steps of the board (board.h) + bytes moved / memory bandwidth
//     payload  2(world-1)/world S out of and into each worker, as the ring's
//
// A small vector is not worth two steps of the board: every worker sums all of
// it for itself, out of copies that all make (in_one_step()).
//
// The order of additions is the ring's, chunk c from worker c+1 round to c, and
// so is the rounding of a 16-bit wire after each, so the bits are those that
// the ring's messages give. A 16-bit wire saves nothing here: memory is read in
// fp32, and counted so.
//
// There is no thread: sums that can be made are made when a bucket becomes
// ready, and the rest in step(). Gradients are read and written by others from
// the moment that their bucket is ready until all have SUMMED, which step()
// waits for.

#include "horovod_ring/ring.h"

#include "horovod_ring/board.h"
#include "horovod_ring/fusion.h"

#include "base/base.h"
#include "base/half.h"
#include "cluster/cluster.h"
#include "device/device.h"
#include "device/vector.h"
#include "group/group.h"
#include "sync/update.h"
#include "telemetry/span.h"

#include <string.h>

enum {
    WORLD_MOST = 256,
    ONE_STEP = 2048,  // elements: up to here, all sum everything
    BLOCK = 4096,     // elements: stays in the nearest cache
    PIECE = 4 * BLOCK // of one thread at a time
};

struct ring {
    enum dtype wire;
    float divisor; // of the sum; a power of two, 1 for fp32
    struct update update;
    struct bucket *groups; // buckets, fused
    int ngroups;
    int next; // the group that fills up next

    struct device *host;
    float *copy;   // of the gradients, where others get a copy; or NULL
    float *vector; // what the others see: gradients, or their copy
    struct board board;
    uint64_t posted, summed; // groups since open
    uint64_t pieces;         // of broadcasts
    struct span_lane *lane;
};

// ---- sums

// One step of the board is enough if nobody writes where others read: each
// worker's copy has two places, filled by turns. Place k % 2 is written again in
// step k+2, which begins when step k+1 has returned, that is, when all others
// were ready in step k+1, and so had returned from step k: nobody reads it any
// more.
static bool in_one_step(const struct sync_job *job)
{
    return job->n <= ONE_STEP;
}

// Where in the workers' vectors the gradients of a group are.
static size_t place(const struct sync *s, uint64_t group)
{
    const struct ring *r = s->state;
    bool odd = group / (uint64_t)r->ngroups % 2;
    return in_one_step(&s->job) && odd ? s->job.n : 0;
}

// As wire.h has it for messages: divided, and rounded after every addition.
static void sum_narrow(const struct ring *r, float *const *dst, int d,
                       const float *const *src, size_t n)
{
    float scaled[BLOCK];
    uint16_t narrow[BLOCK];
    enum dtype wire = (enum dtype)r->wire;
    vector_cast_scaled(narrow, wire, src[0], 1 / r->divisor, n);
    for (int j = 1; j < r->board.world; j++) {
        vector_cast_scaled(scaled, DTYPE_F32, src[j], 1 / r->divisor, n);
        vector_add_into_wire(narrow, wire, scaled, n);
    }
    for (int j = 0; j < d; j++)
        vector_cast(dst[j], DTYPE_F32, narrow, wire, n);
}

// Elements [off, off + n) of chunk c, whose first source is worker c+1; into
// all sources, or into `only`.
static void sum_block(const struct ring *r, int c, size_t off, float *only,
                      size_t n)
{
    float *v[WORLD_MOST];
    int world = r->board.world;
    for (int j = 0; j < world; j++)
        v[j] = r->board.peers[(c + 1 + j) % world].vector + off;
    const float *const *src = (const float *const *)v;
    float *const *dst = only ? &only : v;
    int d = only ? 1 : world;
    if (r->wire == DTYPE_F32)
        vector_sum(dst, d, src, world, n);
    else
        sum_narrow(r, dst, d, src, n);
}

// This worker's chunk of a group, for all.
static void sum_chunk(const struct ring *r, const struct bucket *g)
{
    struct group_chunk own =
        group_chunk(g->n, 1, r->board.world, r->board.rank);
    size_t off = g->off + own.off;
#pragma omp parallel for if (own.n > 2 * PIECE) schedule(static)
    for (size_t i = 0; i < own.n; i += BLOCK)
        sum_block(r, r->board.rank, off + i, NULL,
                  own.n - i < BLOCK ? own.n - i : BLOCK);
}

// All chunks of a group, for this worker. No loop for several threads here: to
// enter one would take as long as the rest.
static void sum_alone(const struct sync *s, const struct bucket *g)
{
    const struct ring *r = s->state;
    size_t from = place(s, r->summed);
    for (int c = 0; c < r->board.world; c++) {
        struct group_chunk chunk = group_chunk(g->n, 1, r->board.world, c);
        size_t off = g->off + chunk.off;
        sum_block(r, c, from + off, s->job.grads + off, chunk.n);
    }
}

static void copy_floats(float *to, const float *from, size_t n)
{
    if (n <= ONE_STEP) {
        memcpy(to, from, n * sizeof *to);
        return;
    }
#pragma omp parallel for if (n > 2 * PIECE) schedule(static)
    for (size_t i = 0; i < n; i += PIECE)
        memcpy(to + i, from + i,
               (n - i < PIECE ? n - i : PIECE) * sizeof(float));
}

// Elements of a group that come into a worker: those that it reads from the
// others, and those that they write into it. As many go out.
static size_t elements(const struct sync_job *job, size_t n, int rank,
                       int world)
{
    size_t others = (size_t)(world - 1), own = group_chunk(n, 1, world, rank).n;
    return in_one_step(job) ? others * n : others * own + n - own;
}

void ring_shared_law(const struct sync_job *job, int rank, int world,
                     double fusion_mb, uint64_t *out, uint64_t *in)
{
    struct bucket *groups;
    int n = fusion_cut(&groups, job, fusion_mb);
    *out = 0;
    for (int g = 0; world > 1 && g < n; g++)
        *out += elements(job, groups[g].n, rank, world) * sizeof(float);
    *in = *out;
    mem_free(groups);
}

static void sum_group(struct sync *s)
{
    struct ring *r = s->state;
    const struct board *b = &r->board;
    const struct bucket *g = &r->groups[r->summed % (uint64_t)r->ngroups];
    uint64_t bytes = elements(&s->job, g->n, b->rank, b->world) * sizeof(float);
    uint64_t began = r->lane ? now_ns() : 0;
    if (in_one_step(&s->job))
        sum_alone(s, g);
    else
        sum_chunk(r, g);
    if (r->lane)
        span_add(r->lane, SPAN_ADD, (int)r->summed, began, now_ns());
    s->stats.bytes_in += bytes;
    s->stats.bytes_out += bytes;
}

// Do all that can be done now. Whether that is all that was asked for, by all.
static bool advance(void *arg)
{
    struct sync *s = arg;
    struct ring *r = s->state;
    bool alone = in_one_step(&s->job);
    while (r->summed < r->posted && board_least(&r->board, READY) > r->summed) {
        sum_group(s);
        r->summed++;
        if (!alone)
            board_tell(&r->board, SUMMED, r->summed);
    }
    return r->summed == r->posted &&
           (alone || board_least(&r->board, SUMMED) >= r->posted);
}

// ---- broadcast

static bool window_free(void *arg)
{
    const struct ring *r = arg;
    return r->pieces < 2 || board_least(&r->board, COPIED) >= r->pieces - 1;
}

static bool piece_given(void *arg)
{
    const struct ring *r = arg;
    return board_read(&r->board, 0, GIVEN) > r->pieces;
}

static int give(struct ring *r, const float *from, size_t n)
{
    uint64_t goal = r->pieces < 2 ? 0 : r->pieces - 1;
    if (board_await(&r->board, COPIED, goal, window_free, r))
        return -1;
    memcpy(board_window(&r->board, r->pieces), from, n * sizeof *from);
    r->pieces++;
    board_tell(&r->board, COPIED, r->pieces);
    board_tell(&r->board, GIVEN, r->pieces);
    return 0;
}

static int copy(struct ring *r, float *to, size_t n)
{
    if (board_await(&r->board, GIVEN, r->pieces + 1, piece_given, r))
        return -1;
    memcpy(to, board_window(&r->board, r->pieces), n * sizeof *to);
    r->pieces++;
    board_tell(&r->board, COPIED, r->pieces);
    return 0;
}

static int spread(struct sync *s, float *data)
{
    struct ring *r = s->state;
    bool first = s->job.cluster->rank == 0;
    size_t n = s->job.n, others = (size_t)s->job.cluster->world - 1;
    for (size_t i = 0; i < n; i += BOARD_WINDOW) {
        size_t len = n - i < BOARD_WINDOW ? n - i : BOARD_WINDOW;
        if (first ? give(r, data + i, len) : copy(r, data + i, len))
            return -1;
    }
    s->stats.bytes_out += first ? n * others * sizeof(float) : 0;
    s->stats.bytes_in += first ? 0 : n * sizeof(float);
    return 0;
}

// ---- the backend

static int shared_suits(const struct sync_job *job)
{
    enum transport_kind transport = job->settings->transport;
    char text[64], why[128] = "";
    if (job->cluster->world == 1)
        return 0;
    if (text_into(text, sizeof text, "transport=%d", (int)transport) ||
        cluster_agree(job->cluster, text))
        return -1;
    if (transport == TRANSPORT_TCP)
        return 0;
    int possible = job->cluster->world <= WORLD_MOST
                       ? board_possible(job->cluster, why)
                       : 0;
    if (possible == 0 && transport == TRANSPORT_SHM)
        return fail("ring: transport=shm: %s; try: transport=auto",
                    *why ? why : "too many workers");
    return possible;
}

// The gradients, if others can map them and shall write into them, or a copy.
static int share_vector(struct ring *r, const struct sync_job *job)
{
    struct shared_name name;
    size_t n = in_one_step(job) ? 2 * job->n : job->n;
    r->vector = job->grads;
    if (n == job->n && device_shared(job->dev, job->grads, &name)) {
        r->host = job->dev;
        return 0;
    }
    if (device_open(&r->host, "cpu"))
        return -1;
    r->copy = device_alloc_shared(r->host, n, sizeof *r->copy);
    r->vector = r->copy;
    return r->copy ? 0 : -1;
}

static int shared_open(struct sync *s)
{
    struct ring *r = s->state;
    const struct sync_job *job = &s->job;
    r->wire = job->settings->wire;
    if (update_open(&r->update, job))
        return -1;
    CHECK(job->cluster->world > 1 && job->cluster->world <= WORLD_MOST);
    r->divisor = 1;
    while (r->wire != DTYPE_F32 && r->divisor < (float)job->cluster->world)
        r->divisor *= 2;
    r->lane = spans_lane(job->spans, "ring");
    r->ngroups = fusion_cut(&r->groups, job, job->settings->fusion_mb);
    if (r->ngroups < 0 || share_vector(r, job))
        return -1;
    return board_open(&r->board, job->cluster, r->host, r->vector);
}

static int shared_bcast(struct sync *s)
{
    return spread(s, s->job.params);
}

static int shared_ready(struct sync *s, int b)
{
    struct ring *r = s->state;
    const struct bucket *ready = &s->job.buckets[b];
    if (r->copy)
        copy_floats(r->copy + place(s, r->posted) + ready->off,
                    s->job.grads + ready->off, ready->n);
    if (r->groups[r->next].off < ready->off)
        return 0;
    r->next = (r->next + 1) % r->ngroups;
    board_tell(&r->board, READY, ++r->posted);
    advance(s);
    return 0;
}

static int shared_step(struct sync *s, const struct sync_in *in,
                       struct sync_out *out)
{
    struct ring *r = s->state;
    enum board_word last = in_one_step(&s->job) ? READY : SUMMED;
    if (board_await(&r->board, last, r->posted, advance, s))
        return fail("%s (step %d)", fail_message(), in->step);
    if (r->copy && last == SUMMED)
        copy_floats(s->job.grads, r->copy, s->job.n);
    return update_step(&r->update, &s->job, in, r->divisor, out);
}

static int shared_get_state(struct sync *s, float *const *slots)
{
    const struct ring *r = s->state;
    return s->job.cluster->rank ? 0 : update_get(&r->update, &s->job, slots);
}

static int spread_slot(void *ctx, int i, float *vector)
{
    (void)i;
    return spread(ctx, vector);
}

static int shared_set_state(struct sync *s, const float *const *slots)
{
    struct ring *r = s->state;
    return update_set(&r->update, &s->job, slots, spread_slot, s);
}

static void shared_close(struct sync *s)
{
    struct ring *r = s->state;
    board_close(&r->board);
    if (r->copy)
        device_free(r->host, r->copy);
    if (r->host && r->host != s->job.dev)
        device_close(&r->host);
    mem_free(r->groups);
    update_close(&r->update, &s->job);
}

const struct sync_ops sync_ring_shared = {
    .name = "ring",
    .transport = "shm",
    .help = "the same on one host, in shared memory",
    .state_size = sizeof(struct ring),
    .suits = shared_suits,
    .open = shared_open,
    .bcast = shared_bcast,
    .ready = shared_ready,
    .step = shared_step,
    .get_state = shared_get_state,
    .set_state = shared_set_state,
    .close = shared_close,
};
