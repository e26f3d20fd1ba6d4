// bsp_members.c - which workers are in a round: the first N (backup), or those
// that have joined and not died (elastic).
//
// A worker that dies in the middle of a round may have reached some servers and
// not others. So the servers restart the round without it (AGAIN, with a new
// epoch); the other workers still have their gradients. Once a server's sum is
// complete, the dead worker's slice stays in it. If another server lacks that
// slice, the workers see it from the lists that come with NORM, and ask the
// first server to leave the dead worker out (DROP).
//
// A worker that joins later names a round that no server has begun (JOIN), so
// that all servers count it from the same round on.

#include "ps_server/bsp.h"

#include "base/base.h"

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

// Whether this worker's whole gradient of the round is here.
static bool gave_all(const struct server *s, int rank)
{
    const struct bsp *b = bsp_of(s);
    if (!s->peers[rank].stepped)
        return false;
    for (int r = 0; r < s->store->nrows; r++)
        if (!b->rows[r].here[b->order_of[rank]])
            return false;
    return true;
}

int bsp_claim(struct server *s, int rank, const struct ps_head *h)
{
    struct bsp *b = bsp_of(s);
    struct ps_head reply = bsp_answer(s, PS_LATE);
    if (!s->job.backup || s->job.index != 0 || h->round > s->round ||
        (h->round == s->round && b->order_of[rank] >= 0))
        return fail("CLAIM of step %llu, the present one is %llu",
                    (unsigned long long)h->round, (unsigned long long)s->round);
    if (h->round < s->round) {
        reply.version = s->round - 1;
    } else if (b->claims == b->need) {
        reply.version = s->round;
    } else {
        reply.kind = PS_ADMIT;
        reply.order = (uint32_t)b->claims;
        b->active = true;
        b->heard_ns = now_ns();
        b->rank_of[b->claims] = rank;
        b->order_of[rank] = b->claims++;
        bsp_check_left(s);
    }
    server_send(s, rank, reply, NULL, 0);
    return 0;
}

// Without backup all workers take part in the same steps. With backup a late
// worker continues from the step that the others have reached.
void bsp_check_left(struct server *s)
{
    int left = 0, last = 0;
    for (int r = 0; r < s->job.world; r++)
        if (s->peers[r].left) {
            left++;
            last = r;
        }
    if (s->job.elastic || !bsp_of(s)->active || left <= s->job.backup)
        return;
    server_fail(s, "worker rank %d left before step %llu, which others began",
                last, (unsigned long long)s->round);
}

// ---- elastic

// If no worker is left in the present round, goes on with the first round that
// a worker has asked to join.
static void begin_if_joined(struct server *s)
{
    uint64_t next = UINT64_MAX;
    for (int r = 0; r < s->job.world; r++)
        if (s->peers[r].alive && s->peers[r].from < next)
            next = s->peers[r].from;
    if (bsp_of(s)->need > 0 || next == UINT64_MAX)
        return;
    s->round = next;
    bsp_begin(s);
    vectors_serve(s);
}

// Restart the present round without the workers that are gone. A worker that
// joins a later round needs the new epoch, too.
static void restart(struct server *s)
{
    struct bsp *b = bsp_of(s);
    b->epoch++;
    bsp_begin(s);
    b->active = b->need > 0;
    b->heard_ns = now_ns();
    for (int r = 0; r < s->job.world; r++)
        if (s->peers[r].alive)
            server_send(s, r, bsp_answer(s, PS_AGAIN), NULL, 0);
    begin_if_joined(s);
}

// Whether a worker of the present round is left.
static bool anyone_left(const struct server *s)
{
    for (int r = 0; r < s->job.world; r++)
        if (s->peers[r].alive && bsp_of(s)->order_of[r] >= 0)
            return true;
    return false;
}

// If the lost worker's gradient is complete here, it stays in this round and is
// left out from the next one on. Otherwise the round is restarted without it.
// If nobody is left who could end the round, it is restarted, too.
void bsp_lost(struct server *s, int rank)
{
    if (bsp_of(s)->order_of[rank] >= 0 &&
        (!gave_all(s, rank) || !anyone_left(s)))
        restart(s);
}

void bsp_left(struct server *s, int rank)
{
    if (s->job.elastic)
        bsp_lost(s, rank);
    else if (s->job.backup)
        bsp_check_left(s);
}

