// place.c - opens this worker's device and allocates its vectors.

#include "train/place.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "config/backends.h"
#include "device/busy.h"
#include "device/device.h"

#include <string.h>
#include <unistd.h>

enum { HOST_NAME = 64 };

// *out: how many workers of a lower rank are on this host. The workers of a
// host take its GPUs in turn.
static int rank_on_host(const struct trainer *t, int *out)
{
    char name[HOST_NAME] = "";
    int world = t->cluster->world, count = 0;
    if (world == 1) {
        *out = 0;
        return 0;
    }
    char(*names)[HOST_NAME] = mem_alloc((size_t)world, sizeof *names);
    if (!names)
        return -1;
    gethostname(name, sizeof name - 1);
    int rc = cluster_allgather(t->cluster, name, names, sizeof name);
    for (int r = 0; !rc && r < t->cluster->rank; r++)
        count += !memcmp(names[r], name, sizeof name);
    mem_free(names);
    *out = count;
    return rc;
}

int place_open(struct trainer *t)
{
    int nth = 0;
    if (strcmp(t->run.device, "cpu") && rank_on_host(t, &nth))
        return -1;
    return device_open_nth(&t->dev, t->run.device, nth);
}

int place_vectors(struct trainer *t)
{
    size_t n = model_nparams(&t->config);
    const struct sync_share *share = &t->share;
    // If workers exchange parameters, they also read each other's parameters,
    // so these must be in shared memory.
    if (!share->lends_params)
        t->params = (t->backend->shards || t->backend->apart
                         ? device_alloc_shared
                         : device_alloc)(t->dev, n, sizeof(float));
    if (!share->lends_grads)
        t->grads = device_alloc_shared(t->dev, n, sizeof(float));
    if (device_is_host(t->dev))
        t->host = t->params;
    else if (!share->lends_params)
        t->host = mem_alloc(n, sizeof(float));
    bool params = share->lends_params || (t->params && t->host);
    return params && (share->lends_grads || t->grads) ? 0 : -1;
}

void place_close(struct trainer *t)
{
    if (!t->dev)
        return;
    if (t->host != t->params)
        mem_free(t->host);
    device_free(t->dev, t->params);
    device_free(t->dev, t->grads);
    device_event_close(t->dev, &t->computed);
    busy_close(t->dev);
    device_close(&t->dev);
}

const float *place_read(const struct trainer *t, const float *vector)
{
    size_t n = model_nparams(&t->config);
    if (device_is_host(t->dev))
        return vector;
    device_copy(t->dev, t->host, vector, n * sizeof *vector);
    return t->host;
}

void place_write_params(struct trainer *t)
{
    if (t->host != t->params)
        device_copy(t->dev, t->params, t->host,
                    model_nparams(&t->config) * sizeof(float));
}
