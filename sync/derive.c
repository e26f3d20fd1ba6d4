// derive.c - chooses those settings of a backend that the user did not set.

#include "sync/derive.h"

#include "config/backends.h"
#include "sync/bucket.h"

// Either servers return sums of gradients and workers update, or servers update
// and return parameters. With a wire of 16 bits parameters would lose
// precision, so servers return sums. This works only if each step adds the
// gradients of all workers. Compressed gradients are sums, too.
static enum updater usual_updater(const struct sync_settings *s)
{
    bool narrow = s->wire != DTYPE_F32 || s->squeeze;
    bool whole =
        s->consistency.kind == CONSISTENCY_BSP && !s->backup && !s->elastic;
    return narrow && whole ? UPDATER_WORKER : UPDATER_SERVER;
}

void sync_derive(struct sync_settings *s, const struct backend *b, int world,
                 size_t n)
{
    const double mib = 1048576;
    int hops = b->traffic == TRAFFIC_RING && !s->squeeze ? world : 0;
    if (s->bucket_mb == 0 && n > 0)
        s->bucket_mb = (double)(bucket_usual(n, hops) * sizeof(float)) / mib;
    if (s->shard >= SHARD_GRADS)
        s->bucket = BUCKET_BLOCK;
    if (!b->apart)
        s->every = 1;
    if (!b->servers) {
        s->update = UPDATER_WORKER;
        return;
    }
    if (s->servers.count == 0)
        s->servers.count = b->servers == 1 ? 1 : world;
    if (s->update == UPDATER_AUTO)
        s->update = usual_updater(s);
    if (s->transport == TRANSPORT_AUTO)
        s->transport = TRANSPORT_ZMQ;
}

bool sync_holds(const struct sync_settings *s, const struct backend *b)
{
    return s->update == UPDATER_SERVER || b->traffic == TRAFFIC_OWNER;
}

struct sync_share sync_share(const struct sync_settings *s,
                             const struct backend *b, int world, size_t n,
                             size_t work)
{
    size_t shards = b->shards ? (size_t)world : 1;
    size_t own = (n + shards - 1) / shards;
    struct sync_share out = {.params = n,
                             .grads = n,
                             .slot = own,
                             .late_params = b->shards};
    if (s->update == UPDATER_SERVER)
        out.slot = 0;
    if (b->apart && (!outer_averages(s) || s->wire != DTYPE_F32))
        out.kept = n + (s->outer_momentum > 0 ? n : 0);
    if (s->squeeze && s->feedback)
        out.kept = (s->momentum_correction ? 4 : 2) * n;
    if (s->shard >= SHARD_GRADS) {
        out.lends_grads = true;
        out.grads = own;
        out.grad_buffers = work;
    }
    if (s->shard >= SHARD_PARAMS) {
        out.lends_params = true;
        out.late_params = false;
        out.params = own;
        out.weight_buffers = work;
    }
    return out;
}
