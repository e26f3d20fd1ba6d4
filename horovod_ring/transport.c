// transport.c - opens and closes a transport of any kind.

#include "horovod_ring/transport.h"

#include "base/base.h"
#include "cluster/cluster.h"

int transport_open(struct transport *t, const struct transport_ops *ops,
                   struct cluster *c, const struct transport_config *config)
{
    CHECK(c->world > 1);
    *t = (struct transport){.ops = ops,
                            .name = config->name,
                            .rank = c->rank,
                            .world = c->world,
                            .peer = {(c->rank + c->world - 1) % c->world,
                                     (c->rank + 1) % c->world},
                            .ranks = c->ranks,
                            .also = -1,
                            .state = mem_alloc(1, ops->state_size)};
    return t->state ? ops->open(t, c, config) : -1;
}

void transport_close(struct transport *t)
{
    if (t->state)
        t->ops->close(t);
    mem_free(t->state);
    t->state = NULL;
}
