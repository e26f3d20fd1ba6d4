// supported.c - whether a carrier can join members: one answer for all parts of
// a job.
//
// To open a carrier takes exchanges of the control plane, which all parts make
// together (cluster/split.h): so where it cannot join the members of one part,
// the others do not take it either.

#include "group/group.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "cluster/split.h"

#include <string.h>

struct answer { // as it travels: no padding
    int can;
    char why[128];
};

// What all parts of the job can, and why the first that cannot does not.
static int ask_parts(struct cluster *whole, int can, char why[128])
{
    struct answer mine = {.can = can};
    struct answer *all = mem_alloc((size_t)whole->world, sizeof *all);
    int r = 0;
    if (!can)
        memcpy(mine.why, why, strnlen(why, sizeof mine.why - 1));
    if (!all || cluster_allgather(whole, &mine, all, sizeof mine)) {
        mem_free(all);
        return -1;
    }
    while (r < whole->world && all[r].can)
        r++;
    if (r < whole->world)
        memcpy(why, all[r].why, sizeof mine.why);
    mem_free(all);
    return r == whole->world;
}

int group_is_supported(const struct group_ops *ops, const struct group_job *job,
                       char why[128])
{
    struct cluster *whole = cluster_whole(job->cluster);
    int can = ops->is_supported ? ops->is_supported(job, why) : 1;
    bool parts = can >= 0 && ops->is_supported && whole != job->cluster;
    return parts ? ask_parts(whole, can, why) : can;
}
