// reference.c - lab 7: after every message, answers all workers that may go on.
// Ho and others, "More effective distributed ML via a stale synchronous
// parallel parameter server", NIPS 2013.

#include "labs/07-stale/stale.h"

#include <limits.h>

struct worker {
    int clock;
    bool waits, left;
};

static int lowest(const struct worker *all, int workers)
{
    int least = INT_MAX;
    for (int r = 0; r < workers; r++)
        if (!all[r].left && all[r].clock < least)
            least = all[r].clock;
    return least;
}

// Answers all workers that wait and may go on.
static int answer(struct lab *l, const struct job *job, struct worker *all,
                  const float *p)
{
    int least = lowest(all, l->workers);
    for (int r = 0; r < l->workers; r++) {
        bool may = job->bound < 0 || all[r].clock - least <= job->bound;
        if (!all[r].waits || !may)
            continue;
        all[r].waits = false;
        if (lab_send(l, r, p, job->n * sizeof *p))
            return lab_missing(l, r, "to receive parameters");
    }
    return 0;
}

int lab_serve(struct lab *l, const struct job *job, float *p)
{
    float *g = lab_alloc(l, job->n, sizeof *g);
    struct worker *all = lab_alloc(l, (size_t)l->workers, sizeof *all);
    if (!g || !all)
        return -1;
    for (int r = 0; r < l->workers; r++)
        all[r] = (struct worker){0};
    while (lowest(all, l->workers) < INT_MAX) {
        struct lab_note from;
        if (lab_recv_any(l, &from, g, job->n * sizeof *g))
            return -1;
        struct worker *its = &all[from.from];
        its->left = from.bytes == 0;
        its->waits = from.bytes > 0;
        its->clock += from.bytes > 0;
        float rate = job->lr / (float)l->workers;
        for (size_t i = 0; i < job->n && its->waits; i++)
            p[i] -= rate * g[i];
        if (answer(l, job, all, p))
            return -1;
    }
    return 0;
}

int lab_exchange(struct lab *l, const struct job *job, const float *g, float *p)
{
    if (lab_send(l, l->workers, g, job->n * sizeof *g) ||
        lab_recv(l, l->workers, p, job->n * sizeof *p))
        return -1;
    return 0;
}

int lab_leave(struct lab *l)
{
    char nothing = 0;
    return lab_send(l, l->workers, &nothing, 0);
}
