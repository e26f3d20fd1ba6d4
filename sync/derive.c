// derive.c - the settings of a backend that nobody asked for.

#include "sync/derive.h"

#include "config/backends.h"
#include "sync/bucket.h"

// Sums can come back in 16 bits, while parameters would lose by it; only whole
// rounds of all workers make such sums.
static enum updater usual_updater(const struct sync_settings *s)
{
    bool narrow = s->wire != DTYPE_F32;
    bool whole =
        s->consistency.kind == CONSISTENCY_BSP && !s->backup && !s->elastic;
    return narrow && whole ? UPDATER_WORKER : UPDATER_SERVER;
}

void sync_derive(struct sync_settings *s, const struct backend *b, int world,
                 size_t n)
{
    const double mib = 1048576;
    double fusion_mb = 0.25 * world;
    if (s->bucket_mb == 0 && n > 0)
        s->bucket_mb = (double)(bucket_usual(n) * sizeof(float)) / mib;
    if (!backend_reads(b, "fusion_mb"))
        s->fusion_mb = 0;
    else if (s->fusion_mb == 0)
        s->fusion_mb = fusion_mb > 1 ? fusion_mb : 1;
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

size_t sync_state_elements(const struct sync_settings *s,
                           const struct backend *b, int world, size_t n)
{
    if (s->update == UPDATER_SERVER)
        return 0;
    size_t shards = b->shards ? (size_t)world : 1;
    return (n + shards - 1) / shards;
}
