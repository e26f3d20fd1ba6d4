// nccl.c - our own ring between GPUs: reduce-scatter and all-gather on NCCL's
// point-to-point messages, with our own addition between them.
//
// The timetable is plan.h's, as over sockets. In every message a worker sends
// the chunk that it received the message before, with its own share added in
// the first half; a bucket's 2(world-1) messages are asked for at once, and the
// GPU works them off beside backward. The arithmetic is wire.h's: fp32 adds in
// place; a 16-bit wire divides by a power of two first, adds in fp32 and rounds
// once a hop, and what goes round at the end is the same bits everywhere.

#include "horovod_ring/ring.h"

#include "horovod_ring/plan.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "device/busy.h"
#include "group/nccl.h"
#include "sync/update.h"

struct ring {
    enum dtype wire;
    float divisor; // of the sum; a power of two, 1 for fp32
    struct update update;
    struct nccl nccl;
    char *pieces[2]; // on the device: a chunk that leaves, one that comes in
    struct device_event filled, summed; // the newest bucket
};

static int ring_suits(const struct sync_job *job)
{
    char why[128];
    int can = nccl_is_supported(job->cluster, job->dev, why);
    if (can == 0 && !device_is_host(job->dev) && job->cluster->rank == 0)
        log_line("ring: %s: gradients go through host memory", why);
    return can;
}

static int open_memory(struct ring *r, const struct sync_job *job)
{
    size_t most = 0, world = (size_t)job->cluster->world;
    for (int b = 0; b < job->nbuckets; b++)
        if (job->buckets[b].n > most)
            most = job->buckets[b].n;
    size_t chunk = most / world + 1;
    r->divisor = 1;
    while (r->wire != DTYPE_F32 && r->divisor < (float)world)
        r->divisor *= 2;
    for (int i = 0; i < 2; i++) {
        r->pieces[i] = device_alloc(job->dev, chunk, sizeof(float));
        if (!r->pieces[i])
            return -1;
    }
    return device_event_open(job->dev, &r->filled) ||
                   device_event_open(job->dev, &r->summed)
               ? -1
               : 0;
}

static int ring_open(struct sync *s)
{
    struct ring *r = s->state;
    const struct sync_job *job = &s->job;
    r->wire = job->settings->wire;
    if (update_open(&r->update, job))
        return -1;
    if (job->cluster->world == 1)
        return 0;
    return open_memory(r, job) ||
                   nccl_open(&r->nccl, job->cluster, job->dev, "ring")
               ? -1
               : 0;
}

// ---- one bucket round the ring

// One message each way at once; a chunk may be empty.
static int exchange(struct ring *r, const void *out, size_t nout, void *in,
                    size_t nin, enum dtype type)
{
    struct nccl *n = &r->nccl;
    int rank = n->cluster->rank, world = n->cluster->world;
    int right = (rank + 1) % world, left = (rank + world - 1) % world;
    ncclDataType_t t = nccl_type(type);
    ncclResult_t first = ncclGroupStart();
    if (nout && first == ncclSuccess)
        first = ncclSend(out, nout, t, right, n->comm, n->stream);
    if (nin && (first == ncclSuccess || first == ncclInProgress))
        first = ncclRecv(in, nin, t, left, n->comm, n->stream);
    ncclResult_t last = ncclGroupEnd();
    bool began = first == ncclSuccess || first == ncclInProgress;
    return nccl_asked(n, began ? last : first, "exchange");
}

static struct plan plan_of(const struct nccl *n)
{
    return (struct plan){.rank = n->cluster->rank,
                         .world = n->cluster->world,
                         .grain = 1};
}

// fp32: chunks leave from the vector; what comes in is added to it, or is it.
static int round_wide(struct ring *r, const struct group_op *t)
{
    struct nccl *n = &r->nccl;
    const struct plan p = plan_of(n);
    float *data = t->vector.data;
    for (int m = 0; m < plan_messages(&p, t, OUT); m++) {
        struct group_chunk out = plan_span(&p, t, OUT, m);
        struct group_chunk in = plan_span(&p, t, IN, m);
        float *to = data + in.off, *landing = (float *)r->pieces[0];
        bool partial = plan_adds(&p, t, m);
        if (exchange(r, data + out.off, out.n, partial ? landing : to, in.n,
                     DTYPE_F32) ||
            (partial &&
             device_add_on(n->dev, DEVICE_COMM, to, landing, DTYPE_F32, in.n)))
            return -1;
    }
    return 0;
}

