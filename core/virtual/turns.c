// turns.c - the scheduler: finds the rank that goes on next, and ends
// deadlocks.

#include "virtual/turns.h"

#include "base/base.h"
#include "base/rng.h"
#include "virtual/baton.h"
#include "virtual/deadlock.h"

#include <stdlib.h>

// The time at which all requests that a rank awaits are complete; with r->any,
// the first of them.
static double completion(const struct virtual_rank *r)
{
    double first = INFINITY, last = r->now;
    for (const struct request *q = r->requests; q; q = q->next)
        if (q->awaited) {
            first = fmin(first, q->op.done_s);
            last = fmax(last, q->op.done_s);
        }
    return r->any ? fmax(first, r->now) : last;
}

// The time at which a rank can go on: its requests are complete, or it gives
// up.
static double next_turn(const struct virtual_rank *r)
{
    if (r->over)
        return INFINITY;
    return r->waits && !r->doomed ? fmin(completion(r), r->until) : r->now;
}

static bool is_complete(const struct virtual_rank *r)
{
    return completion(r) <= r->until;
}

static void doom_all(struct cluster *c)
{
    for (int i = 0; i < c->setup->ranks; i++)
        c->ranks[i].doomed = !c->ranks[i].over;
}

// No event can happen any more: describes the deadlock, and makes all ranks
// leave.
static void end_deadlock(struct cluster *c)
{
    int ranks = c->setup->ranks, n = 0, requests = 0;
    double now = 0;
    for (int i = 0; i < ranks; i++)
        for (struct request *q = c->ranks[i].requests; q; q = q->next)
            requests++;
    struct deadlock_call *calls = calloc((size_t)requests, sizeof *calls);
    for (int i = 0; calls && i < ranks; i++) {
        now = fmax(now, c->ranks[i].now);
        for (struct request *q = c->ranks[i].requests; q; q = q->next)
            if (q->blamed && q->op.done_s == INFINITY)
                calls[n++] = (struct deadlock_call){i, q->op.peer, q->op.sends,
                                                    q->op.number};
    }
    if (n)
        deadlock_tell(c->result, calls, n, now);
    free(calls);
    doom_all(c);
}

static void break_off(struct cluster *c)
{
    snprintf(c->broken, sizeof c->broken, "%.250s", fail_message());
    doom_all(c);
}

// The rank that can go on first, and *at, the time when it can; NULL: none can.
static struct virtual_rank *earliest(struct cluster *c, double *at)
{
    struct virtual_rank *first = NULL;
    uint64_t key = rng_key(c->setup->seed, c->turns), best = 0;
    *at = INFINITY;
    for (int i = 0; i < c->setup->ranks; i++) {
        double t = next_turn(&c->ranks[i]);
        uint64_t tie = rng_u64(key, (uint64_t)i);
        if (t < *at || (first && t == *at && tie < best)) {
            first = &c->ranks[i];
            *at = t;
            best = tie;
        }
    }
    return first;
}

static bool all_over(const struct cluster *c)
{
    int over = 0;
    for (int i = 0; i < c->setup->ranks; i++)
        over += c->ranks[i].over;
    return over == c->setup->ranks;
}

int turns_next(struct cluster *c)
{
    while (!all_over(c)) {
        double at, event = network_next(c->network);
        struct virtual_rank *r = earliest(c, &at);
        // An event at the time of the deadline is still in time.
        bool late = r && r->waits && !r->doomed && !is_complete(r);
        if (r && (r->doomed || (late ? at < event : at <= event))) {
            r->now = at;
            c->turns++;
            return r->id;
        }
        if (event == INFINITY)
            end_deadlock(c);
        else if (network_step(c->network))
            break_off(c);
    }
    return c->setup->ranks;
}

void turns_lose(struct virtual_rank *r, enum virtual_end end)
{
    r->cluster->result->rank[r->id].end = end;
    if (!r->cluster->setup->returns)
        longjmp(r->leave, 1);
    r->lost = true;
}

void turns_take(struct virtual_rank *r)
{
    baton_pass(r->cluster->baton, r->id, turns_next(r->cluster));
    if (r->doomed)
        turns_lose(r, VIRTUAL_STUCK);
}