int bsp_drop(struct server *s, int rank, const struct ps_head *h)
{
    struct bsp *b = bsp_of(s);
    int other = (int)h->order;
    if (h->round != s->round || bsp_outdated(s, h))
        return 0;
    if (other >= s->job.world || other == rank)
        return fail("DROP of rank %d", other);
    if (b->order_of[other] < 0)
        return 0;
    s->peers[other].from = UINT64_MAX;
    if (s->peers[other].alive)
        server_lost(s, other, "another server lost it");
    if (b->order_of[other] >= 0)
        restart(s);
    return 0;
}

// Nobody knows when the present round ends, unless nobody is in it.
static uint64_t first_free(const struct server *s)
{
    return s->round + (bsp_of(s)->need > 0);
}

void bsp_welcome(struct server *s, int rank, struct ps_head *h)
{
    if (s->peers[rank].from <= s->round) // nothing has come in this round
        bsp_begin(s);
    h->round = first_free(s);
    h->epoch = bsp_of(s)->epoch;
}

int bsp_join(struct server *s, int rank, const struct ps_head *h)
{
    struct bsp *b = bsp_of(s);
    struct peer *p = &s->peers[rank];
    unsigned long long wish = h->round, present = s->round;
    if (wish > present + 1000 || p->stepped)
        return fail("JOIN from step %llu on, the present one is %llu", wish,
                    present);
    bool expected = b->order_of[rank] >= 0;
    if (wish < first_free(s)) {
        struct ps_head later = bsp_answer(s, PS_LATER);
        later.version = 1;
        later.round = first_free(s);
        server_send(s, rank, later, NULL, 0);
        return 0;
    }
    p->from = wish;
    if (expected) // another server could not accept the round of its first JOIN
        restart(s);
    log_line("server %d: worker rank %d joins from step %llu on", s->job.index,
             rank, wish);
    struct ps_head welcome = bsp_answer(s, PS_WELCOME);
    welcome.version = 1;
    welcome.round = wish;
    server_send(s, rank, welcome, NULL, 0);
    begin_if_joined(s);
    return 0;
}

// ---- deadlines

// Whether a worker has no credit left: its slices wait for those of others.
static bool waits_for_others(const struct server *s, int rank)
{
    const struct bsp *b = bsp_of(s);
    int order = b->order_of[rank], early = 0;
    for (int r = 0; r < s->store->nrows; r++)
        early += b->rows[r].here[order] && b->rows[r].added <= order;
    return early >= ps_window(s->job.world);
}

static bool is_behind(const struct server *s, int rank)
{
    const struct bsp *b = bsp_of(s);
    if (s->job.backup)
        return b->order_of[rank] < 0 || !s->peers[rank].stepped;
    return b->order_of[rank] >= 0 && !gave_all(s, rank) &&
           !waits_for_others(s, rank);
}

// Lists the workers for which the round waits and that are not busy: as ranks
// in behind[], and as "rank 1, rank 3" in who[size]. Returns how many there
// are. *busy becomes whether the round waits for one that is.
static int list_behind(const struct server *s, int *behind, char *who,
                       size_t size, bool *busy)
{
    int count = 0;
    who[0] = '\0';
    *busy = false;
    for (int r = 0; r < s->job.world; r++) {
        if (!is_behind(s, r))
            continue;
        if (server_is_busy(s, r)) {
            *busy = true;
            continue;
        }
        behind[count++] = r;
        server_list(who, size, r);
    }
    return count;
}

void bsp_tick(struct server *s)
{
    struct bsp *b = bsp_of(s);
    if (!b->active || now_ns() - b->heard_ns < server_patience_ns(s))
        return;
    char who[256];
    int behind[PS_MAX_WORLD];
    bool busy;
    int count = list_behind(s, behind, who, sizeof who, &busy);
    if (busy)
        return;
    for (int i = 0; s->job.elastic && i < count; i++)
        server_lost(s, behind[i], "it sent nothing within the deadline");
    if (s->job.elastic && count > 0)
        return;
    server_fail(s, "step %llu: nothing came for %.3g s from %s",
                (unsigned long long)s->round, s->job.timeout_s,
                count ? who : "another server");
}
