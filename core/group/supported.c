// supported.c - finds out whether a carrier can join members, with one answer
// for all parts of a job.
//
// All parts of a job must take the same carrier: opening it makes exchanges of
// the control plane, in which all parts take part (cluster/split.h). So if a
// carrier cannot join the members of one part, the other parts do not take it
// either.

#include "group/group.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "cluster/split.h"

#include <string.h>

struct answer { // sent as it is: it has no padding
    int can;
    char why[128];
};

// 1 if the members of all parts can be joined. 0 if those of a part cannot:
// then `why` becomes the reason that the first such rank gives. -1 after
// fail().
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
