// pipe.c - lab 12: which micro-batch a stage computes next.

#include "labs/12-pipe/pipe.h"

// All go forward, then all come back.
bool pipe_work(const struct pipe *p, int stage, int i, struct work *w)
{
    int m = p->micro;
    bool is = i < 2 * m;
    (void)stage;
    *w = (struct work){i >= m, i % m};
    return is;
}
