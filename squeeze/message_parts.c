// message_parts.c - messages of parts of a range: encodes and adds them.

#include "squeeze/message_parts.h"

#include "cluster/cluster.h"
#include "squeeze/travel.h"

struct group_chunk message_parts_chunk(const struct sync *s,
                                       const struct message_parts *p, int rank)
{
    return group_chunk(p->n, p->grain, s->job.cluster->world, rank);
}

void message_parts_encode(const struct sync *s, const struct message_parts *p,
                          float *x, float *speed)
{
    const struct sync_settings *set = s->job.settings;
    for (int r = 0; r < s->job.cluster->world; r++) {
        struct group_chunk c = message_parts_chunk(s, p, r);
        uint64_t key =
            squeeze_stream(s->job.seed, s->steps + 1, s->job.cluster->rank,
                           false, p->before + p->off + c.off);
        char *message = p->given + (size_t)r * p->bytes;
        p->ops->encode(set, key, x + c.off, c.n, message, p->scratch);
        if (speed)
            squeeze_clear_sent(set, message, c.n, speed + c.off);
    }
}

int message_parts_add(const struct sync *s, const struct message_parts *p,
                      float *sum)
{
    struct group_chunk own = message_parts_chunk(s, p, s->job.cluster->rank);
    const struct unit range = {.off = p->off, .n = p->n};
    for (int r = 0; r < s->job.cluster->world; r++)
        if (p->ops->add(s->job.settings, p->taken + (size_t)r * p->bytes, own.n,
                        sum))
            return travel_refuse(s, &range, r);
    return 0;
}
