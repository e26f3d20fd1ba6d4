// turns.c - the scheduler: finds the rank that goes on next, and ends
// deadlocks.

#include "virtual/turns.h"

#include "base/base.h"
#include "base/rng.h"
#include "virtual/baton.h"

#include <stdlib.h>
#include <string.h>

// ---- whose turn is next

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

// ---- deadlocks

static void tell_call(FILE *f, const struct network_op *c)
{
    if (c->peer < 0)
        fprintf(f, "%d receives from anybody", c->rank);
    else
        fprintf(f, "%d %s %d (message %ld)", c->rank,
                c->sends ? "sends to" : "receives from", c->peer, c->number);
}

// Searches breadth first from call `start` to the calls of its peer, and so on,
// until a call waits for the rank of `start`. Returns how many calls the cycle
// has and writes them to cycle[]; 0: there is no cycle.
static int cycle_from(int start, const struct network_op *const *calls, int n,
                      int *before, int *queue, int *cycle)
{
    int head = 0, tail = 0, length = 0;
    for (int i = 0; i < n; i++)
        before[i] = -2;
    before[start] = -1;
    queue[tail++] = start;
    while (head < tail) {
        int at = queue[head++];
        if (calls[at]->peer == calls[start]->rank) {
            for (int i = at; i >= 0; i = before[i])
                length++;
            for (int i = at, k = length; i >= 0; i = before[i])
                cycle[--k] = i;
            return length;
        }
        for (int i = 0; i < n; i++)
            if (before[i] == -2 && calls[i]->rank == calls[at]->peer) {
                before[i] = at;
                queue[tail++] = i;
            }
    }
    return 0;
}

static void tell_cycle(FILE *f, const struct network_op *const *calls,
                       const int *cycle, int length)
{
    int sends = 0;
    for (int i = 0; i < length; i++) {
        fputs(i ? ", " : "", f);
        tell_call(f, calls[cycle[i]]);
        sends += calls[cycle[i]]->sends;
    }
    if (sends == length)
        fprintf(f, ": nobody receives");
    if (sends == 0)
        fprintf(f, ": nobody sends");
}

// Describes a call whose peer has ended; if there is none, the first call.
static void tell_end(FILE *f, const struct virtual_result *result,
                     const struct network_op *const *calls, int n)
{
    const struct network_op *c = calls[0];
    for (int i = n - 1; i >= 0; i--)
        if (calls[i]->peer >= 0 &&
            result->rank[calls[i]->peer].end != VIRTUAL_RUNNING)
            c = calls[i];
    tell_call(f, c);
    if (c->peer < 0)
        fprintf(f, ", and nobody sends to it");
    else if (result->rank[c->peer].end == VIRTUAL_KILLED)
        fprintf(f, ", which was killed");
    else if (result->rank[c->peer].end == VIRTUAL_RETURNED)
        fprintf(f, ", which has returned");
}

// Writes a sentence to result->deadlock. It names the shortest cycle among the
// n calls, in which each call waits for the next one. If there is no cycle, it
// names a call whose peer has ended, or else the first call.
static void tell_deadlock(struct virtual_result *result,
                          const struct network_op *const *calls, int n,
                          double now)
{
    char *text = result->deadlock; // all 0
    size_t size = sizeof result->deadlock;
    size_t used = (size_t)snprintf(text, size, "deadlock at %.6g s: ", now);
    FILE *f = fmemopen(text + used, size - used, "w");
    int *space = calloc((size_t)(4 * n), sizeof *space);
    int *cycle = space, *shortest = space + n, best = 0;
    for (int i = 0; space && i < n; i++) {
        int length =
            cycle_from(i, calls, n, space + 2 * n, space + 3 * n, cycle);
        if (length && (!best || length < best)) {
            best = length;
            memcpy(shortest, cycle, (size_t)n * sizeof *cycle);
        }
    }
    if (f && best)
        tell_cycle(f, calls, shortest, best);
    else if (f)
        tell_end(f, result, calls, n);
    if (f)
        fclose(f);
    free(space);
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
    const struct network_op **calls = calloc((size_t)requests, sizeof *calls);
    for (int i = 0; calls && i < ranks; i++) {
        now = fmax(now, c->ranks[i].now);
        for (struct request *q = c->ranks[i].requests; q; q = q->next)
            if (q->blamed && q->op.done_s == INFINITY)
                calls[n++] = &q->op;
    }
    if (n)
        tell_deadlock(c->result, calls, n, now);
    free(calls);
    doom_all(c);
}

// ---- turns

static void break_off(struct cluster *c)
{
    snprintf(c->broken, sizeof c->broken, "%.250s", fail_message());
    doom_all(c);
}

int turns_next(struct cluster *c)
{
    while (!all_over(c)) {
        double at, event = network_next(c->network);
        struct virtual_rank *r = earliest(c, &at);
        // An event at the time of the deadline is still in time.
        bool late = r && r->waits && !r->doomed && completion(r) > r->until;
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
