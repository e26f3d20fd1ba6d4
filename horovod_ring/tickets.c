// tickets.c - the order of a group's verbs, of which some are pairs.

#include "horovod_ring/tickets.h"

#include "base/base.h"

int tickets_open(struct tickets *t, size_t depth)
{
    *t = (struct tickets){.all = mem_alloc(depth, sizeof *t->all),
                          .depth = depth};
    return t->all ? 0 : -1;
}

void tickets_close(struct tickets *t)
{
    mem_free(t->all);
    *t = (struct tickets){0};
}

bool ticket_is_pair(const struct group_op *op)
{
    return op->verb == GROUP_SEND || op->verb == GROUP_RECV;
}

bool tickets_post(struct tickets *t, struct pairs *p, const struct group_op *op)
{
    bool pair = ticket_is_pair(op);
    t->all[t->posted++ % t->depth] =
        (struct ticket){.op = *op,
                        .number = pair ? pairs_post(p, op) : t->vectors++};
    return pair;
}

uint64_t tickets_done(struct tickets *t, const struct pairs *p,
                      uint64_t vectors)
{
    for (; t->done < t->posted; t->done++) {
        const struct ticket *k = &t->all[t->done % t->depth];
        if (ticket_is_pair(&k->op) ? !pairs_is_complete(p, &k->op, k->number)
                                   : k->number >= vectors)
            break;
    }
    return t->done;
}

const struct group_op *tickets_first(const struct tickets *t)
{
    return t->done < t->posted ? &t->all[t->done % t->depth].op : NULL;
}
