// identity.c - every worker tells the others its host, its process and its GPU.

#include "train/identity.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "device/device.h"
#include "telemetry/manifest.h"
#include "telemetry/nvml.h"
#include "train/trainer.h"

#include <string.h>
#include <unistd.h>

struct identity { // sent as bytes: no pointers, and padding is zero
    char host[64];
    int64_t pid, has_gpu;
    unsigned char gpu[DEVICE_ID];
};

struct identity *identity_gather(const struct trainer *t)
{
    struct identity mine = {.pid = getpid(),
                            .has_gpu = !device_is_host(t->dev)};
    struct identity *all = mem_alloc((size_t)t->cluster->world, sizeof *all);
    if (!all)
        return NULL;
    if (gethostname(mine.host, sizeof mine.host - 1))
        strcpy(mine.host, "unknown");
    if (mine.has_gpu)
        device_identity(t->dev, mine.gpu);
    if (cluster_allgather(t->cluster, &mine, all, sizeof mine)) {
        mem_free(all);
        return NULL;
    }
    return all;
}

void identity_write(struct manifest *m, const struct identity *all, int world)
{
    char rank[32], uuid[NVML_UUID_TEXT], text[192];
    manifest_begin(m, "workers");
    for (int r = 0; r < world; r++) {
        const struct identity *s = &all[r];
        nvml_uuid_text(uuid, s->gpu);
        snprintf(rank, sizeof rank, "rank %d", r);
        snprintf(text, sizeof text, "host %.63s, pid %lld%s%s", s->host,
                 (long long)s->pid, s->has_gpu ? ", " : "",
                 s->has_gpu ? uuid : "");
        manifest_text(m, rank, text);
    }
    manifest_end(m);
}
