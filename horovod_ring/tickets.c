// tickets.c - the order of a group's verbs, which may be collectives and
// messages of pairs.

#include "horovod_ring/tickets.h"

#include "base/base.h"

int tickets_open(struct tickets *t, const struct pairs_ops *ops,
                 const struct group *g)
{
    const struct group_job *job = &g->job;
    t->pairs.culprit = -1;
    if (!job->pairs)
        return 0;
    t->depth = job->depth;
    t->grain = job->grain;
    t->all = mem_alloc(job->depth, sizeof *t->all);
    return t->all ? pairs_open(&t->pairs, ops, g->name, job->cluster,
                               job->iface, job->depth, job->largest > 0)
                  : -1;
}

void tickets_close(struct tickets *t)
{
    pairs_close(&t->pairs);
    mem_free(t->all);
    *t = (struct tickets){0};
}

static void post_message(struct tickets *t, struct ticket *k, enum direction d,
                         int peer, const struct group_vector *v)
{
    const struct pair_message m = {.vector = *v,
                                   .verb = k->op.verb,
                                   .left = &k->left};
    k->left++;
    pairs_post(&t->pairs, d, peer, &m);
}

// Chunk r of a vector travels to or from member r.
static void post_chunk(struct tickets *t, struct ticket *k, enum direction d,
                       int r, const struct group_vector *v)
{
    struct group_chunk c = group_chunk_of(v, t->grain, t->pairs.world, r);
    struct group_vector part = *v;
    part.data = group_at(v, c.off);
    part.n = c.n;
    post_message(t, k, d, r, &part);
}

bool tickets_post(struct tickets *t, const struct group_op *op)
{
    if (!t->all)
        return false;
    struct ticket *k = &t->all[t->posted++ % t->depth];
    *k = (struct ticket){.op = *op};
    if (group_is_pair(op->verb))
        post_message(t, k, op->verb == GROUP_SEND ? OUT : IN, op->peer,
                     &op->vector);
    else if (op->verb == GROUP_ALL_TO_ALL)
        for (int i = 1; i < t->pairs.world; i++) {
            int r = (t->pairs.rank + i) % t->pairs.world;
            post_chunk(t, k, OUT, r, &op->given);
            post_chunk(t, k, IN, r, &op->vector);
        }
    else
        k->number = t->vectors++;
    return group_needs_pairs(op->verb);
}

int tickets_advance(struct tickets *t, uint64_t vectors, uint64_t *done)
{
    if (t->all && pairs_advance(&t->pairs))
        return -1;
    for (; t->done < t->posted; t->done++) {
        const struct ticket *k = &t->all[t->done % t->depth];
        if (group_needs_pairs(k->op.verb) ? k->left > 0 : k->number >= vectors)
            break;
    }
    *done = t->all ? t->done : vectors;
    return 0;
}

int tickets_awaited(const struct tickets *t, enum group_verb *verb)
{
    if (t->done == t->posted)
        return -1;
    const struct ticket *first = &t->all[t->done % t->depth];
    *verb = first->op.verb;
    return pairs_awaited(&t->pairs, &first->left);
}
