// story.c - follows the contents of every rank from message to message.

#include "explain/story.h"

#include "explain/message_virtual.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

static int keep(const struct story_vector *v, float **copy, const float *at)
{
    *copy = mem_alloc(v->n, sizeof **copy);
    if (*copy)
        memcpy(*copy, at, v->n * sizeof *at);
    return *copy ? 0 : -1;
}

int story_before(struct story *s, int k, int rank, const float *at)
{
    struct story_vector *v = &s->vectors[k];
    v->at[rank] = (const char *)at;
    v->shown[rank] = true;
    return keep(v, &v->first[rank], at);
}

int story_after(struct story *s, int k, int rank, const float *at)
{
    return keep(&s->vectors[k], &s->vectors[k].last[rank], at);
}

int story_run(struct story *s, int hosts, virtual_main *body, void *arg)
{
    const struct virtual_setup setup = {.ranks = s->workers + s->servers,
                                        .hosts = hosts,
                                        .alpha_s = s->link.alpha_s,
                                        .bytes_per_s = s->link.bytes_per_s,
                                        .keep = true};
    CHECK(setup.ranks <= STORY_RANKS);
    s->v = virtual_run(&setup, body, arg);
    if (!s->v)
        return -1;
    if (s->v->deadlock[0])
        return fail("%s", s->v->deadlock);
    for (int r = 0; r < setup.ranks; r++)
        if (s->v->rank[r].value)
            return fail("rank %d: %s", r, s->v->rank[r].error);
    return 0;
}

void story_close(struct story *s)
{
    for (int k = 0; k < STORY_VECTORS; k++)
        for (int r = 0; r < STORY_RANKS; r++) {
            mem_free(s->vectors[k].first[r]);
            mem_free(s->vectors[k].last[r]);
        }
    virtual_close(&s->v);
    mem_free(s->messages);
    mem_free(s->states);
}

// ---- the elements in a message

static bool is_line(const struct virtual_message *a,
                    const struct virtual_message *b)
{
    return a->from == b->from && a->to == b->to;
}

// The envelope that announced message i. If message i is number k of its line,
// not counting envelopes, its envelope is number k of those envelopes of the
// line that announce bytes.
static const void *envelope_of(const struct story *s, size_t i)
{
    const struct virtual_message *all = s->v->messages;
    size_t before = 0;
    for (size_t k = 0; k < i; k++)
        before += is_line(&all[k], &all[i]) && !all[k].is_envelope;
    for (size_t k = 0; k < s->v->n_messages; k++)
        if (is_line(&all[k], &all[i]) && all[k].is_envelope &&
            message_virtual_bytes(all[k].data) && before-- == 0)
            return all[k].data;
    return NULL;
}

static struct story_place place_of(const struct story *s, size_t i)
{
    const struct virtual_message *m = &s->v->messages[i];
    size_t n = m->bytes / sizeof(float);
    for (int k = 0; k < s->nvectors; k++) {
        const struct story_vector *v = &s->vectors[k];
        const char *base = v->at[m->from], *at = m->at;
        if (base && at >= base && at < base + v->n * sizeof(float))
            return (struct story_place){k, (size_t)(at - base) / sizeof(float),
                                        n};
    }
    const void *envelope = s->place ? envelope_of(s, i) : NULL;
    return envelope ? s->place(s, envelope, m)
                    : (struct story_place){.vector = -1};
}

static int list_messages(struct story *s)
{
    const struct virtual_result *v = s->v;
    s->messages = mem_alloc(v->n_messages + 1, sizeof *s->messages);
    if (!s->messages)
        return -1;
    for (size_t i = 0; i < v->n_messages; i++) {
        const struct virtual_message *m = &v->messages[i];
        if (m->is_envelope || m->bytes == 0)
            continue;
        s->messages[s->n_messages++] =
            (struct story_message){.is = m, .place = place_of(s, i)};
    }
    return 0;
}

// ---- cells: ranges that no message divides

static int add_cut(struct story_vector *v, size_t at)
{
    int i = 0;
    while (i < v->ncells && v->cuts[i] < at)
        i++;
    if (at >= v->n || (i < v->ncells && v->cuts[i] == at))
        return 0;
    if (v->ncells == STORY_CELLS)
        return fail("explain: the messages divide %s into more than %d parts; "
                    "try: fewer workers, or a smaller n",
                    v->name, STORY_CELLS);
    memmove(v->cuts + i + 1, v->cuts + i,
            (size_t)(v->ncells - i) * sizeof *v->cuts);
    v->cuts[i] = at;
    v->ncells++;
    return 0;
}

static size_t cell_end(const struct story_vector *v, int cell)
{
    return cell + 1 < v->ncells ? v->cuts[cell + 1] : v->n;
}

static int cut(struct story *s)
{
    for (int k = 0; k < s->nvectors; k++)
        if (add_cut(&s->vectors[k], 0))
            return -1;
    for (size_t i = 0; i < s->n_messages; i++) {
        const struct story_place *p = &s->messages[i].place;
        struct story_vector *v = p->vector < 0 ? NULL : &s->vectors[p->vector];
        if (v && (add_cut(v, p->off) || add_cut(v, p->off + p->n)))
            return -1;
    }
    for (size_t i = 0; i < s->n_messages; i++) {
        struct story_message *m = &s->messages[i];
        if (m->place.vector < 0)
            continue;
        const struct story_vector *v = &s->vectors[m->place.vector];
        while (v->cuts[m->first] < m->place.off)
            m->first++;
        while (m->first + m->ncells < v->ncells &&
               v->cuts[m->first + m->ncells] < m->place.off + m->place.n)
            m->ncells++;
    }
    return 0;
}

