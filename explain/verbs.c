// verbs.c - runs one verb of group.h over our ring, on a virtual cluster.

#include "explain/ways.h"

#include "base/base.h"
#include "cluster/virtual_cluster.h"
#include "horovod_ring/carriers.h"

struct job {
    struct story *story;
    enum group_verb verb;
};

static struct group_chunk owned(enum group_verb verb, size_t n, int world,
                                int rank)
{
    bool has = verb == GROUP_BROADCAST ? rank == 0 : group_is_sum(verb);
    return verb == GROUP_ALL_GATHER ? group_chunk(n, 1, world, rank)
                                    : (struct group_chunk){0, has ? n : 0};
}

static int run_verb(struct virtual_rank *r, void *arg)
{
    const struct job *j = arg;
    struct story *s = j->story;
    size_t n = s->vectors[0].n;
    struct cluster cluster = cluster_virtual(r, s->workers, 0);
    const struct group_job job = {.name = "explain",
                                  .cluster = &cluster,
                                  .depth = 1};
    struct group_chunk own = owned(j->verb, n, s->workers, cluster.rank);
    float *v = mem_alloc(n, sizeof *v);
    struct group *g = v ? group_open(&ring_virtual, &job) : NULL;
    const struct group_op op = {.verb = j->verb, .vector = group_floats(v, n)};
    uint64_t ticket;
    for (size_t i = 0; v && i < own.n; i++)
        v[own.off + i] = way_number(cluster.rank);
    int rc = g && !story_before(s, 0, cluster.rank, v) &&
                     !group_post(g, &op, &ticket) && !group_await(g, ticket) &&
                     !story_after(s, 0, cluster.rank, v)
                 ? 0
                 : -1;
    group_close(&g);
    mem_free(v);
    return rc;
}

int way_verb(struct story *s, enum group_verb verb)
{
    struct job job = {.story = s, .verb = verb};
    const struct group_op op = {.verb = verb, .vector.n = s->vectors[0].n};
    s->vectors[0].name = "vector";
    s->nvectors = 1;
    text_into(s->note, sizeof s->note,
              "The verb %s of group.h, by our ring: each worker sends only to "
              "its right neighbour.",
              group_verb_name(verb));
    if (story_run(s, 0, run_verb, &job))
        return -1;
    for (int r = 0; r < s->workers; r++)
        for (int d = 0; d < 2; d++) {
            const struct plan p = {r, s->workers, 1};
            s->law[d][r] =
                plan_elements(&p, &op, (enum direction)d) * sizeof(float);
        }
    return 0;
}
