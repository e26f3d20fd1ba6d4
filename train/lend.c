// lend.c - gives the model each block when it arrives from other workers.

#include "train/lend.h"

#include "base/base.h"
#include "telemetry/span.h"

// Waits for block b if it is lent, or if the parameters are whole on this
// worker but arrive late.
static int take(void *ctx, int b, bool backward, struct model_place *out)
{
    struct trainer *t = ctx;
    struct sync_place place;
    size_t off, n;
    bool whole = !backward && !t->share.lends_params;
    if (whole ? !t->sync->coming : !t->share.lends_grads)
        return 0;
    model_block(&t->config, b, &off, &n);
    span_begin(t->observe.lane, SPAN_GATHER, b);
    int rc = whole ? sync_await(t->sync, off, n)
                   : sync_take(t->sync, b, backward, &place);
    span_end(t->observe.lane);
    if (rc)
        return -1;
    if (t->share.lends_params)
        out->weights = place.weights;
    if (backward)
        out->grads = place.grads;
    return 0;
}

static int give(void *ctx, int b)
{
    struct trainer *t = ctx;
    return t->share.lends_params ? sync_give(t->sync, b) : 0;
}

struct model_lender lend_blocks(struct trainer *t)
{
    return (struct model_lender){.take = take, .give = give, .ctx = t};
}

int lend_hash(struct trainer *t, uint64_t *hash)
{
    size_t size = dtype_bytes(t->sync->job.format);
    uint64_t both[2] = {0, 0};
    for (int b = 0; b < model_nblocks(&t->config); b++) {
        struct model_place place = {NULL, NULL};
        size_t off, n;
        model_block(&t->config, b, &off, &n);
        if (take(t, b, false, &place))
            return -1;
        both[1] = hash_bytes(t->sync->place.weights, n * size);
        both[0] = hash_bytes(both, sizeof both);
        if (give(t, b))
            return -1;
    }
    *hash = both[0];
    return 0;
}
