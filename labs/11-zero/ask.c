// ask.c - lab 11: the grader's call of zero_train().

#include "labs/ask.h"

#include "labs/11-zero/calls.h"

#include "base/base.h"

#include <string.h>

// gradients() of a worker: only its own.
static int64_t gradients(const struct zero *z, const struct lab *l,
                         const struct part *p, int n)
{
    int32_t of[2];
    ask_wants(p, n, 3,
              (size_t[]){sizeof of, z->n * sizeof(float),
                         z->n * sizeof(float)});
    memcpy(of, p[0].p, sizeof of);
    if (of[0] != l->rank)
        return fail("worker %d asks for the gradients of worker %d", l->rank,
                    of[0]);
    z->gradients(z, of[0], of[1], p[1].p, p[2].p);
    return 0;
}

static int64_t update(const struct zero *z, const struct part *p, int n)
{
    struct zero_update u;
    ask_wants(p, n, 1, (size_t[]){sizeof u});
    memcpy(&u, p[0].p, sizeof u);
    size_t bytes = u.n > z->n ? SIZE_MAX : u.n * sizeof(float);
    ask_wants(p, n, 5, (size_t[]){sizeof u, bytes, bytes, bytes, bytes});
    z->update(p[1].p, p[2].p, p[3].p, p[4].p, u.n, u.scale, u.number);
    return 0;
}

static int64_t back(void *ctx, struct lab *l, int what, const struct part *p,
                    int n)
{
    return what == ZERO_GRADIENTS ? gradients(ctx, l, p, n) : update(ctx, p, n);
}

int zero_train(struct lab *l, const struct zero *z, float *p)
{
    struct zero asked = *z;
    struct part parts[] = {{&asked, sizeof asked, PART_IN},
                           {p, z->n * sizeof *p, PART_BOTH}};
    return (int)ask(l, 0, parts, 2, back, (void *)z);
}
