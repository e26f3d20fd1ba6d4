// ask.c - lab 5: the grader's calls of the functions of overlap.c.

#include "labs/ask.h"

#include "labs/05-overlap/calls.h"

#include <string.h>

int bucket_cut(struct bucket *out, int max, size_t n, size_t first, size_t size)
{
    size_t sizes[] = {n, first, size};
    struct part parts[] = {{sizes, sizeof sizes, PART_IN},
                           {out, (size_t)max * sizeof *out, PART_BOTH}};
    return (int)ask(NULL, OVERLAP_CUT, parts, 2, NULL, NULL);
}

void bucket_sizes(const struct lab *l, const struct layer *layers, int count,
                  size_t *first, size_t *size)
{
    double network[] = {l->workers, l->alpha_s, l->bytes_per_s};
    struct part parts[] = {
        {network, sizeof network, PART_IN},
        {(void *)layers, (size_t)count * sizeof *layers, PART_IN},
        {first, sizeof *first, PART_BOTH},
        {size, sizeof *size, PART_BOTH},
    };
    ask(NULL, OVERLAP_SIZES, parts, 4, NULL, NULL);
}

static int64_t back(void *ctx, struct lab *l, int what, const struct part *p,
                    int n)
{
    struct step *s = ctx;
    int32_t b = 0;
    if (what == STEP_JOIN)
        return s->join(l, s);
    if (what == STEP_DONE)
        return s->done(l, s);
    ask_wants(p, n, 1, (size_t[]){sizeof b});
    memcpy(&b, p[0].p, sizeof b);
    if (what == STEP_POST)
        return s->post(l, s, b);
    if (what == STEP_SUM)
        return s->sum(l, s, b);
    int err = s->take(l, s, &b);
    memcpy(p[0].p, &b, sizeof b);
    return err;
}

// Calls a function of a step, with bucket b. The student's process gets none of
// the addresses in the step.
static int ask_step(struct lab *l, int what, struct step *s, int b)
{
    struct step its = {.n = s->n, .count = s->count, .next = s->next};
    memcpy(its.ready, s->ready, sizeof its.ready);
    size_t bytes = (size_t)s->count * sizeof *s->buckets;
    struct part parts[] = {{&its, sizeof its, PART_BOTH},
                           {(void *)s->buckets, bytes, PART_IN},
                           {&b, sizeof b, PART_IN}};
    int err = (int)ask(l, what, parts, 3, back, s);
    if (l->thread)
        return err;
    memcpy(s->ready, its.ready, sizeof its.ready);
    s->next = its.next;
    return err;
}

int lab_ready(struct lab *l, struct step *s, int b)
{
    return ask_step(l, OVERLAP_READY, s, b);
}

int lab_exchange(struct lab *l, struct step *s)
{
    return ask_step(l, OVERLAP_EXCHANGE, s, 0);
}

int lab_communicate(struct lab *l, struct step *s)
{
    return ask_step(l, OVERLAP_COMMUNICATE, s, 0);
}
