// nccl.c - NCCL's all-reduce, a bucket at a time, beside backward.
//
//     compute  ... backward of bucket 0 *--- backward of bucket 1 *---
//     comm                              *--- sum bucket 0 ---  *- sum bucket 1
//
// ready() ties the communication queue to what backward has been asked for and
// asks for the sum there; nobody waits. step() waits, with a deadline, for the
// last bucket, and every worker updates its own parameters on its own GPU.
//
// As with MPI the counters hold what was handed over, S out and S in.

#include "allreduce/allreduce.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "device/busy.h"
#include "group/nccl.h"
#include "sync/update.h"

struct allreduce {
    enum dtype wire;
    float divisor; // of the sum; a power of two, 1 for fp32
    struct update update;
    void *narrow; // all gradients in a 16-bit wire, on the device
    struct nccl nccl;
    struct device_event filled, summed; // the newest bucket
};

static int nccl_backend_suits(const struct sync_job *job)
{
    char why[128];
    int can = nccl_is_supported(job->cluster, job->dev, why);
    if (can == 0 && !device_is_host(job->dev) && job->cluster->rank == 0)
        log_line("allreduce: %s: gradients go through host memory", why);
    return can;
}

static int open_memory(struct allreduce *a, const struct sync_job *job)
{
    a->divisor = 1;
    if (device_event_open(job->dev, &a->filled) ||
        device_event_open(job->dev, &a->summed))
        return -1;
    if (a->wire == DTYPE_F32)
        return 0;
    while (a->divisor < (float)job->cluster->world)
        a->divisor *= 2;
    a->narrow = device_alloc(job->dev, job->n, sizeof(uint16_t));
    return a->narrow ? 0 : -1;
}

static int nccl_backend_open(struct sync *s)
{
    struct allreduce *a = s->state;
    const struct sync_job *job = &s->job;
    a->wire = job->settings->wire;
    if (job->settings->algorithm != ALGORITHM_AUTO)
        return fail("algorithm=: NCCL takes its own; try: leave it out");
    if (update_open(&a->update, job))
        return -1;
    if (job->cluster->world == 1)
        return 0;
    return open_memory(a, job) ||
                   nccl_open(&a->nccl, job->cluster, job->dev, "allreduce")
               ? -1
               : 0;
}

static int spread(void *ctx, int i, float *vector)
{
    struct sync *s = ctx;
    struct allreduce *a = s->state;
    (void)i;
    if (s->job.cluster->world == 1)
        return 0;
    return nccl_spread(&a->nccl, vector, s->job.grads, s->job.n);
}

static int nccl_backend_bcast(struct sync *s)
{
    struct allreduce *a = s->state;
    return s->job.cluster->world == 1
               ? 0
               : nccl_bcast(&a->nccl, s->job.params, s->job.n);
}

// Sum `count` numbers where they lie.
static int sum(struct allreduce *a, void *at, enum dtype type, size_t count)
{
    struct nccl *n = &a->nccl;
    return nccl_asked(n,
                      ncclAllReduce(at, at, count, nccl_type(type), ncclSum,
                                    n->comm, n->stream),
                      "all-reduce");
}

static int sum_bucket(struct allreduce *a, float *grads, uint16_t *narrow,
                      size_t n)
{
    struct device *d = a->nccl.dev;
    enum dtype wire = (enum dtype)a->wire;
    if (wire == DTYPE_F32)
        return sum(a, grads, wire, n);
    if (device_cast_on(d, DEVICE_COMM, narrow, wire, grads, DTYPE_F32,
                       1 / a->divisor, n) ||
        sum(a, narrow, wire, n))
        return -1;
    return device_cast_on(d, DEVICE_COMM, grads, DTYPE_F32, narrow, wire, 1, n);
}

static int nccl_backend_ready(struct sync *s, int b)
{
    struct allreduce *a = s->state;
    const struct bucket *k = &s->job.buckets[b];
    struct device *d = s->job.dev;
    if (s->job.cluster->world == 1)
        return 0;
    size_t bytes = k->n * dtype_bytes((enum dtype)a->wire);
    s->stats.bytes_out += bytes;
    s->stats.bytes_in += bytes;
    uint16_t *narrow = a->narrow;
    if (device_record(d, &a->filled, DEVICE_COMPUTE) ||
        device_follow(d, DEVICE_COMM, &a->filled) ||
        busy_begin(d, DEVICE_COMM) ||
        sum_bucket(a, s->job.grads + k->off, narrow ? narrow + k->off : NULL,
                   k->n) ||
        busy_end(d, DEVICE_COMM))
        return -1;
    return device_record(d, &a->summed, DEVICE_COMM);
}

static int nccl_backend_step(struct sync *s, const struct sync_in *in,
                             struct sync_out *out)
{
    struct allreduce *a = s->state;
    if (s->job.cluster->world > 1 &&
        (nccl_await(&a->nccl, &a->summed) ||
         device_follow(s->job.dev, DEVICE_COMPUTE, &a->summed)))
        return fail("%s (step %d)", fail_message(), in->step);
    return update_step(&a->update, &s->job, in,
                       s->job.cluster->world > 1 ? a->divisor : 1, out);
}

static int nccl_backend_get_state(struct sync *s, float *const *slots)
{
    const struct allreduce *a = s->state;
    return s->job.cluster->rank ? 0 : update_get(&a->update, &s->job, slots);
}

static int nccl_backend_set_state(struct sync *s, const float *const *slots)
{
    struct allreduce *a = s->state;
    return update_set(&a->update, &s->job, slots, spread, s);
}

static void nccl_backend_close(struct sync *s)
{
    struct allreduce *a = s->state;
    nccl_close(&a->nccl);
    device_event_close(s->job.dev, &a->filled);
    device_event_close(s->job.dev, &a->summed);
    device_free(s->job.dev, a->narrow);
    update_close(&a->update, &s->job);
}

const struct sync_ops sync_allreduce_nccl = {
    .name = "allreduce",
    .transport = "nccl",
    .help = "NCCL's all-reduce between GPUs, every worker updates",
    .on_device = true,
    .state_size = sizeof(struct allreduce),
    .suits = nccl_backend_suits,
    .open = nccl_backend_open,
    .bcast = nccl_backend_bcast,
    .ready = nccl_backend_ready,
    .step = nccl_backend_step,
    .get_state = nccl_backend_get_state,
    .set_state = nccl_backend_set_state,
    .close = nccl_backend_close,
};
