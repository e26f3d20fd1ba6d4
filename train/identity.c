// identity.c - every worker tells the others its host, its process and its GPU.

#include "train/identity.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "device/device.h"
#include "telemetry/align.h"
#include "telemetry/manifest.h"
#include "telemetry/nvml.h"
#include "train/trainer.h"

#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

struct identity { // sent as bytes: no pointers, and padding is zero
    char host[64];
    int64_t pid, has_gpu;
    uint64_t machine; // 0: not known
    cpu_set_t cores;  // that the process may use
    unsigned char gpu[DEVICE_ID];
};

struct identity *identity_gather(const struct trainer *t)
{
    struct identity mine = {.pid = getpid(),
                            .has_gpu = !device_is_host(t->dev),
                            .machine = align_host()};
    struct identity *all = mem_alloc((size_t)t->cluster->world, sizeof *all);
    if (!all)
        return NULL;
    if (gethostname(mine.host, sizeof mine.host - 1))
        strcpy(mine.host, "unknown");
    if (sched_getaffinity(0, sizeof mine.cores, &mine.cores))
        CPU_ZERO(&mine.cores);
    if (mine.has_gpu)
        device_identity(t->dev, mine.gpu);
    if (cluster_allgather(t->cluster, &mine, all, sizeof mine)) {
        mem_free(all);
        return NULL;
    }
    return all;
}

int identity_first(const struct identity *all)
{
    int rank = 0;
    while (!all[rank].pid)
        rank++;
    return rank;
}

// Whether no two workers of one machine may use the same core.
static bool own_cores(const struct identity *all, int world)
{
    for (int a = 0; a < world; a++)
        for (int b = 0; b < a; b++) {
            cpu_set_t both;
            CPU_AND(&both, &all[a].cores, &all[b].cores);
            if (all[a].machine == all[b].machine && CPU_COUNT(&both))
                return false;
        }
    return true;
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
    manifest_bool(m, "own_cores", own_cores(all, world));
}
