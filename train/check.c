// check.c - a gradient that is not finite is named; replicas are one.

#include "train/check.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "train/lend.h"
#include "train/place.h"

#include <math.h>
#include <unistd.h>

enum { MAX_SKIPS = 20 }; // in a row: scaling the loss does not help

// fail() with the tensor of the first element that is not finite, of elements
// [off, off + n) of a gradient. 0 where all are.
static int blame(const struct trainer *t, size_t off, const float *grads,
                 size_t n)
{
    struct tensor tensor = {.n = 0};
    size_t k = 0;
    while (k < n && isfinite(grads[k]))
        k++;
    if (k == n)
        return 0;
    for (int i = 0; tensor.off + tensor.n <= off + k; i++)
        model_tensor(&t->config, i, &tensor);
    return fail("step %d: the gradient of %s is %g at element %zu; try: a "
                "smaller lr, or look at the data",
                t->step + 1, tensor.name, (double)grads[k],
                off + k - tensor.off);
}

static int blame_range(void *ctx, int what, size_t off, float *grads, size_t n)
{
    (void)what;
    return blame(ctx, off, grads, n);
}

// The first tensor whose gradient is not finite, for the message that stops the
// run: behind a stage in the host's copies, if they were sent. Where the sum
// is not left with everybody (servers, zero), only some workers' gradients show
// it; the others wait a second, so that theirs is heard first.
static int blame_tensor(struct trainer *t)
{
    if (t->share.lends_grads) {
        if (sync_ranges(t->sync, SYNC_GRADS, blame_range, t))
            return -1;
    } else {
        bool host = t->sync->copies && !t->sync->ops->merge;
        const float *grads =
            host ? t->sync->job.grads : place_read(t, t->grads);
        if (!grads || blame(t, 0, grads, model_nparams(&t->config)))
            return -1;
    }
    sleep(1);
    return fail("step %d: the sum of all gradients is not finite, but this "
                "worker's is; try: the line of a worker that names a tensor, "
                "a smaller lr, or look at the data",
                t->step + 1);
}

int check_skip(struct trainer *t, int *skips)
{
    if (!t->scaling)
        return blame_tensor(t);
    log_line("step %d: the gradient overflows at loss scale %g, skipped",
             t->step + 1, (double)t->scale.scale);
    if (++*skips < MAX_SKIPS)
        return 0;
    int rc = blame_tensor(t);
    log_line("%d steps in a row were skipped", MAX_SKIPS);
    return rc;
}

// Of what the model multiplies by.
static int hash_params(struct trainer *t, uint64_t *hash)
{
    size_t n = model_nparams(&t->config);
    if (t->share.lends_params)
        return lend_hash(t, hash);
    if (sync_await(t->sync, 0, n))
        return -1;
    const struct half_copy *copy =
        t->sync->copy_only ? model_copy(t->model) : NULL;
    const void *params = copy ? copy->at : place_read(t, t->params);
    if (!params)
        return -1;
    enum dtype format = copy ? copy->format : DTYPE_F32;
    *hash = hash_bytes(params, n * dtype_bytes(format));
    return 0;
}

int check_replicas(struct trainer *t)
{
    uint64_t mine;
    if (hash_params(t, &mine))
        return -1;
    uint64_t *all = mem_alloc((size_t)t->members->world, sizeof *all);
    int rc = all ? cluster_allgather(t->members, &mine, all, sizeof mine) : -1;
    for (int r = 1; !rc && r < t->members->world; r++)
        if (all[r] != all[0])
            rc = fail("step %d: the parameters of rank %d are not those of "
                      "rank %d (hash %016llx, %016llx)",
                      t->step, cluster_job_rank(t->members->ranks, r),
                      cluster_job_rank(t->members->ranks, 0),
                      (unsigned long long)all[r], (unsigned long long)all[0]);
    mem_free(all);
    return rc;
}
