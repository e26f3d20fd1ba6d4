// nccl_queue.c - puts verbs on a device's communication queue, and records an
// event after each.

#include "group/nccl_queue.h"

#include "base/base.h"
#include "device/busy.h"

int nccl_queue_is_supported(const struct group_job *job, char why[128])
{
    return nccl_is_supported(job->cluster, job->dev, why);
}

int nccl_queue_open(struct group *g)
{
    struct nccl_queue *q = g->state;
    struct device *d = g->job.dev;
    q->ended = mem_alloc(g->job.depth, sizeof *q->ended);
    if (!q->ended || device_event_open(d, &q->filled))
        return -1;
    for (; q->depth < g->job.depth; q->depth++)
        if (device_event_open(d, &q->ended[q->depth]))
            return -1;
    return nccl_open(&q->nccl, g->job.cluster, d, g->name, g->job.ctas);
}

void nccl_queue_close(struct group *g)
{
    struct nccl_queue *q = g->state;
    struct device *d = g->job.dev;
    nccl_close(&q->nccl);
    if (device_finish(d))
        log_line("%s", fail_message());
    for (size_t i = 0; i < q->depth; i++)
        device_event_close(d, &q->ended[i]);
    device_event_close(d, &q->filled);
    mem_free(q->ended);
}

int nccl_queue_begin(struct nccl_queue *q)
{
    struct device *d = q->nccl.dev;
    return device_record(d, &q->filled, DEVICE_COMPUTE) ||
                   device_follow(d, DEVICE_COMM, &q->filled) ||
                   busy_begin(d, DEVICE_COMM)
               ? -1
               : 0;
}

int nccl_queue_end(struct nccl_queue *q)
{
    struct device *d = q->nccl.dev;
    struct device_event *e = &q->ended[q->begun % q->depth];
    if (busy_end(d, DEVICE_COMM) || device_record(d, e, DEVICE_COMM))
        return -1;
    q->begun++;
    q->waits_ns = 0;
    return 0;
}

static bool has_begun(ncclResult_t r)
{
    return r == ncclSuccess || r == ncclInProgress;
}

int nccl_queue_all_to_all(struct nccl *n, const struct group *g,
                          const struct group_op *op)
{
    ncclComm_t comm = n->comm;
    cudaStream_t stream = n->stream;
    const struct group_vector *to = &op->vector, *from = &op->given;
    ncclDataType_t type = nccl_type(to->wire);
    ncclResult_t result = ncclGroupStart();
    for (int i = 1; i < g->size; i++) {
        int r = (g->rank + i) % g->size;
        struct group_chunk out = group_chunk_of(from, g->job.grain, g->size, r);
        struct group_chunk in = group_chunk_of(to, g->job.grain, g->size, r);
        if (out.n && has_begun(result))
            result =
                ncclSend(group_at(from, out.off), out.n, type, r, comm, stream);
        if (in.n && has_begun(result))
            result =
                ncclRecv(group_at(to, in.off), in.n, type, r, comm, stream);
    }
    return nccl_grouped(n, result, "all_to_all");
}

const struct device_event *nccl_queue_newest(const struct nccl_queue *q)
{
    return q->begun ? &q->ended[(q->begun - 1) % q->depth] : NULL;
}

int nccl_queue_advance(struct group *g, uint64_t *done)
{
    struct nccl_queue *q = g->state;
    while (q->done < q->begun) {
        int reached =
            device_reached(q->nccl.dev, &q->ended[q->done % q->depth]);
        if (reached < 0)
            return -1;
        if (!reached)
            break;
        q->done++;
        q->waits_ns = 0;
    }
    *done = q->done;
    return 0;
}

// The deadline counts from the time when the host began to wait, since it may
// have posted the verb long before.
int nccl_queue_wait(struct group *g, uint64_t spin_ns)
{
    struct nccl_queue *q = g->state;
    (void)spin_ns;
    if (!q->waits_ns)
        q->waits_ns = now_ns();
    return nccl_rest(&q->nccl, q->waits_ns);
}

int nccl_queue_follow(struct group *g)
{
    const struct nccl_queue *q = g->state;
    const struct device_event *e = nccl_queue_newest(q);
    return e ? device_follow(q->nccl.dev, DEVICE_COMPUTE, e) : 0;
}

void nccl_queue_abort(struct group *g)
{
    struct nccl_queue *q = g->state;
    nccl_abort(&q->nccl);
}
