// batch.c - settings that follow from the number of workers.

#include "config/config.h"

#include "base/base.h"

#include <math.h>

// global_batch / times; -1 after fail() if there is a remainder. `key` is the
// setting that is sought.
static int rest_of(const struct run *r, int64_t times, const char *key)
{
    if (r->global_batch % times == 0)
        return (int)(r->global_batch / times);
    return fail("global_batch=%d is no multiple of %lld, so that no %s= gives "
                "it; try: global_batch=%lld",
                r->global_batch, (long long)times, key,
                (long long)((r->global_batch / times + 1) * times));
}

int config_settle_batch(struct run *r, int replicas)
{
    if (!r->global_batch)
        return 0;
    bool batch = config_asked(r, "batch"), accum = config_asked(r, "accum");
    if (batch && !accum)
        r->accum = rest_of(r, (int64_t)r->batch * replicas, "accum");
    else if (!batch)
        r->batch = rest_of(r, (int64_t)r->accum * replicas, "batch");
    else if ((int64_t)r->batch * r->accum * replicas != r->global_batch)
        return fail("global_batch=%d is not batch=%d times accum=%d times %d "
                    "replicas; try: leave one of them out",
                    r->global_batch, r->batch, r->accum, replicas);
    return r->batch < 0 || r->accum < 0 ? -1 : 0;
}

double config_lr_factor(enum lr_scale scale, double batch, double base)
{
    return scale == LR_SCALE_LINEAR ? batch / base
           : scale == LR_SCALE_SQRT ? sqrt(batch / base)
                                    : 1;
}
