// start.c - lets all members begin at the same moment, by their clocks.

#include "bench/start.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "telemetry/align.h"

#include <sched.h>

enum { ROUNDS = 9, AHEAD_NS = 300000 };

struct clocks { // of one member
    uint64_t host;
    struct align_round rounds[ROUNDS];
};

int start_open(struct start *s, struct cluster *cluster)
{
    struct clocks mine = {.host = align_host()};
    struct align found = {0};
    struct clocks *all = mem_alloc((size_t)cluster->world, sizeof *all);
    int rc = all ? 0 : -1;
    for (int i = 0; !rc && i < ROUNDS; i++) {
        mine.rounds[i].entered_ns = now_ns();
        rc = cluster_barrier(cluster);
        mine.rounds[i].left_ns = now_ns();
    }
    if (!rc)
        rc = cluster_allgather(cluster, &mine, all, sizeof mine);
    if (!rc && (!mine.host || mine.host != all[0].host))
        rc = align_clocks(mine.rounds, all[0].rounds, ROUNDS, &found);
    *s = (struct start){.cluster = cluster, .offset_ns = found.offset_ns};
    mem_free(all);
    return rc;
}

int start_wait(struct start *s)
{
    uint64_t at;
    if (cluster_barrier(s->cluster)) // nobody gets `at` too late
        return -1;
    at = now_ns() + AHEAD_NS;
    if (cluster_bcast(s->cluster, &at, sizeof at))
        return -1;
    s->at_ns = at + (uint64_t)s->offset_ns;
    while (now_ns() < s->at_ns)
        sched_yield();
    return 0;
}

double start_seconds(const struct start *s)
{
    return (double)(now_ns() - s->at_ns) * 1e-9;
}
