// second.c - lab 13, another right solution: looks for the last step at which a
// fragment was due, and keeps all buffers in one struct.

#include "labs/13-outer/outer.h"

#include <string.h>

struct own {
    const struct outer *o;
    struct lab *l;
    float *p, *start, *velocity;
    float *sent; // as p was when its fragment was due
    float *came; // n numbers for each worker
    struct lab_req *req;
    int *count; // messages under way, by fragment
};

void outer_step(float lr, float momentum, const float *mean, float *start,
                float *velocity, size_t n)
{
    for (const float *end = start + n; start < end; start++, mean++) {
        float way = *mean - *start; // from the start to the mean
        *velocity = momentum * *velocity - way;
        *start += lr * (way - momentum * *velocity);
        velocity++;
    }
}

static size_t at(const struct outer *o, int f)
{
    return o->n * (size_t)f / (size_t)o->fragments;
}

static int send_out(struct own *m, int f)
{
    int w = m->l->workers, me = m->l->rank;
    size_t off = at(m->o, f), bytes = (at(m->o, f + 1) - off) * sizeof(float);
    struct lab_req *r = m->req + (size_t)f * 2 * (size_t)w;
    memcpy(m->sent + off, m->p + off, bytes);
    m->count[f] = 0;
    for (int d = 1; d < w; d++) {
        int from = (me + d) % w;
        if (lab_irecv(m->l, from, m->came + (size_t)from * m->o->n + off, bytes,
                      &r[m->count[f]++]))
            return -1;
    }
    for (int d = 1; d < w; d++)
        if (lab_isend(m->l, (me + w - d) % w, m->sent + off, bytes,
                      &r[m->count[f]++]))
            return -1;
    return 0;
}

static int take_in(struct own *m, int f)
{
    int w = m->l->workers, me = m->l->rank;
    size_t n = m->o->n, from = at(m->o, f), to = at(m->o, f + 1);
    if (lab_wait(m->l, m->req + (size_t)f * 2 * (size_t)w, m->count[f]))
        return -1;
    float *mean = m->came + (size_t)me * n;
    memcpy(mean + from, m->sent + from, (to - from) * sizeof *mean);
    for (size_t i = from; i < to; i++) {
        float all = m->came[i];
        for (int r = 1; r < w; r++)
            all += m->came[(size_t)r * n + i];
        mean[i] = all / (float)w;
    }
    outer_step(m->o->lr, m->o->momentum, mean + from, m->start + from,
               m->velocity + from, to - from);
    memcpy(m->p + from, m->start + from, (to - from) * sizeof *mean);
    return 0;
}

static bool due(const struct outer *o, int f, int s)
{
    return s > 0 &&
           s % o->every == o->every * (f + 1) / o->fragments % o->every;
}

int outer_train(struct lab *l, const struct outer *o, float *p)
{
    size_t n = o->n, w = (size_t)l->workers, f = (size_t)o->fragments;
    struct own m = {.o = o,
                    .l = l,
                    .p = p,
                    .start = lab_alloc(l, n, sizeof *p),
                    .velocity = lab_alloc(l, n, sizeof *p),
                    .sent = lab_alloc(l, n, sizeof *p),
                    .came = lab_alloc(l, n * w, sizeof *p),
                    .req = lab_alloc(l, f * 2 * w, sizeof(struct lab_req)),
                    .count = lab_alloc(l, f, sizeof(int))};
    if (!m.start || !m.velocity || !m.sent || !m.came || !m.req || !m.count)
        return -1;
    memcpy(m.start, p, n * sizeof *p);
    for (size_t i = 0; i < n; i++)
        m.velocity[i] = 0;
    for (int s = 1; s <= o->steps; s++) {
        o->inner(o, s, p);
        for (int i = 0; i < o->fragments; i++)
            if (due(o, i, s) && send_out(&m, i))
                return -1;
        for (int i = 0; i < o->fragments; i++)
            if (due(o, i, s - o->overlap) && take_in(&m, i))
                return -1;
    }
    for (int s = o->steps - o->overlap + 1; s <= o->steps; s++)
        for (int i = 0; i < o->fragments; i++)
            if (due(o, i, s) && take_in(&m, i))
                return -1;
    return 0;
}
