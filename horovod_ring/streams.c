// streams.c - opens and closes links of any kind, and reports failures.

#include "horovod_ring/streams.h"

#include "base/base.h"
#include "cluster/cluster.h"

// Every member calls its right neighbour.
static struct streams_link neighbour(const struct cluster *c, int side)
{
    int step = side == RIGHT ? 1 : c->world - 1;
    return (struct streams_link){(c->rank + step) % c->world, side == RIGHT, 0};
}

int streams_open(struct streams *p, const struct streams_ops *ops,
                 struct cluster *c, const struct streams_config *config)
{
    bool ring = config->who == STREAMS_RING;
    CHECK(c->world > 1);
    *p = (struct streams){.ops = ops,
                          .name = config->name,
                          .rank = c->rank,
                          .world = c->world,
                          .ranks = c->ranks,
                          .who = config->who,
                          .n = ring ? 2 : c->world,
                          .culprit = -1};
    p->links = mem_alloc((size_t)p->n, sizeof *p->links);
    if (!p->links)
        return -1;
    for (int k = 0; k < p->n; k++)
        p->links[k] =
            ring ? neighbour(c, k) : (struct streams_link){k, k < c->rank, 0};
    p->state = mem_alloc(1, ops->state_size);
    return p->state ? ops->open(p, c, config) : -1;
}

void streams_close(struct streams *p)
{
    if (p->state)
        p->ops->close(p);
    mem_free(p->state);
    mem_free(p->links);
    *p = (struct streams){.culprit = -1};
}

int streams_rank(const struct streams *p, int member)
{
    return cluster_job_rank(p->ranks, member);
}

int streams_late(struct streams *p, int member, double timeout_s,
                 const char *what)
{
    p->culprit = member;
    return fail("%s: nothing from rank %d for %g s, in %s; try: look at its "
                "log, or a longer timeout=",
                p->name, streams_rank(p, member), timeout_s, what);
}

int streams_check(struct streams *p, int link, const struct head *h,
                  enum head_kind due)
{
    int from = p->links[link].member;
    bool names = h->number < (uint32_t)p->world && h->bytes == 0;
    if (names && h->kind == HEAD_ABORT) {
        p->culprit = (int)h->number;
        return fail("%s: rank %d failed, says rank %d", p->name,
                    streams_rank(p, p->culprit), streams_rank(p, from));
    }
    bool stuck = names && h->kind == HEAD_STUCK && due == HEAD_SLICE;
    if (stuck || (h->kind == due && due != HEAD_ABORT))
        return 0;
    p->culprit = from;
    return fail("%s: rank %d sent bytes that are no message", p->name,
                streams_rank(p, from));
}

void streams_abort(struct streams *p, int link)
{
    int culprit = p->culprit < 0 ? p->rank : p->culprit;
    struct head h = {.kind = HEAD_ABORT, .number = (uint32_t)culprit};
    struct iovec v = {&h, sizeof h};
    if (p->links[link].member != culprit)
        (void)p->ops->send(p, link, &v, 1);
}
