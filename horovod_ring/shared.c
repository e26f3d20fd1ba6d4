// shared.c - the ring's sums where all workers are on one host: no ring at all.
//
// What a ring does with messages, memory does better: every worker reads its
// own chunk out of all others' gradients where they lie, and then the other
// chunks, complete, from those who summed them.
//
//     worker          0    1    2        0    1    2
//     gradients     a0   a1   a2       A    a1   a2         A    A    A
//                   b0   b1   b2  ->   b0   B    b2   ->    B    B    B
//                   c0   c1   c2       c0   c1   C          C    C    C
//                   READY              SUMMED               TAKEN
//
//     time     3 steps of the board (board.h) + bytes read / memory bandwidth
//     payload  2(world-1)/world S out of and into each worker, as the ring's
//
// The order of additions is the ring's, chunk c from worker c+1 round to c, and
// so is the rounding of a 16-bit wire after each, so the bits are those that
// the ring's messages give. A 16-bit wire saves nothing here: memory is read in
// fp32, and counted so.
//
// Buckets are fused and cut into chunks as the ring's; slice k, of all chunks of
// a group, is summed and taken before slice k+1, so that what one worker has
// just summed the others find in its cache.
//
// There is no thread: sums that can be made are made when a bucket becomes
// ready, and the rest in step(). The trainer must not touch its gradients while
// others read them, so step() ends when all have taken what they need.

#include "horovod_ring/ring.h"

#include "horovod_ring/board.h"
#include "horovod_ring/fusion.h"
#include "horovod_ring/plan.h"

#include "base/base.h"
#include "base/half.h"
#include "cluster/cluster.h"
#include "config/config.h"
#include "device/device.h"
#include "device/vector.h"
#include "sync/update.h"
#include "telemetry/span.h"

#include <string.h>

enum {
    WORLD_MOST = 256,
    SLICE_KB = 1024,  // of all chunks: stays in the second cache
    BLOCK = 4096,     // elements: stays in the nearest cache
    PIECE = 4 * BLOCK // of one thread at a time
};

struct slice {
    size_t off, n;  // the group
    struct span at; // of each of its chunks
};

struct ring {
    int wire;      // enum dtype
    float divisor; // of the sum; a power of two, 1 for fp32
    struct update update;
    struct slice *slices; // of the groups, in their order
    int nslices;
    int next; // the slice that becomes ready next

    struct device *host;
    float *copy;   // of the gradients, where they are not shared; or NULL
    float *vector; // what the others read: gradients, or their copy
    struct board board;
    uint64_t posted, summed, taken; // slices since open
    uint64_t pieces;                // of broadcasts
    struct span_lane *lane;
};

// ---- sums

// Elements [off, off + n) of the vectors of worker rank+1, rank+2, .. rank.
static void sources(const struct sync *s, size_t off, const float **src)
{
    const struct ring *r = s->state;
    const struct cluster *c = s->job.cluster;
    for (int j = 0; j < c->world; j++)
        src[j] = r->board.peers[(c->rank + 1 + j) % c->world].vector + off;
}

// As wire.h has it for messages: divided, and rounded after every addition.
static void sum_narrow(const struct sync *s, size_t off, size_t n)
{
    const struct ring *r = s->state;
    const float *src[WORLD_MOST];
    float scaled[BLOCK];
    uint16_t narrow[BLOCK];
    enum dtype wire = (enum dtype)r->wire;
    sources(s, off, src);
    vector_cast_scaled(narrow, wire, src[0], 1 / r->divisor, n);
    for (int j = 1; j < s->job.cluster->world; j++) {
        vector_cast_scaled(scaled, DTYPE_F32, src[j], 1 / r->divisor, n);
        vector_add_into_wire(narrow, wire, scaled, n);
    }
    vector_cast(r->vector + off, DTYPE_F32, narrow, wire, n);
}

static void sum_piece(const struct sync *s, size_t off, size_t n)
{
    const struct ring *r = s->state;
    const float *src[WORLD_MOST];
    if (r->wire == DTYPE_F32) {
        sources(s, off, src);
        vector_sum(r->vector + off, src, s->job.cluster->world, n);
        return;
    }
    for (size_t i = 0; i < n; i += BLOCK)
        sum_narrow(s, off + i, n - i < BLOCK ? n - i : BLOCK);
}

// What a slice has of chunk c, as elements of the vector.
static struct span part(const struct slice *slice, int world, int c)
{
    struct span chunk = plan_chunk(slice->n, world, c);
    size_t from = slice->at.off < chunk.n ? slice->at.off : chunk.n;
    size_t left = chunk.n - from;
    return (struct span){slice->off + chunk.off + from,
                         left < slice->at.n ? left : slice->at.n};
}

