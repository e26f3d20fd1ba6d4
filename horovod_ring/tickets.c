// tickets.c - the order of a group's verbs, which may be collectives, sends and
// receives.

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

bool tickets_post(struct tickets *t, const struct group_op *op)
{
    bool pair = group_is_pair(op->verb);
    if (t->all)
        t->all[t->posted++ % t->depth] =
            (struct ticket){.op = *op,
                            .number = pair ? pairs_post(&t->pairs, op)
                                           : t->vectors++};
    return pair;
}

int tickets_advance(struct tickets *t, uint64_t vectors, uint64_t *done)
{
    if (t->all && pairs_advance(&t->pairs))
        return -1;
    for (; t->done < t->posted; t->done++) {
        const struct ticket *k = &t->all[t->done % t->depth];
        if (group_is_pair(k->op.verb)
                ? !pairs_is_complete(&t->pairs, &k->op, k->number)
                : k->number >= vectors)
            break;
    }
    *done = t->all ? t->done : vectors;
    return 0;
}

const struct group_op *tickets_first_pair(const struct tickets *t)
{
    if (t->done == t->posted)
        return NULL;
    const struct group_op *first = &t->all[t->done % t->depth].op;
    return group_is_pair(first->verb) ? first : NULL;
}
