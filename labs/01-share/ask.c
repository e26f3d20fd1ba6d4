// ask.c - lab 1: the grader's calls of the functions of share.c.

#include "labs/ask.h"

#include "labs/01-share/calls.h"

#include "base/base.h"

#include <string.h>

// The windows of the last step that was asked for.
static struct {
    struct share share;
    size_t step, windows[SHARE_MOST];
} last;

static int64_t back(void *ctx, struct lab *l, int what, const struct part *p,
                    int n)
{
    const struct share *s = ctx;
    uint64_t at[2];
    (void)l, (void)what;
    ask_wants(p, n, 1, (size_t[]){sizeof at});
    memcpy(at, p[0].p, sizeof at);
    return (int64_t)s->order(s, at[0], at[1]);
}

// Asks for all windows of a step at once.
static void ask_step(const struct share *s, size_t step)
{
    size_t count = (size_t)(s->workers * s->batch);
    CHECK(count <= SHARE_MOST);
    last.share = *s;
    last.step = step;
    struct part p[] = {{&last.share, sizeof last.share, PART_IN},
                       {&last.step, sizeof last.step, PART_IN},
                       {last.windows, count * sizeof(size_t), PART_OUT}};
    ask(NULL, SHARE_WINDOWS, p, 3, back, &last.share);
}

size_t share_window(const struct share *s, size_t step, int rank, int i)
{
    const struct share *was = &last.share;
    if (was->windows != s->windows || was->workers != s->workers ||
        was->batch != s->batch || was->order != s->order || last.step != step)
        ask_step(s, step);
    return last.windows[rank * s->batch + i];
}

int lab_bcast(struct lab *l, void *p, size_t bytes, int root)
{
    struct part parts[] = {{p, bytes, PART_BOTH},
                           {&root, sizeof root, PART_IN}};
    return (int)ask(l, SHARE_BCAST, parts, 2, NULL, NULL);
}