// This worker's chunk.
static void sum_chunk(const struct sync *s, const struct slice *slice)
{
    const struct cluster *c = s->job.cluster;
    struct span mine = part(slice, c->world, c->rank);
    size_t off = mine.off;
#pragma omp parallel for if (mine.n > 2 * PIECE) schedule(static)
    for (size_t i = 0; i < mine.n; i += PIECE)
        sum_piece(s, off + i, mine.n - i < PIECE ? mine.n - i : PIECE);
}

static void copy_floats(float *to, const float *from, size_t n)
{
#pragma omp parallel for if (n > 2 * PIECE) schedule(static)
    for (size_t i = 0; i < n; i += PIECE)
        memcpy(to + i, from + i,
               (n - i < PIECE ? n - i : PIECE) * sizeof(float));
}

// The other chunks; our own, too, where the gradients are not shared. How many
// elements were others'.
static size_t take_chunks(struct sync *s, const struct slice *slice)
{
    const struct ring *r = s->state;
    const struct cluster *c = s->job.cluster;
    size_t taken = 0;
    for (int k = r->copy ? 0 : 1; k < c->world; k++) {
        int from = (c->rank + k) % c->world;
        struct span p = part(slice, c->world, from);
        copy_floats(s->job.grads + p.off, r->board.peers[from].vector + p.off,
                    p.n);
        taken += k ? p.n : 0;
    }
    return taken;
}

// Elements that a worker reads from the others for a group, and they from it.
static size_t elements(size_t n, int rank, int world)
{
    size_t own = plan_chunk(n, world, rank).n;
    return (size_t)(world - 1) * own + n - own;
}

void ring_shared_law(const struct sync_job *job, int rank, int world,
                     double fusion_mb, uint64_t *out, uint64_t *in)
{
    struct bucket *groups;
    int n = fusion_cut(&groups, job, fusion_mb);
    *out = 0;
    for (int g = 0; world > 1 && g < n; g++)
        *out += elements(groups[g].n, rank, world) * sizeof(float);
    *in = *out;
    mem_free(groups);
}

static bool sum_next(struct sync *s)
{
    struct ring *r = s->state;
    if (r->summed == r->posted || board_least(&r->board, READY) <= r->summed)
        return false;
    uint64_t began = now_ns();
    sum_chunk(s, &r->slices[r->summed % (uint64_t)r->nslices]);
    span_add(r->lane, SPAN_ADD, (int)r->summed, began, now_ns());
    board_tell(&r->board, SUMMED, ++r->summed);
    return true;
}

static bool take_next(struct sync *s)
{
    struct ring *r = s->state;
    if (r->taken == r->summed || board_least(&r->board, SUMMED) <= r->taken)
        return false;
    const struct slice *slice = &r->slices[r->taken % (uint64_t)r->nslices];
    uint64_t began = now_ns();
    int world = r->board.world;
    size_t own = part(slice, world, r->board.rank).n * (size_t)(world - 1);
    size_t bytes = (own + take_chunks(s, slice)) * sizeof(float);
    span_add(r->lane, SPAN_RECEIVE, (int)r->taken, began, now_ns());
    s->stats.bytes_in += bytes;
    s->stats.bytes_out += bytes;
    board_tell(&r->board, TAKEN, ++r->taken);
    return true;
}

// Do all that can be done now. Whether that is all that was asked for.
static bool advance(void *arg)
{
    struct sync *s = arg;
    const struct ring *r = s->state;
    while (take_next(s) || sum_next(s))
        ;
    return r->taken == r->posted;
}