// 16 bits: our share is divided where it lies; the chunk that came in, with our
// share added, is the one that leaves next.
static int round_narrow(struct ring *r, const struct group_op *t)
{
    struct nccl *n = &r->nccl;
    struct device *d = n->dev;
    enum dtype wire = (enum dtype)r->wire;
    const struct plan p = plan_of(n);
    float *data = t->vector.data;
    struct group_chunk own = plan_span(&p, t, OUT, 0);
    if (device_cast_on(d, DEVICE_COMM, data, DTYPE_F32, data, DTYPE_F32,
                       1 / r->divisor, t->vector.n) ||
        device_cast_on(d, DEVICE_COMM, r->pieces[0], wire, data + own.off,
                       DTYPE_F32, 1, own.n))
        return -1;
    for (int m = 0; m < plan_messages(&p, t, OUT); m++) {
        struct group_chunk out = plan_span(&p, t, OUT, m);
        struct group_chunk in = plan_span(&p, t, IN, m);
        const char *leaves = r->pieces[m % 2];
        char *lands = r->pieces[1 - m % 2];
        if (exchange(r, leaves, out.n, lands, in.n, wire) ||
            (plan_adds(&p, t, m) &&
             device_add_into_wire(d, DEVICE_COMM, lands, wire, data + in.off,
                                  in.n)) ||
            (plan_completes(&p, t, m) &&
             device_cast_on(d, DEVICE_COMM, data + in.off, DTYPE_F32, lands,
                            wire, 1, in.n)))
            return -1;
    }
    return 0;
}

static int ring_ready(struct sync *s, int b)
{
    struct ring *r = s->state;
    const struct bucket *k = &s->job.buckets[b];
    struct device *d = s->job.dev;
    if (s->job.cluster->world == 1)
        return 0;
    const struct plan p = plan_of(&r->nccl);
    struct group_op t = {.vector = group_floats(s->job.grads + k->off, k->n)};
    size_t size = dtype_bytes((enum dtype)r->wire);
    s->stats.bytes_out += plan_elements(&p, &t, OUT) * size;
    s->stats.bytes_in += plan_elements(&p, &t, IN) * size;
    if (device_record(d, &r->filled, DEVICE_COMPUTE) ||
        device_follow(d, DEVICE_COMM, &r->filled) ||
        busy_begin(d, DEVICE_COMM) ||
        (r->wire == DTYPE_F32 ? round_wide(r, &t) : round_narrow(r, &t)) ||
        busy_end(d, DEVICE_COMM))
        return -1;
    return device_record(d, &r->summed, DEVICE_COMM);
}

// ---- the other verbs

static int spread(void *ctx, int i, float *vector)
{
    struct sync *s = ctx;
    struct ring *r = s->state;
    (void)i;
    if (s->job.cluster->world == 1)
        return 0;
    return nccl_spread(&r->nccl, vector, s->job.grads, s->job.n);
}

static int ring_bcast(struct sync *s)
{
    struct ring *r = s->state;
    return s->job.cluster->world == 1
               ? 0
               : nccl_bcast(&r->nccl, s->job.params, s->job.n);
}

static int ring_step(struct sync *s, const struct sync_in *in,
                     struct sync_out *out)
{
    struct ring *r = s->state;
    bool alone = s->job.cluster->world == 1;
    if (!alone && (nccl_await(&r->nccl, &r->summed) ||
                   device_follow(s->job.dev, DEVICE_COMPUTE, &r->summed)))
        return fail("%s (step %d)", fail_message(), in->step);
    return update_step(&r->update, &s->job, in, alone ? 1 : r->divisor, out);
}

static int ring_get_state(struct sync *s, float *const *slots)
{
    const struct ring *r = s->state;
    return s->job.cluster->rank ? 0 : update_get(&r->update, &s->job, slots);
}

static int ring_set_state(struct sync *s, const float *const *slots)
{
    struct ring *r = s->state;
    return update_set(&r->update, &s->job, slots, spread, s);
}

static void ring_close(struct sync *s)
{
    struct ring *r = s->state;
    nccl_close(&r->nccl);
    device_event_close(s->job.dev, &r->filled);
    device_event_close(s->job.dev, &r->summed);
    for (int i = 0; i < 2; i++)
        device_free(s->job.dev, r->pieces[i]);
    update_close(&r->update, &s->job);
}

const struct sync_ops sync_ring_nccl = {
    .name = "ring",
    .transport = "nccl",
    .help = "our own ring all-reduce, between GPUs",
    .on_device = true,
    .state_size = sizeof(struct ring),
    .suits = ring_suits,
    .open = ring_open,
    .bcast = ring_bcast,
    .ready = ring_ready,
    .step = ring_step,
    .get_state = ring_get_state,
    .set_state = ring_set_state,
    .close = ring_close,
};
