// split.c - exchanges within a part of a cluster, built on those of the whole.

#include "cluster/split.h"

#include "base/base.h"

#include <string.h>

struct part {
    struct cluster *of;
    int *ranks; // by member, its rank in `of`
};

static int find_members(struct cluster *c, struct part *p, int colour)
{
    struct cluster *of = p->of;
    int *colours = mem_alloc((size_t)of->world, sizeof *colours);
    p->ranks = mem_alloc((size_t)of->world, sizeof *p->ranks);
    int rc = colours && p->ranks
                 ? cluster_allgather(of, &colour, colours, sizeof colour)
                 : -1;
    for (int r = 0; !rc && r < of->world; r++) {
        if (colours[r] != colour)
            continue;
        if (r == of->rank)
            c->rank = c->world;
        p->ranks[c->world++] = r;
    }
    mem_free(colours);
    return rc;
}

static int part_allgather(struct cluster *c, const void *in, void *out,
                          size_t bytes)
{
    const struct part *p = c->state;
    size_t most;
    char *all = cluster_gather(p->of, in, bytes, &most);
    for (int k = 0; all && k < c->world; k++)
        memcpy((char *)out + (size_t)k * bytes,
               all + (size_t)p->ranks[k] * most, bytes);
    int rc = all ? 0 : -1;
    mem_free(all);
    return rc;
}

static void part_close(struct cluster *c)
{
    struct part *p = c->state;
    if (!p)
        return;
    mem_free(p->ranks);
    mem_free(p);
}

static const struct cluster_ops cluster_of_part = {
    .allgather = part_allgather,
    .close = part_close,
};

struct cluster *cluster_whole(struct cluster *c)
{
    while (c->ops == &cluster_of_part)
        c = ((struct part *)c->state)->of;
    return c;
}

int cluster_split(struct cluster **out, struct cluster *of, int colour)
{
    struct cluster *c = mem_alloc(1, sizeof *c);
    struct part *p = c ? mem_alloc(1, sizeof *p) : NULL;
    if (!p) {
        mem_free(c);
        return -1;
    }
    *c = (struct cluster){.ops = &cluster_of_part,
                          .timeout_s = of->timeout_s,
                          .curve = of->curve,
                          .state = p};
    p->of = of;
    if (find_members(c, p, colour)) {
        cluster_close(&c);
        return -1;
    }
    c->ranks = p->ranks;
    *out = c;
    return 0;
}
