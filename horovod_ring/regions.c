// regions.c - vectors of members on one host that all of them can access.

#include "horovod_ring/regions.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "device/device.h"

static void region_close(struct region *r)
{
    for (int i = 0; r->at && r->names && i < r->world; i++)
        if (i != r->rank)
            shared_unmap(r->at[i], &r->names[i]);
    if (r->mirrored)
        shared_free(r->at[r->rank], &r->names[r->rank]);
    mem_free(r->at);
    mem_free(r->names);
    mem_free(r);
}

// Chooses the memory of this member that the others map.
static int region_show(struct region *r, struct device *dev,
                       struct shared_name *name)
{
    r->at[r->rank] = r->data;
    if (dev && device_shared(dev, r->data, name) && name->bytes >= r->bytes)
        return 0;
    r->at[r->rank] = shared_alloc(r->bytes, name);
    r->mirrored = r->at[r->rank] != NULL;
    return r->mirrored ? 0 : -1;
}

static int region_open(struct region *r, struct cluster *c, struct device *dev,
                       const char *name)
{
    struct shared_name mine;
    r->at = mem_alloc((size_t)c->world, sizeof *r->at);
    r->names = mem_alloc((size_t)c->world, sizeof *r->names);
    if (!r->at || !r->names || region_show(r, dev, &mine) ||
        cluster_allgather(c, &mine, r->names, sizeof mine))
        return -1;
    for (int i = 0; i < c->world; i++) {
        if (i == c->rank)
            continue;
        if (r->names[i].bytes < r->bytes)
            return fail("%s: rank %d shares %llu bytes, but rank %d %zu", name,
                        cluster_job_rank(c->ranks, i),
                        (unsigned long long)r->names[i].bytes,
                        cluster_job_rank(c->ranks, c->rank), r->bytes);
        r->at[i] = shared_map(&r->names[i], true);
        if (!r->at[i])
            return -1;
    }
    return cluster_barrier(c); // all have mapped before any may close
}

int regions_add(struct region **list, struct cluster *c, struct device *dev,
                const char *name, void *data, size_t bytes)
{
    struct region *r = mem_alloc(1, sizeof *r);
    if (!r)
        return -1;
    *r = (struct region){.data = data,
                         .bytes = bytes,
                         .rank = c->rank,
                         .world = c->world};
    if (region_open(r, c, dev, name)) {
        region_close(r);
        return -1;
    }
    r->next = *list;
    *list = r;
    return 0;
}

void regions_close(struct region **list)
{
    while (*list) {
        struct region *r = *list;
        *list = r->next;
        region_close(r);
    }
}

struct region *regions_find(struct region *list, const void *data, size_t bytes)
{
    const char *from = data;
    for (struct region *r = list; r; r = r->next)
        if (from >= r->data && from + bytes <= r->data + r->bytes)
            return r;
    return NULL;
}
