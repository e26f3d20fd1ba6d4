// second.c - lab 7, written from the handout alone.

#include "labs/07-stale/stale.h"

#include <string.h>

// The server's state of a worker.
struct peer {
    int clock; // pushes so far
    bool gone, waits;
};

static int lowest(const struct peer *peer, int workers)
{
    int low = -1;
    for (int c = 0; c < workers; c++)
        if (!peer[c].gone && (low < 0 || peer[c].clock < low))
            low = peer[c].clock;
    return low;
}

// Answers all workers that wait and may go on.
static int answer(struct lab *l, const struct job *job, struct peer *peer,
                  const float *p)
{
    int low = lowest(peer, l->workers);
    for (int c = 0; c < l->workers; c++) {
        if (!peer[c].waits ||
            (job->bound >= 0 && peer[c].clock - low > job->bound))
            continue;
        peer[c].waits = false;
        if (lab_send(l, c, p, job->n * sizeof *p))
            return -1;
    }
    return 0;
}

int lab_serve(struct lab *l, const struct job *job, float *p)
{
    size_t workers = (size_t)l->workers;
    float *g = lab_alloc(l, job->n, sizeof *g);
    struct peer *peer = lab_alloc(l, workers, sizeof *peer);
    if (!g || !peer)
        return -1;
    memset(peer, 0, workers * sizeof *peer);
    for (int here = l->workers; here > 0;) {
        struct lab_note note;
        if (lab_recv_any(l, &note, g, job->n * sizeof *g))
            return -1;
        struct peer *from = &peer[note.from];
        if (note.bytes == 0) {
            from->gone = true;
            here--;
        } else {
            for (size_t i = 0; i < job->n; i++)
                p[i] -= job->lr / (float)l->workers * g[i];
            from->clock++;
            from->waits = true;
        }
        if (answer(l, job, peer, p))
            return -1;
    }
    return 0;
}

int lab_exchange(struct lab *l, const struct job *job, const float *g, float *p)
{
    size_t bytes = job->n * sizeof *p;
    if (lab_send(l, l->workers, g, bytes))
        return -1;
    return lab_recv(l, l->workers, p, bytes);
}

int lab_leave(struct lab *l)
{
    return lab_send(l, l->workers, NULL, 0);
}
