// exchange.c - makes an exchange between workers that have parts of one model.

#include "train/exchange.h"

#include "allreduce/operands.h"
#include "base/base.h"
#include "cluster/cluster.h"
#include "device/device.h"
#include "horovod_ring/carriers.h"
#include "sync/sync.h"
#include "telemetry/span.h"
#include "train/trainer.h"
#include "train/ways.h"

// Whether NCCL can join all workers' GPUs: 1, 0 after a line that says why, or
// -1 after fail().
static int ask_nccl(struct trainer *t, const struct group_job *job)
{
    const struct group_ops *nccl = carrier_between_gpus();
    struct group_job all = *job;
    char why[128] = "this build has no NCCL";
    all.cluster = t->cluster;
    int can = nccl ? group_is_supported(nccl, &all, why) : 0;
    if (!can && t->cluster->rank == 0)
        log_line("%s: %s: exchanges go through host memory", job->name, why);
    return can;
}

const struct group_ops *
exchange_carrier(struct trainer *t, const struct group_job *job, bool between)
{
    int transport = t->run.settings.transport;
    bool any = transport == TRANSPORT_AUTO || transport == TRANSPORT_LIBRARY;
    int can = between && any && !device_is_host(t->dev) ? ask_nccl(t, job) : 0;
    if (can < 0 ||
        (can && !t->computed.handle && device_event_open(t->dev, &t->computed)))
        return NULL;
    return can ? carrier_between_gpus()
               : ring_choose(job, transport == TRANSPORT_TCP);
}

void exchange_down(struct trainer *t, void *host, const void *v, size_t bytes)
{
    if (host != v)
        device_copy(t->dev, host, v, bytes);
}

void exchange_up(struct trainer *t, void *v, const void *host, size_t bytes)
{
    if (host != v)
        device_copy_on(t->dev, DEVICE_COMPUTE, v, host, bytes);
}

int exchange_delay_failure(int rc)
{
    if (rc)
        cluster_let_cause_show();
    return rc ? -1 : 0;
}

// Posts a verb, or with op == NULL takes a ticket, and waits for it. With
// number -1 there is no span, and the time is the caller's.
static int make(struct trainer *t, struct group *g, const struct group_op *op,
                uint64_t ticket, int number)
{
    if (number >= 0)
        span_begin(t->observe.lane, SPAN_JOIN, number);
    int rc = (op && group_post(g, op, &ticket)) || group_await(g, ticket);
    if (number >= 0)
        sync_waited(t->sync, span_end(t->observe.lane));
    return exchange_delay_failure(rc);
}

int exchange_await(struct trainer *t, struct group *g, uint64_t ticket,
                   int number)
{
    return make(t, g, NULL, ticket, number);
}

// Where a part of a vector begins, and its length, in bytes.
static struct group_chunk in_bytes(const struct group_vector *v,
                                   struct group_chunk part)
{
    size_t size = dtype_bytes(v->type);
    return (struct group_chunk){part.off * size, part.n * size};
}

int exchange_make(struct trainer *t, struct group *g, const struct group_op *op,
                  void *const *host, int number)
{
    struct group_op placed = *op;
    bool two = op->verb == GROUP_ALL_TO_ALL;
    const struct group_vector *given = two ? &op->given : &op->vector;
    struct group_chunk all = {.n = given->n}, take, give;
    give = in_bytes(given, two ? all : operand_given(g, op));
    take = in_bytes(&op->vector, operand_taken(g, op));
    char *from = given->data, *to = op->vector.data;
    bool here = device_is_host(t->dev) || g->ops->on_device;
    char *from_at = here ? from : host[0];
    char *to_at = !two ? from_at : here ? to : host[1];
    placed.given.data = from_at;
    placed.vector.data = to_at;
    placed.vector.awaited = placed.given.awaited = true;
    // the wait for what a carrier on the device exchanges counts as computing
    if (g->ops->on_device) {
        device_record(t->dev, &t->computed, DEVICE_COMPUTE);
        device_wait(t->dev, &t->computed);
    } else {
        exchange_down(t, from_at + give.off, from + give.off, give.n);
    }
    if (make(t, g, &placed, 0, number))
        return -1;
    exchange_up(t, to + take.off, to_at + take.off, take.n);
    return 0;
}

int exchange_numbers_open(struct trainer *t, const struct group *g,
                          struct exchange_numbers *n)
{
    size_t size = (size_t)g->size;
    n->host = mem_alloc(size, sizeof *n->host);
    if (g->ops->on_device)
        n->device = device_alloc(t->dev, size, sizeof *n->device);
    return n->host && (n->device || !g->ops->on_device) ? 0 : -1;
}

void exchange_numbers_close(struct trainer *t, struct exchange_numbers *n)
{
    mem_free(n->host);
    if (n->device)
        device_free(t->dev, n->device);
}

// The same sum on each: a member adds all numbers in the order of the ranks.
int exchange_sum(struct trainer *t, struct group *g,
                 const struct exchange_numbers *n, double *number, int index)
{
    size_t size = (size_t)g->size, bytes = size * sizeof *n->host;
    double *all = n->device ? n->device : n->host, sum = 0;
    struct group_op op = {.verb = GROUP_ALL_GATHER,
                          .vector = group_plain(all, size, DTYPE_F64)};
    op.vector.awaited = true;
    n->host[g->rank] = *number;
    if (n->device)
        device_copy(t->dev, n->device, n->host, bytes);
    if (make(t, g, &op, 0, index))
        return -1;
    if (n->device)
        device_copy(t->dev, n->host, n->device, bytes);
    for (size_t r = 0; r < size; r++)
        sum += n->host[r];
    *number = sum;
    return 0;
}
