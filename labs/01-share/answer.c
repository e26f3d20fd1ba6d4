// answer.c - lab 1: calls the functions of share.c for the grader.

#include "labs/answer.h"

#include "labs/01-share/calls.h"

static size_t order(const struct share *s, size_t epoch, size_t place)
{
    uint64_t at[2] = {epoch, place};
    (void)s;
    return (size_t)lab_back(0, &(struct part){at, sizeof at, PART_IN}, 1);
}

static int64_t windows(struct lab *l, const struct part *p)
{
    struct share s = *(struct share *)p[0].p;
    size_t step = *(size_t *)p[1].p, *to = p[2].p;
    (void)l;
    s.order = order;
    for (int r = 0; r < s.workers; r++)
        for (int i = 0; i < s.batch; i++)
            *to++ = share_window(&s, step, r, i);
    return 0;
}

static int64_t bcast(struct lab *l, const struct part *p)
{
    return lab_bcast(l, p[0].p, p[0].bytes, *(int *)p[1].p);
}

lab_answer *const lab_answers[] = {windows, bcast};
const int lab_n_answers = 2;
