// reference.c - lab 12: one forward, one backward (1F1B). A stage first sends
// as many micro-batches forward as there are stages after it, then alternates.
// Narayanan et al., "PipeDream", SOSP 2019.

#include "labs/12-pipe/pipe.h"

bool pipe_work(const struct pipe *p, int stage, int i, struct work *w)
{
    int behind = p->stages - 1 - stage;
    int warm = behind < p->micro ? behind : p->micro;
    int turns = 2 * (p->micro - warm), turn = i - warm;
    if (i < warm)
        *w = (struct work){false, i};
    else if (turn < turns)
        *w = (struct work){turn % 2 == 1, turn / 2 + (turn % 2 ? 0 : warm)};
    else
        *w = (struct work){true, i - p->micro};
    return i < 2 * p->micro;
}
