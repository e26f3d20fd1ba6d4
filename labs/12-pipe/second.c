// second.c - lab 12, written from the handout alone.

#include "labs/12-pipe/pipe.h"

// One forward, one backward: a stage first sends as many micro-batches forward
// as there are stages after it, then does a forward and a backward piece in
// turn, then takes back the rest.
bool pipe_work(const struct pipe *p, int stage, int i, struct work *w)
{
    int m = p->micro, after = p->stages - 1 - stage;
    int warm = after < m ? after : m;
    int k = i - warm, turns = m - warm;
    if (i < warm)
        *w = (struct work){false, i};
    else if (k < 2 * turns)
        *w = (struct work){k % 2 == 1, k % 2 ? k / 2 : warm + k / 2};
    else
        *w = (struct work){true, k - turns};
    return i < 2 * m;
}
