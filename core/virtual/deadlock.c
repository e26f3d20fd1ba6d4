// deadlock.c - finds the shortest cycle of calls that wait for each other.

#include "virtual/deadlock.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct text {
    char *at;
    size_t left;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *t,
                                                      const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(t->at, t->left, fmt, ap);
    va_end(ap);
    size_t used = n < 0 ? 0 : (size_t)n < t->left ? (size_t)n : t->left - 1;
    t->at += used;
    t->left -= used;
}

static void add_call(struct text *t, const struct deadlock_call *c)
{
    if (c->peer < 0)
        add(t, "%d receives from anybody", c->rank);
    else
        add(t, "%d %s %d (message %ld)", c->rank,
            c->sends ? "sends to" : "receives from", c->peer, c->number);
}

// Searches breadth first from call `start` to the calls of its peer, and so on,
// until a call waits for the rank of `start`. Returns how many calls the cycle
// has and writes them to cycle[]; 0: there is no cycle.
static int cycle_from(int start, const struct deadlock_call *calls, int n,
                      int *before, int *queue, int *cycle)
{
    int head = 0, tail = 0, length = 0;
    for (int i = 0; i < n; i++)
        before[i] = -2;
    before[start] = -1;
    queue[tail++] = start;
    while (head < tail) {
        int at = queue[head++];
        if (calls[at].peer == calls[start].rank) {
            for (int i = at; i >= 0; i = before[i])
                length++;
            for (int i = at, k = length; i >= 0; i = before[i])
                cycle[--k] = i;
            return length;
        }
        for (int i = 0; i < n; i++)
            if (before[i] == -2 && calls[i].rank == calls[at].peer) {
                before[i] = at;
                queue[tail++] = i;
            }
    }
    return 0;
}

static void tell_cycle(struct text *t, const struct deadlock_call *calls,
                       const int *cycle, int length)
{
    bool sends = true, receives = true;
    for (int i = 0; i < length; i++) {
        if (i > 0)
            add(t, ", ");
        add_call(t, &calls[cycle[i]]);
        sends = sends && calls[cycle[i]].sends;
        receives = receives && !calls[cycle[i]].sends;
    }
    if (sends)
        add(t, ": nobody receives");
    if (receives)
        add(t, ": nobody sends");
}

// Describes a call whose peer has ended; if there is none, the first call.
static void tell_end(struct text *t, const struct virtual_result *result,
                     const struct deadlock_call *calls, int n)
{
    const struct deadlock_call *c = calls;
    for (int i = n - 1; i >= 0; i--)
        if (calls[i].peer >= 0 &&
            result->rank[calls[i].peer].end != VIRTUAL_RUNNING)
            c = &calls[i];
    add_call(t, c);
    if (c->peer < 0)
        add(t, ", and nobody sends to it");
    else if (result->rank[c->peer].end == VIRTUAL_KILLED)
        add(t, ", which was killed");
    else if (result->rank[c->peer].end == VIRTUAL_RETURNED)
        add(t, ", which has returned");
}

void deadlock_tell(struct virtual_result *result,
                   const struct deadlock_call *calls, int n, double now)
{
    struct text t = {result->deadlock, sizeof result->deadlock};
    int best = 0;
    int *space = calloc((size_t)(4 * n), sizeof *space);
    int *cycle = space, *shortest = space + n;
    for (int i = 0; space && i < n; i++) {
        int length =
            cycle_from(i, calls, n, space + 2 * n, space + 3 * n, cycle);
        if (length && (!best || length < best)) {
            best = length;
            memcpy(shortest, cycle, (size_t)n * sizeof *cycle);
        }
    }
    add(&t, "deadlock at %.6g s: ", now);
    if (best)
        tell_cycle(&t, calls, shortest, best);
    else
        tell_end(&t, result, calls, n);
    free(space);
}