// ---- the ranks whose numbers are in a sum

// *holds becomes the set of ranks in n numbers, which must all be the same.
static int read_holds(const float *x, size_t n, unsigned *holds)
{
    for (size_t i = 0; i < n; i++) {
        if (!(x[i] >= 0) || x[i] != (float)(unsigned)x[i])
            return fail("explain: a bug: %g is not a sum of ranks' numbers",
                        (double)x[i]);
        if (i > 0 && x[i] != x[0])
            return fail("explain: a bug: %g and %g in one part of a message",
                        (double)x[0], (double)x[i]);
    }
    *holds = n ? (unsigned)x[0] : 0;
    return 0;
}

static int read_message(struct story *s, struct story_message *m)
{
    const struct story_vector *v = &s->vectors[m->place.vector];
    const float *x = m->is->data;
    for (int c = 0; c < m->ncells; c++) {
        size_t from = v->cuts[m->first + c], to = cell_end(v, m->first + c);
        if (read_holds(x + (from - m->place.off), to - from, &m->holds[c]))
            return -1;
    }
    return 0;
}

// ---- from message to message

struct moment { // a message begins to travel, or has arrived
    double s;
    bool begins;
    size_t message;
};

static int by_time(const void *a, const void *b)
{
    const struct moment *x = a, *y = b;
    if (x->s != y->s)
        return x->s < y->s ? -1 : 1;
    if (x->begins != y->begins)
        return x->begins - y->begins;
    return (x->message > y->message) - (x->message < y->message);
}

typedef unsigned table[STORY_VECTORS][STORY_RANKS][STORY_CELLS];

static void note(struct story *s, table now, double at, int rank, int vector,
                 int cell, unsigned holds)
{
    now[vector][rank][cell] = holds;
    s->states[s->n_states++] =
        (struct story_state){at, rank, vector, cell, holds};
}

static int begin(struct story *s, table now, const struct story_message *m)
{
    const struct story_vector *v = &s->vectors[m->place.vector];
    for (int c = 0; c < m->ncells; c++) {
        int cell = m->first + c;
        unsigned has = now[m->place.vector][m->is->from][cell];
        if (has == m->holds[c] || !v->shown[m->is->from])
            continue;
        if (!v->updates)
            return fail("explain: a bug: rank %d sends the sum %u of %s, but "
                        "has %u",
                        m->is->from, m->holds[c], v->name, has);
        note(s, now, m->is->begin_s, m->is->from, m->place.vector, cell,
             m->holds[c]);
    }
    return 0;
}

static void arrive(struct story *s, table now, struct story_message *m)
{
    for (int c = 0; c < m->ncells; c++) {
        int cell = m->first + c;
        unsigned has = now[m->place.vector][m->is->to][cell];
        m->before[c] = has;
        note(s, now, m->is->arrived_s, m->is->to, m->place.vector, cell,
             has & m->holds[c] ? m->holds[c] : has | m->holds[c]);
    }
}

static int compare_end(struct story *s, table now)
{
    for (int k = 0; k < s->nvectors; k++) {
        const struct story_vector *v = &s->vectors[k];
        for (int r = 0; r < s->workers; r++)
            for (int c = 0; v->last[r] && c < v->ncells; c++) {
                unsigned has = 0, told = now[k][r][c];
                if (read_holds(v->last[r] + v->cuts[c],
                               cell_end(v, c) - v->cuts[c], &has))
                    return -1;
                if (v->updates && has != told)
                    note(s, now, s->v->seconds, r, k, c, has);
                else if (has != told)
                    return fail("explain: a bug: rank %d ends with the sum %u "
                                "of %s; by the messages it is %u",
                                r, has, v->name, told);
            }
    }
    return 0;
}

static int follow(struct story *s, table now, struct moment *moments)
{
    size_t n = 0;
    for (int k = 0; k < s->nvectors; k++)
        for (int r = 0; r < s->workers; r++)
            for (int c = 0; s->vectors[k].first[r] && c < s->vectors[k].ncells;
                 c++) {
                const struct story_vector *v = &s->vectors[k];
                unsigned has = 0;
                if (read_holds(v->first[r] + v->cuts[c],
                               cell_end(v, c) - v->cuts[c], &has))
                    return -1;
                note(s, now, 0, r, k, c, has);
            }
    for (size_t i = 0; i < s->n_messages; i++) {
        struct story_message *m = &s->messages[i];
        if (m->place.vector < 0)
            continue;
        if (read_message(s, m))
            return -1;
        moments[n++] = (struct moment){m->is->begin_s, true, i};
        moments[n++] = (struct moment){m->is->arrived_s, false, i};
    }
    qsort(moments, n, sizeof *moments, by_time);
    for (size_t i = 0; i < n; i++) {
        struct story_message *m = &s->messages[moments[i].message];
        if (!moments[i].begins)
            arrive(s, now, m);
        else if (begin(s, now, m))
            return -1;
    }
    return compare_end(s, now);
}

int story_follow(struct story *s)
{
    if (list_messages(s) || cut(s))
        return -1;
    size_t states = (size_t)(s->nvectors * 2 * STORY_RANKS * STORY_CELLS) +
                    2 * s->n_messages * STORY_CELLS;
    table *now = mem_alloc(1, sizeof *now);
    struct moment *moments = mem_alloc(2 * s->n_messages + 1, sizeof *moments);
    s->states = mem_alloc(states, sizeof *s->states);
    int rc = now && moments && s->states ? follow(s, *now, moments) : -1;
    mem_free(now);
    mem_free(moments);
    return rc;
}
