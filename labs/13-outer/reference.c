// reference.c - lab 13: sends copies of a fragment to all, and merges them some
// steps later. Douillard and others, "Streaming DiLoCo with overlapping
// communication", 2025.

#include "labs/13-outer/outer.h"

#include <string.h>

// An exchange of a fragment; `all` has a place for each worker.
struct travel {
    bool under_way;
    int merge_at; // the inner step after which it is merged
    int requests;
    float *all;
    struct lab_req r[LAB_REQUESTS];
};

static size_t first_of(const struct outer *o, int f)
{
    return o->n * (size_t)f / (size_t)o->fragments;
}

static size_t length_of(const struct outer *o, int f)
{
    return first_of(o, f + 1) - first_of(o, f);
}

void outer_step(float lr, float momentum, const float *mean, float *start,
                float *velocity, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float d = start[i] - mean[i];
        velocity[i] = momentum * velocity[i] + d;
        start[i] -= lr * (d + momentum * velocity[i]);
    }
}

static bool is_due(const struct outer *o, int f, int s)
{
    return s % o->every == o->every * (f + 1) / o->fragments % o->every;
}

static int begin(struct lab *l, const struct outer *o, int f, int s,
                 const float *p, struct travel *t)
{
    int w = l->workers, me = l->rank;
    size_t n = length_of(o, f), bytes = n * sizeof *p;
    float *mine = t->all + (size_t)me * n;
    memcpy(mine, p + first_of(o, f), bytes);
    t->under_way = true;
    t->merge_at = s + o->overlap;
    t->requests = 0;
    for (int hop = 1; hop < w; hop++) {
        int from = (me + hop) % w, to = (me + w - hop) % w;
        if (lab_isend(l, to, mine, bytes, &t->r[t->requests++]) ||
            lab_irecv(l, from, t->all + (size_t)from * n, bytes,
                      &t->r[t->requests++]))
            return -1;
    }
    return 0;
}

static int merge(struct lab *l, const struct outer *o, int f, float *p,
                 struct travel *t, float *start, float *velocity)
{
    size_t n = length_of(o, f), off = first_of(o, f), w = (size_t)l->workers;
    float *mean = lab_alloc(l, n, sizeof *mean);
    if (!mean || lab_wait(l, t->r, t->requests))
        return -1;
    t->under_way = false;
    for (size_t i = 0; i < n; i++) {
        float sum = 0;
        for (size_t r = 0; r < w; r++)
            sum += t->all[r * n + i];
        mean[i] = sum / (float)w;
    }
    outer_step(o->lr, o->momentum, mean, start + off, velocity + off, n);
    memcpy(p + off, start + off, n * sizeof *p);
    return 0;
}

int outer_train(struct lab *l, const struct outer *o, float *p)
{
    float *start = lab_alloc(l, o->n, sizeof *start);
    float *velocity = lab_alloc(l, o->n, sizeof *velocity);
    struct travel *t = lab_alloc(l, (size_t)o->fragments, sizeof *t);
    if (!start || !velocity || !t)
        return -1;
    memcpy(start, p, o->n * sizeof *p);
    memset(velocity, 0, o->n * sizeof *velocity);
    for (int f = 0; f < o->fragments; f++) {
        t[f] = (struct travel){
            .all =
                lab_alloc(l, (size_t)l->workers * length_of(o, f), sizeof *p)};
        if (!t[f].all)
            return -1;
    }
    for (int s = 1; s <= o->steps; s++) {
        o->inner(o, s, p);
        for (int f = 0; f < o->fragments; f++) {
            if (is_due(o, f, s) && begin(l, o, f, s, p, &t[f]))
                return -1;
            bool now = t[f].merge_at == s || s == o->steps;
            if (t[f].under_way && now &&
                merge(l, o, f, p, &t[f], start, velocity))
                return -1;
        }
    }
    return 0;
}
