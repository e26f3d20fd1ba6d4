// cluster.c - all exchanges of the control plane, built on one: allgather.
//
// The exchanges are small and rare (start, checkpoints, end), so a transport
// needs no other operation. cluster_sum() adds in rank order on every worker,
// so that all get the same bits.

#include "cluster/cluster.h"

#include "base/base.h"

#include <string.h>

int cluster_open(struct cluster **out, const struct cluster_ops *ops,
                 const struct cluster_config *config)
{
    struct cluster *c = mem_alloc(1, sizeof *c);
    if (!c)
        return -1;
    c->ops = ops;
    c->timeout_s = config->timeout_s;
    c->curve = config->curve ? config->curve : "";
    if (ops->open(c, config)) {
        cluster_close(&c);
        return -1;
    }
    CHECK(c->world >= 1 && c->rank >= 0 && c->rank < c->world);
    *out = c;
    return 0;
}

void cluster_close(struct cluster **c)
{
    if (!*c)
        return;
    if ((*c)->ops->close)
        (*c)->ops->close(*c);
    mem_free(*c);
    *c = NULL;
}

int cluster_allgather(struct cluster *c, const void *in, void *out,
                      size_t bytes)
{
    return c->ops->allgather(c, in, out, bytes);
}

char *cluster_gather(struct cluster *c, const void *in, size_t bytes,
                     size_t *most)
{
    size_t world = (size_t)c->world, *sizes = mem_alloc(world, sizeof *sizes);
    int rc = sizes ? cluster_allgather(c, &bytes, sizes, sizeof bytes) : -1;
    *most = 0;
    for (size_t r = 0; !rc && r < world; r++)
        *most = sizes[r] > *most ? sizes[r] : *most;
    mem_free(sizes);
    if (rc)
        return NULL;
    char *mine = mem_alloc(1, *most), *all = mem_alloc(world, *most);
    rc = mine && all ? 0 : -1;
    if (!rc) {
        memcpy(mine, in, bytes);
        rc = cluster_allgather(c, mine, all, *most);
    }
    mem_free(mine);
    if (!rc)
        return all;
    mem_free(all);
    return NULL;
}

void cluster_let_cause_show(void)
{
    sleep_ns(300000000);
}

int cluster_blame(const struct cluster *c, int rank)
{
    cluster_let_cause_show();
    return fail("rank %d has failed; its own line says why",
                cluster_job_rank(c->ranks, rank));
}

int cluster_check(struct cluster *c, int rc)
{
    char mine = rc != 0, *all = mem_alloc((size_t)c->world, 1);
    if (!all || cluster_allgather(c, &mine, all, 1))
        rc = -1;
    for (int r = 0; !rc && r < c->world; r++)
        if (all[r])
            rc = cluster_blame(c, r);
    mem_free(all);
    return rc;
}

int cluster_barrier(struct cluster *c)
{
    return cluster_check(c, 0);
}

int cluster_sum(struct cluster *c, double *v, int n)
{
    size_t bytes = (size_t)n * sizeof *v;
    double *all = mem_alloc((size_t)c->world, bytes);
    if (!all)
        return -1;
    int rc = cluster_allgather(c, v, all, bytes);
    for (int i = 0; !rc && i < n; i++) {
        v[i] = 0;
        for (int r = 0; r < c->world; r++)
            v[i] += all[r * n + i];
    }
    mem_free(all);
    return rc;
}

int cluster_bcast(struct cluster *c, void *buf, size_t bytes)
{
    char *all = mem_alloc((size_t)c->world, bytes);
    if (!all)
        return -1;
    int rc = cluster_allgather(c, buf, all, bytes);
    if (!rc)
        memcpy(buf, all, bytes);
    mem_free(all);
    return rc;
}

// fail() with the first line in which rank r's text differs from rank 0's.
static int report_difference(const struct cluster *c, const char *zero,
                             const char *other, int r)
{
    size_t a = strcspn(zero, "\n"), b = strcspn(other, "\n");
    while (a == b && a > 0 && !memcmp(zero, other, a)) {
        zero += a + (zero[a] == '\n');
        other += b + (other[b] == '\n');
        a = strcspn(zero, "\n");
        b = strcspn(other, "\n");
    }
    return fail("settings differ: rank %d has \"%.*s\", rank %d has \"%.*s\"",
                cluster_job_rank(c->ranks, 0), (int)(a < 200 ? a : 200), zero,
                cluster_job_rank(c->ranks, r), (int)(b < 200 ? b : 200), other);
}

int cluster_check_same(struct cluster *c, const char *settings)
{
    size_t most;
    char *all = cluster_gather(c, settings, strlen(settings) + 1, &most);
    int rc = all ? 0 : -1;
    for (int r = 1; !rc && r < c->world; r++)
        if (strcmp(all, all + (size_t)r * most))
            rc = report_difference(c, all, all + (size_t)r * most, r);
    mem_free(all);
    return rc;
}

// ---- a cluster of one

static int local_open(struct cluster *c, const struct cluster_config *config)
{
    if (config->world != 1)
        return fail("cluster: %d workers need mpi or zmq to find each other",
                    config->world);
    c->rank = 0;
    c->world = 1;
    return 0;
}

static int local_allgather(struct cluster *c, const void *in, void *out,
                           size_t bytes)
{
    (void)c;
    memcpy(out, in, bytes);
    return 0;
}

const struct cluster_ops cluster_local = {
    .open = local_open,
    .allgather = local_allgather,
};
