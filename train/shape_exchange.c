// shape_exchange.c - what of a model is exchanged: its blocks, the buckets of
// its gradients, the ranges that are compressed one by one, and the bytes of
// their messages.

#include "train/shape.h"

#include "base/base.h"
#include "config/backends.h"
#include "config/settings.h"
#include "model/model.h"
#include "optim/optim.h"
#include "optim/rule.h"
#include "ps_wire/shard.h"
#include "squeeze/scatter.h"
#include "squeeze/squeeze.h"
#include "squeeze/squeezed.h"
#include "sync/bucket.h"
#include "sync/sync.h"

#include <math.h>

int shape_blocks(const struct model_config *c, struct bucket *out, int most)
{
    int n = 0;
    CHECK(model_nblocks(c) <= most);
    for (int b = model_nblocks(c) - 1; b >= 0; b--) {
        model_block(c, b, &out[n].off, &out[n].n);
        n += out[n].n > 0; // a stage has only some of the blocks
    }
    return n;
}

int shape_buckets(const struct model_config *c, const struct sync_settings *s,
                  struct bucket *out, int most)
{
    const double elements = 1024 * 1024 / sizeof(float);
    if (s->bucket == BUCKET_BLOCK)
        return shape_blocks(c, out, most);
    size_t n = model_nparams(c), size = (size_t)ceil(s->bucket_mb * elements);
    return bucket_cut(out, most, n, bucket_first(n, size), size);
}

int shape_decay(const struct model_config *c, struct optim_config *o)
{
    o->ndecay = 0;
    for (int i = 0; i < model_ntensors(c); i++) {
        struct tensor tensor;
        model_tensor(c, i, &tensor);
        if (!tensor.decay || !tensor.n)
            continue;
        if (o->ndecay == OPTIM_MAX_DECAY)
            return fail("layers=%d: more matrices than the optimiser's %d; "
                        "try: fewer layers",
                        c->layers, OPTIM_MAX_DECAY);
        o->decay[o->ndecay++] =
            (struct optim_range){tensor.off, tensor.n, tensor.shape[0]};
    }
    return 0;
}

int shape_units(const struct model_config *c, const struct sync_settings *s,
                struct squeeze_unit **units)
{
    struct bucket *buckets = mem_alloc(TRAIN_MAX_BUCKETS, sizeof *buckets);
    struct optim_config *optim = mem_alloc(1, sizeof *optim);
    struct sync_job job = {.n = model_nparams(c),
                           .buckets = buckets,
                           .optim = optim,
                           .settings = s};
    int n = -1;
    if (buckets && optim && !shape_decay(c, optim))
        n = job.nbuckets = shape_buckets(c, s, buckets, TRAIN_MAX_BUCKETS);
    if (n >= 0)
        n = squeezed_units(&job, units);
    mem_free(buckets);
    mem_free(optim);
    return n;
}

int shape_shards(const struct model_config *c, const struct sync_settings *s,
                 struct bucket **units)
{
    struct bucket *buckets = mem_alloc(TRAIN_MAX_BUCKETS, sizeof *buckets);
    int n = buckets ? shape_buckets(c, s, buckets, TRAIN_MAX_BUCKETS) : -1;
    if (n >= 0)
        n = bucket_align(units, buckets, n, RULE_BLOCK);
    mem_free(buckets);
    return n;
}

int shape_scatter(const struct model_config *c, const struct sync_settings *s,
                  struct law_step *step)
{
    struct bucket *units = NULL;
    if (!s->squeeze)
        return 0;
    int n = shape_shards(c, s, &units);
    if (n >= 0)
        step->messages = (s->shard < SHARD_GRADS ? 1 : (size_t)step->micro) *
                         scatter_bytes(s, step->world, units, n);
    mem_free(units);
    return n < 0 ? -1 : 0;
}

double shape_messages(const struct model_config *c,
                      const struct sync_settings *s)
{
    size_t n = model_nparams(c);
    int servers = s->servers.count;
    double bytes = 0;
    for (int i = 0; i < servers; i++) {
        struct shard shard;
        size_t slice = shard_width(n, servers, s->slice_kb);
        if (shard_make(&shard, n, slice, servers, i))
            return NAN;
        for (int r = 0; r < shard_rows(&shard); r++)
            bytes += (double)squeeze_find(s->squeeze)
                         ->bytes(s, shard_slice(&shard, r).n);
    }
    return bytes;
}

// A server answers topk with the union of all entries: as many as all workers
// have sent, if no two are the same, but never more than the gradients.
static void serve(const struct model_config *c, const struct sync_settings *s,
                  int replicas, int apart, struct law *out)
{
    double sent =
        shape_messages(c, s) / (sizeof(float) * (double)model_nparams(c));
    double back =
        squeeze_find(s->squeeze)->twice ? sent : fmin(1, sent * replicas);
    *out = apart ? law_servers(replicas, apart, false) : law_shards(replicas);
    // of a server's link only the busier direction counts; a host with a server
    // sends messages and answers
    out->share *= apart ? back : (sent + back) / 2;
}

// With shard=1 and one micro-batch, whose parameters are gathered in fp32.
static int shard(const struct model_config *c, const struct sync_settings *s,
                 int replicas, struct law *out)
{
    struct bucket all = {.n = model_nparams(c)};
    struct law_step step = {.world = replicas,
                            .micro = 1,
                            .shards = true,
                            .kind = SHARD_STATE,
                            .cut = &all,
                            .count = 1,
                            .grain = RULE_BLOCK,
                            .param_bytes = sizeof(float)};
    double verbs[GROUP_VERBS];
    if (shape_scatter(c, s, &step))
        return -1;
    out->hops = law_step_hops(&step);
    out->share = law_step_mean(&step, verbs) / (sizeof(float) * (double)all.n);
    return 1;
}

int shape_squeezed_law(const struct model_config *c, const struct backend *b,
                       const struct sync_settings *s, int replicas, int apart,
                       struct law *out)
{
    struct squeeze_unit *units = NULL;
    if (b->shards)
        return shard(c, s, replicas, out);
    if (b->servers) {
        serve(c, s, replicas, b->servers == 1 ? 1 : apart, out);
        return 1;
    }
    int n = shape_units(c, s, &units);
    if (n >= 0)
        n = squeezed_law(s, replicas, units, n, out);
    mem_free(units);
    return n;
}
