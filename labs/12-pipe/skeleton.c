// pipe.c - lab 12: which micro-batch a stage computes next.

#include "labs/12-pipe/pipe.h"

// All go forward, then all come back.
bool pipe_work(const struct pipe *p, int stage, int i, struct work *w)
{
    (void)stage;
    *w = (struct work){i >= p->micro, i % p->micro};
    return i < 2 * p->micro;
}