static bool all_have_taken(void *arg)
{
    const struct sync *s = arg;
    const struct ring *r = s->state;
    return board_least(&r->board, TAKEN) >= r->posted;
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

static int read_transport(struct opts *o, int *transport)
{
    static const char *const words[] = {"auto", "tcp", "shm", NULL};
    return opts_word(o, "transport", 0, words, transport);
}

static int shared_suits(const struct sync_job *job)
{
    enum { AUTO, TCP, SHM };
    int transport;
    char text[64], why[128] = "";
    if (read_transport(job->opts, &transport))
        return -1;
    if (job->cluster->world == 1)
        return 0;
    if (text_into(text, sizeof text, "transport=%d", transport) ||
        cluster_agree(job->cluster, text))
        return -1;
    if (transport == TCP)
        return 0;
    int possible = job->cluster->world <= WORLD_MOST
                       ? board_possible(job->cluster, why)
                       : 0;
    if (possible == 0 && transport == SHM)
        return fail("ring: transport=shm: %s; try: transport=auto",
                    *why ? why : "too many workers");
    return possible;
}

static int agree(const struct ring *r, const struct sync_job *job,
                 double fusion_mb, long slice_kb)
{
    char text[256];
    size_t bytes = (size_t)job->nbuckets * sizeof *job->buckets;
    if (text_into(text, sizeof text,
                  "sync=ring in shared memory\nparameters=%zu\nbuckets=%d, "
                  "hash %llx\nwire=%s\nfusion_mb=%.9g\nslice_kb=%ld\n",
                  job->n, job->nbuckets,
                  (unsigned long long)hash_bytes(job->buckets, bytes),
                  dtype_name((enum dtype)r->wire), fusion_mb, slice_kb))
        return -1;
    return cluster_agree(job->cluster, text);
}

static int read_settings(struct ring *r, struct opts *o, double *fusion_mb,
                         long *slice_kb)
{
    static const char *const types[] = {"fp32", "fp16", "bf16", NULL};
    int transport;
    // What only messages need is read, so that the same words fit both.
    (void)opts_text(o, "iface", "");
    return opts_word(o, "wire", DTYPE_F32, types, &r->wire) ||
                   read_transport(o, &transport) ||
                   opts_number(o, "fusion_mb", 16, 0.001, 4096, fusion_mb) ||
                   opts_int(o, "slice_kb", SLICE_KB, 1, 1 << 20, slice_kb)
               ? -1
               : 0;
}

static int cut(struct ring *r, const struct sync_job *job, double fusion_mb,
               long slice_kb)
{
    struct bucket *groups;
    int n = fusion_cut(&groups, job, fusion_mb), world = job->cluster->world;
    size_t elements_each = (size_t)slice_kb * 1024 / sizeof(float);
    size_t most = elements_each / (size_t)world + 1, count = 0;
    for (int g = 0; g < n; g++)
        count += plan_chunk(groups[g].n, world, 0).n / most + 1;
    r->slices = n < 0 ? NULL : mem_alloc(count, sizeof *r->slices);
    for (int g = 0; r->slices && g < n; g++) {
        size_t longest = plan_chunk(groups[g].n, world, 0).n;
        for (size_t at = 0; at < longest; at += most)
            r->slices[r->nslices++] =
                (struct slice){groups[g].off, groups[g].n, {at, most}};
    }
    mem_free(groups);
    return r->slices ? 0 : -1;
}

// The gradients, if others can map them, or a copy that they can.
static int share_vector(struct ring *r, const struct sync_job *job)
{
    struct shared_name name;
    r->vector = job->grads;
    if (device_shared(job->dev, job->grads, &name)) {
        r->host = job->dev;
        return 0;
    }
    if (device_open(&r->host, "cpu"))
        return -1;
    r->copy = device_alloc_shared(r->host, job->n, sizeof *r->copy);
    r->vector = r->copy;
    return r->copy ? 0 : -1;
}

static int shared_open(struct sync *s)
{
    struct ring *r = s->state;
    const struct sync_job *job = &s->job;
    double fusion_mb;
    long slice_kb;
    if (read_settings(r, job->opts, &fusion_mb, &slice_kb) ||
        update_open(&r->update, job) || agree(r, job, fusion_mb, slice_kb))
        return -1;
    CHECK(job->cluster->world > 1 && job->cluster->world <= WORLD_MOST);
    r->divisor = 1;
    while (r->wire != DTYPE_F32 && r->divisor < (float)job->cluster->world)
        r->divisor *= 2;
    r->lane = spans_lane(job->spans, "ring");
    if (cut(r, job, fusion_mb, slice_kb) || share_vector(r, job))
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
        copy_floats(r->copy + ready->off, s->job.grads + ready->off, ready->n);
    for (; r->next < r->nslices && r->slices[r->next].off >= ready->off;
         r->next++)
        r->posted++;
    r->next %= r->nslices;
    board_tell(&r->board, READY, r->posted);
    advance(s);
    return 0;
}

static int shared_step(struct sync *s, const struct sync_in *in,
                       struct sync_out *out)
{
    struct ring *r = s->state;
    struct board *b = &r->board;
    if (board_await(b, SUMMED, r->posted, advance, s))
        return fail("%s (step %d)", fail_message(), in->step);
    if (update_step(&r->update, &s->job, in, r->divisor, out))
        return -1;
    if (board_await(b, TAKEN, r->posted, all_have_taken, s))
        return fail("%s (step %d)", fail_message(), in->step);
    return 0;
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
    mem_free(r->slices);
    update_close(&r->update, &s->job);
}

const struct sync_ops sync_ring_shared = {
    .name = "ring",
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
