// bsp_round.c - the present round: its workers, and the slices that have come.

#include "ps_server/bsp.h"

// Chooses the workers of the present round, and their order. Without backup
// they are all members, by rank. With backup, workers get their places later,
// when they send CLAIM.
static void choose_members(struct server *s)
{
    struct bsp *b = bsp_of(s);
    b->need = 0;
    for (int r = 0; r < s->job.world; r++) {
        const struct peer *p = &s->peers[r];
        bool member = (p->alive || !s->job.elastic) && p->from <= s->round;
        b->order_of[r] = -1;
        b->rank_of[r] = -1;
        if (!member)
            continue;
        if (!s->job.backup) {
            b->order_of[r] = b->need;
            b->rank_of[b->need] = r;
        }
        b->need++;
    }
    b->need -= s->job.backup;
}

void bsp_begin(struct server *s)
{
    struct bsp *b = bsp_of(s);
    for (int r = 0; r < s->store->nrows; r++)
        gather_clear(&b->rows[r], s->job.world);
    for (int r = 0; r < s->job.world; r++)
        s->peers[r].stepped = false;
    b->claims = b->complete = b->stepped = 0;
    b->active = b->waiting = false;
    choose_members(s);
}

struct ps_head bsp_answer(const struct server *s, enum ps_kind kind)
{
    return (struct ps_head){
        .kind = kind,
        .round = s->round,
        .epoch = bsp_of(s)->epoch,
    };
}

bool bsp_outdated(const struct server *s, const struct ps_head *h)
{
    return s->job.elastic && h->epoch != bsp_of(s)->epoch;
}

bool bsp_gave_all(const struct server *s, int rank)
{
    const struct bsp *b = bsp_of(s);
    if (!s->peers[rank].stepped)
        return false;
    for (int r = 0; r < s->store->nrows; r++)
        if (!b->rows[r].here[b->order_of[rank]])
            return false;
    return true;
}
