// strategy.c - runs one step of a strategy over our ring, on a virtual cluster.
//
// The code that runs is sync.c, the strategy of the backend's row, and the
// ring. The rule is p := p + g. The parameters are 0 before, so the new
// parameters are the sums of the gradients.

#include "explain/ways.h"

#include "base/base.h"
#include "cluster/virtual_cluster.h"
#include "config/backends.h"
#include "config/config.h"
#include "device/device.h"
#include "horovod_ring/carriers.h"
#include "optim/optim.h"
#include "optim/segment.h"
#include "sync/derive.h"
#include "sync/sync.h"
#include "train/ways.h"

struct step {
    struct story *story;
    const struct backend *backend;
};

enum { GRADS, PARAMS };

// A strategy that exchanges parameters makes each parameter a mean. Makes it
// the sum again, which shows a reader whose numbers are in it.
static void undo_mean(struct sync *sync, int workers)
{
    for (size_t i = 0; i < sync->job.n; i++)
        sync->job.params[i] *= (float)workers;
}

static int take_step(struct story *s, struct sync *sync)
{
    bool apart = sync->job.backend->apart;
    const struct sync_in in = {.step = 1,
                               .lr = -1,
                               .grad_scale = apart ? 1 / (float)s->workers : 1};
    struct sync_out out;
    int rank = sync->job.cluster->rank;
    const float *vectors[] = {apart ? sync->job.params : sync->job.grads,
                              sync->job.params};
    for (int k = 0; k < s->nvectors; k++)
        if (story_before(s, k, rank, vectors[k]))
            return -1;
    if (sync_ready(sync, 0) || sync_step(sync, &in, &out))
        return -1;
    if (apart)
        undo_mean(sync, s->workers);
    for (int k = 0; k < s->nvectors; k++)
        if (story_after(s, k, rank, vectors[k]))
            return -1;
    float sum = way_number(s->workers) - 1;
    for (size_t i = 0; i < sync->job.n; i++)
        if (sync->job.params[i] != sum)
            return fail("explain: parameter %zu of rank %d is %g, not the sum "
                        "%g",
                        i, rank, (double)sync->job.params[i], (double)sum);
    return 0;
}

static int worker(struct virtual_rank *r, void *arg)
{
    static const struct group_ops *const carriers[] = {&ring_virtual, NULL};
    const struct step *step = arg;
    struct story *s = step->story;
    size_t n = s->vectors[0].n;
    struct cluster cluster = cluster_virtual(r, s->workers, 0);
    struct sync_settings settings;
    const struct bucket all = {0, n};
    const struct optim_config optim = {.kind = OPTIM_SGD};
    struct sync_job job = {.backend = step->backend,
                           .carriers = carriers,
                           .cluster = &cluster,
                           .n = n,
                           .buckets = &all,
                           .nbuckets = 1,
                           .optim = &optim,
                           .settings = &settings};
    settings_defaults(&settings);
    settings.every = 1; // this step exchanges
    sync_derive(&settings, step->backend, s->workers, n);
    if (device_open(&job.dev, "cpu"))
        return -1;
    job.params = device_alloc(job.dev, n, sizeof(float));
    job.grads = device_alloc(job.dev, n, sizeof(float));
    for (size_t i = 0; job.grads && i < n; i++)
        job.grads[i] = way_number(cluster.rank);
    struct sync *sync = NULL;
    int rc = -1;
    if (job.params && job.grads)
        sync = sync_open(way_find(step->backend)->strategy, &job);
    if (sync)
        rc = take_step(s, sync);
    sync_close(&sync);
    device_free(job.dev, job.params);
    device_free(job.dev, job.grads);
    device_close(&job.dev);
    return rc;
}

// Each other worker sends worker 0 the vector and a loss, and gets the vector
// and the norm back. So worker 0's link carries as much as those of all others
// together.
static void set_owner_law(struct story *s)
{
    const struct law law = law_owner(s->workers, true);
    size_t bytes = s->vectors[0].n * sizeof(float);
    for (int r = 0; r < s->workers; r++) {
        size_t times = r ? 1 : (size_t)s->workers - 1;
        s->law[OUT][r] = s->law[IN][r] = times * (bytes + sizeof(double));
    }
    s->law_s = law_seconds(&law, &s->link, (double)(bytes + sizeof(double)));
}

// The two halves of the ring, and the norm of a step with shards.
static void set_law(struct story *s, const struct backend *b)
{
    const struct law ring = law_ring(s->workers);
    size_t n = s->vectors[0].n;
    for (int r = 0; r < s->workers; r++)
        for (int d = 0; d < 2; d++) {
            const struct plan p = {r, s->workers, b->shards ? RULE_BLOCK : 1};
            struct group_op op = {.verb = GROUP_ALL_REDUCE, .vector.n = n};
            enum direction way = (enum direction)d;
            s->law[d][r] = plan_elements(&p, &op, way) * sizeof(float);
            op.vector.n = segment_blocks(n);
            if (b->shards)
                s->law[d][r] += plan_elements(&p, &op, way) * sizeof(double);
        }
    s->law_s = law_seconds(&ring, &s->link, (double)n * sizeof(float));
    // There are so few sums of squares that they are a single chunk, which goes
    // round the ring twice.
    const struct law norm = {ring.hops, ring.hops};
    if (b->shards)
        s->law_s += law_seconds(&norm, &s->link,
                                (double)segment_blocks(n) * sizeof(double));
}

int way_strategy(struct story *s, const struct backend *b)
{
    struct step step = {s, b};
    s->vectors[GRADS].name = b->apart ? "parameters" : "gradients";
    s->vectors[GRADS].updates = b->apart;
    s->vectors[PARAMS] = (struct story_vector){.name = "parameters",
                                               .n = s->vectors[0].n,
                                               .updates = true};
    bool owner = b->traffic == TRAFFIC_OWNER;
    s->nvectors = b->shards || owner ? 2 : 1;
    if (b->shards || owner)
        s->other = owner ? "a loss, or the gradient's norm"
                         : "sums of squares, for the norm of the gradient";
    text_into(s->note, sizeof s->note, "%s: %s.%s", b->name, b->help,
              owner ? " All others send their gradients to worker 0. It adds "
                      "them, updates, and sends the parameters to all."
              : b->shards
                  ? " Each worker receives the sum of its own chunk and "
                    "updates that chunk. Then the updated chunks are sent "
                    "round the ring. A chunk has whole blocks of 4096 "
                    "elements."
              : b->apart
                  ? " Every worker has updated its own parameters. They are "
                    "summed as the ring sums gradients, and each worker "
                    "divides the sum by their number."
                  : " Each worker adds its numbers to a chunk from its left "
                    "and sends it to its right. The complete sums go round "
                    "the ring once more.");
    if (story_run(s, 0, worker, &step))
        return -1;
    if (owner)
        set_owner_law(s);
    else
        set_law(s, b);
    return 0;
}
