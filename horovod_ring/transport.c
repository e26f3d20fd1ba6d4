// transport.c - open and close a transport, whichever it is.

#include "horovod_ring/transport.h"

#include "base/base.h"
#include "cluster/cluster.h"

int transport_open(struct transport **out, const struct transport_ops *ops,
                   struct cluster *c, const struct transport_config *config)
{
    int left = (c->rank + c->world - 1) % c->world;
    int right = (c->rank + 1) % c->world;
    CHECK(c->world > 1);
    struct transport *t = mem_alloc(1, sizeof *t);
    if (!t)
        return -1;
    t->ops = ops;
    t->name = config->name;
    t->rank = c->rank;
    t->world = c->world;
    t->peer[LEFT] = left;
    t->peer[RIGHT] = right;
    t->also = -1;
    t->state = mem_alloc(1, ops->state_size);
    if (!t->state || ops->open(t, c, config)) {
        transport_close(&t);
        return -1;
    }
    *out = t;
    return 0;
}

void transport_close(struct transport **t)
{
    if (!*t)
        return;
    if ((*t)->state)
        (*t)->ops->close(*t);
    mem_free((*t)->state);
    mem_free(*t);
    *t = NULL;
}
