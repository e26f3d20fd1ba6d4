// elastic.c - the workers of an elastic job, as the launcher sees them.

#include "launch/elastic.h"

#include <string.h>

static bool works(const struct child *c)
{
    return c->kind != JOB_SERVER;
}

static bool is_left(const struct child *c)
{
    return works(c) && (c->alive || c->again_ns > 0);
}

bool elastic_goes_on(const struct child *c, int n, bool elastic)
{
    bool ended = false, servers = false, served = false, over = false;
    bool left = false, alive = false;
    for (int i = 0; i < n; i++) {
        bool well = !c[i].alive && c[i].status == 0;
        ended |= works(&c[i]) && well;
        over |= !works(&c[i]) && well;
        servers |= !works(&c[i]);
        served |= !works(&c[i]) && c[i].alive;
        left |= is_left(&c[i]);
        alive |= works(&c[i]) && c[i].alive;
    }
    if (elastic && over && (ended || !alive))
        return false;
    return left && !(elastic && ended && servers && !served);
}

bool elastic_blames_server(const struct child *c)
{
    const char *error = child_error(c->last);
    return error && (!strncmp(error, "server ", 7) ||
                     !strncmp(error, "rendezvous ", 11));
}

const struct child *elastic_worst(const struct child *c, int n)
{
    const struct child *worst = NULL;
    for (int i = 0; i < n; i++) {
        if (works(&c[i]) && c[i].status == 0)
            return NULL;
        if (works(&c[i]) && (!worst || child_guilt(&c[i]) > child_guilt(worst)))
            worst = &c[i];
    }
    return worst;
}

struct child *elastic_all_lost(struct child *c, int n)
{
    struct child *lost = NULL;
    for (int i = 0; i < n; i++) {
        if (is_left(&c[i]) || (works(&c[i]) && c[i].status == 0))
            return NULL;
        if (c[i].undecided)
            lost = &c[i];
    }
    return lost;
}
