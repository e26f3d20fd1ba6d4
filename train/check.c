// check.c - a gradient that is not finite is named; replicas are one.

#include "train/check.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "train/place.h"

#include <math.h>
#include <unistd.h>

enum { MAX_SKIPS = 20 }; // in a row: scaling the loss does not help

// The first tensor whose gradient is not finite, for the message that stops the
// run: behind a stage in the host's copies, which the sum is left in. Where it
// is not left with everybody (servers, zero), only some workers' gradients show
// it; the others leave them the first word.
static int blame_tensor(const struct trainer *t)
{
    const float *grads =
        t->sync->stage ? t->sync->job.grads : place_read(t, t->grads);
    if (!grads)
        return -1;
    for (int i = 0; i < model_ntensors(&t->config); i++) {
        struct tensor tensor;
        model_tensor(&t->config, i, &tensor);
        for (size_t k = 0; k < tensor.n; k++) {
            float g = grads[tensor.off + k];
            if (!isfinite(g))
                return fail("step %d: the gradient of %s is %g at element %zu; "
                            "try: a smaller lr, or look at the data",
                            t->step + 1, tensor.name, (double)g, k);
        }
    }
    sleep(1);
    return fail("step %d: the sum of all gradients is not finite, but this "
                "worker's is; try: the line of a worker that names a tensor, "
                "a smaller lr, or look at the data",
                t->step + 1);
}

int check_skip(const struct trainer *t, int *skips)
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

// The same hash of what the model multiplies by, on every worker.
int check_replicas(const struct trainer *t)
{
    const struct half_copy *copy =
        t->sync->copy_only ? model_copy(t->model) : NULL;
    const void *params = copy ? copy->at : place_read(t, t->params);
    if (!params)
        return -1;
    size_t bytes = model_nparams(&t->config) *
                   dtype_bytes(copy ? copy->format : DTYPE_F32);
    uint64_t mine = hash_bytes(params, bytes);
    uint64_t *all = mem_alloc((size_t)t->members->world, sizeof *all);
    int rc = all ? cluster_allgather(t->members, &mine, all, sizeof mine) : -1;
    for (int r = 1; !rc && r < t->members->world; r++)
        if (all[r] != all[0])
            rc = fail("step %d: the parameters of rank %d are not those of "
                      "rank 0 (hash %016llx, %016llx)",
                      t->step, r, (unsigned long long)all[r],
                      (unsigned long long)all[0]);
    mem_free(all);
    return rc;
}
