// answer.c - lab 1: calls the functions of share.c for the grader.

#include "labs/answer.h"

#include "labs/01-share/calls.h"

enum { ANSWERS = 4096 };

// What the grader's order() has said. It is a function of the number of windows
// and of these two, and each question is a round trip between two processes.
static struct {
    size_t windows, epoch, place, window;
    void *order; // the grader's; NULL: nothing is here
} said[ANSWERS];

static struct {
    size_t windows;
    void *order;
} asked; // of the call that lasts

static size_t order(const struct share *s, size_t epoch, size_t place)
{
    uint64_t at[2] = {epoch, place};
    size_t i = (epoch * asked.windows + place) % ANSWERS;
    (void)s;
    if (said[i].order != asked.order || said[i].windows != asked.windows ||
        said[i].epoch != epoch || said[i].place != place) {
        struct part part = {at, sizeof at, PART_IN};
        said[i].window = (size_t)lab_back(0, &part, 1);
        said[i].order = asked.order;
        said[i].windows = asked.windows;
        said[i].epoch = epoch;
        said[i].place = place;
    }
    return said[i].window;
}

static int64_t windows(struct lab *l, const struct part *p)
{
    struct share s = *(struct share *)p[0].p;
    size_t step = *(size_t *)p[1].p, *to = p[2].p;
    (void)l;
    asked.windows = s.windows;
    asked.order = (void *)(uintptr_t)s.order;
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
