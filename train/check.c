// check.c - names a gradient that is not finite; checks that replicas agree.

#include "train/check.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "device/device.h"
#include "device/vector.h"
#include "model/part.h"
#include "train/lend.h"
#include "train/place.h"
#include "train/stages.h"

#include <math.h>
#include <unistd.h>

enum { MAX_SKIPS = 20 }; // in a row: scaling the loss does not help

// Looks for the first element that is not finite in grads, which are elements
// [off, off + n) of a gradient. Returns 0 if there is none, else -1 after
// fail() that names its tensor.
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

// Fails with the first tensor whose gradient is not finite. It reads the host
// copies, if those were sent. Where not every worker has the sum (servers,
// zero), only some workers see the bad element; the others wait a second, so
// that the supervisor sees the message with the tensor's name first.
static int blame_tensor(struct trainer *t)
{
    if (t->share.lends_grads) {
        if (sync_ranges(t->sync, SYNC_GRADS, blame_range, t))
            return -1;
    } else {
        bool host = t->sync->copies && !t->sync->ops->merge;
        const float *grads =
            host ? t->sync->job.grads : place_read(t, t->grads);
        if (blame(t, 0, grads, model_nparams(&t->config)))
            return -1;
    }
    sleep(1);
    return fail("step %d: the sum of all gradients is not finite, but the "
                "gradient of this worker is; try: read the error of the worker "
                "that names a tensor, a smaller lr, or look at the data",
                t->step + 1);
}

int check_skip(struct trainer *t)
{
    if (!t->scaling)
        return blame_tensor(t);
    log_line("step %d: the gradient overflows at loss scale %g, skipped",
             t->step + 1, (double)t->scale.scale);
    if (++t->skips < MAX_SKIPS)
        return 0;
    int rc = blame_tensor(t);
    log_line("%d steps in a row were skipped", MAX_SKIPS);
    return rc;
}

// The weights that the model multiplies by, in host memory unless they are the
// model's 16-bit copy; *bytes is the size of one. NULL after fail().
static const void *find_params(struct trainer *t, size_t *bytes)
{
    if (sync_await(t->sync, 0, model_nparams(&t->config)))
        return NULL;
    const struct half_copy *copy =
        t->sync->copy_only ? model_copy(t->model) : NULL;
    *bytes = dtype_bytes(copy ? copy->format : DTYPE_F32);
    return copy ? copy->at : place_read(t, t->params);
}

// Fails if members 0, each, 2 each .. do not have the same hash `mine`, and
// says which ranks' `what` differ.
static int check_hash(const struct trainer *t, struct cluster *members,
                      int each, uint64_t mine, const char *what)
{
    CHECK(each > 0);
    uint64_t *all = mem_alloc((size_t)members->world, sizeof *all);
    int rc = all ? cluster_allgather(members, &mine, all, sizeof mine) : -1;
    for (int r = each; !rc && r < members->world; r += each)
        if (all[r] != all[0])
            rc = fail("step %d: the %s of rank %d are not those of rank %d "
                      "(hash %016llx, %016llx)",
                      t->step, what, cluster_job_rank(members->ranks, r),
                      cluster_job_rank(members->ranks, 0),
                      (unsigned long long)all[r], (unsigned long long)all[0]);
    mem_free(all);
    return rc;
}

// All slices must have the same values of the tensors that are not divided.
static int check_slices(const struct trainer *t, const char *params,
                        size_t bytes)
{
    uint64_t hash = 0;
    if (!t->row)
        return 0;
    for (int i = 0; i < model_ntensors(&t->config); i++) {
        struct tensor tensor;
        model_tensor(&t->config, i, &tensor);
        if (!part_divides(&t->config, i))
            hash =
                hash_more(hash, params + tensor.off * bytes, tensor.n * bytes);
    }
    return check_hash(t, t->row, 1, hash, "undivided parameters");
}

// The first and the last stage must have the same table.
static int check_tied(const struct trainer *t, const void *params, size_t bytes)
{
    return t->line ? check_hash(t, t->line, t->line->world - 1,
                                hash_bytes(params, stages_tied(t) * bytes),
                                "rows of wte")
                   : 0;
}

// The model multiplies by the 16-bit copy of its parameters, so that must be
// what they round to.
static int check_copy(struct trainer *t, const float *params)
{
    enum { BLOCK = 4096 };
    uint16_t want[BLOCK], have[BLOCK];
    const struct half_copy *copy = model_copy(t->model);
    size_t n = copy ? model_nparams(&t->config) : 0, k = 0;
    for (size_t off = 0; off < n; off += BLOCK) {
        size_t some = n - off < BLOCK ? n - off : BLOCK;
        vector_cast(want, copy->format, params + off, DTYPE_F32, some);
        device_copy(t->dev, have, (const uint16_t *)copy->at + off,
                    some * sizeof *have);
        while (k < off + some && want[k - off] == have[k - off])
            k++;
        if (k < off + some)
            return fail("step %d: the 16-bit copy of parameter %zu is not what "
                        "%.9g rounds to",
                        t->step, k, (double)params[k]);
    }
    return 0;
}

int check_replicas(struct trainer *t)
{
    size_t bytes, n = model_nparams(&t->config);
    uint64_t hash;
    if (t->share.lends_params)
        return lend_hash(t, &hash)
                   ? -1
                   : check_hash(t, t->members, 1, hash, "parameters");
    const void *params = find_params(t, &bytes);
    if (!params)
        return -1;
    hash = hash_bytes(params, n * bytes);
    return (!t->sync->copy_only && check_copy(t, params)) ||
                   check_hash(t, t->members, 1, hash, "parameters") ||
                   check_slices(t, params, bytes) ||
                   check_tied(t, params, bytes)
               ? -1
               : 0;
}
