// virtual_world.c - a world of test workers that are the ranks of a virtual
// cluster.

#include "tests/virtual_world.h"

#include "base/base.h"
#include "cluster/virtual_cluster.h"
#include "virtual/virtual.h"

struct world {
    int size;
    double timeout_s;
    world_body *body;
    const void *arg;
    uint64_t *results;
};

static int run_rank(struct virtual_rank *r, void *arg)
{
    const struct world *w = arg;
    struct cluster c = cluster_virtual(r, w->size, w->timeout_s);
    uint64_t result = 0;
    int rc = w->body(&c, w->arg, &result);
    if (w->results)
        w->results[c.rank] = result;
    return rc;
}

int virtual_world(struct cluster *launched, int world, double timeout_s,
                  world_body *body, const void *arg, uint64_t *results)
{
    const struct virtual_setup setup = {.ranks = world,
                                        .alpha_s = 20e-6,
                                        .bytes_per_s = 1.25e8,
                                        .returns = true};
    struct world w = {world, timeout_s, body, arg, results};
    int bad = 0;
    CHECK(!launched);
    struct virtual_result *v = virtual_run(&setup, run_rank, &w);
    if (!v) {
        log_line("%s", fail_message());
        return world;
    }
    if (v->deadlock[0])
        log_line("%s", v->deadlock);
    for (int r = 0; r < world; r++)
        bad += v->rank[r].value != 0;
    virtual_close(&v);
    return bad;
}
