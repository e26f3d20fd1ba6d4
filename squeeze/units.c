// units.c - the ranges of the gradients that are compressed one by
// one, and the bytes of a step.

#include "squeeze/squeezed.h"

#include "base/base.h"
#include "squeeze/squeeze.h"

#include <string.h>

// Adds [from, to) to the list, unless it is empty.
static int add(struct bucket *list, int n, size_t from, size_t to)
{
    if (from < to)
        list[n++] = (struct bucket){.off = from, .n = to - from};
    return n;
}

// From the end of the vector to its start, as backward completes it.
static int cut_tensors(const struct sync_job *job, struct bucket *list)
{
    const struct optim_config *o = job->optim;
    size_t end = job->n;
    int n = 0;
    for (int i = (int)o->ndecay - 1; i >= 0; i--) {
        size_t off = (size_t)o->decay[i].off, len = (size_t)o->decay[i].n;
        n = add(list, n, off + len, end);
        n = add(list, n, off, off + len);
        end = off;
    }
    return add(list, n, 0, end);
}

int squeezed_units(const struct sync_job *job, struct bucket **units)
{
    enum squeeze_scope scope = job->settings->scope;
    size_t most = scope == SCOPE_TENSOR ? 2 * (size_t)job->optim->ndecay + 1
                                        : (size_t)job->nbuckets;
    struct bucket *list = *units = mem_alloc(most, sizeof *list);
    if (!list)
        return -1;
    if (scope == SCOPE_TENSOR)
        return cut_tensors(job, list);
    if (scope == SCOPE_MODEL)
        return add(list, 0, 0, job->n);
    memcpy(list, job->buckets, most * sizeof *list);
    return job->nbuckets;
}

uint64_t squeezed_bytes(const struct sync_settings *s, int world,
                        const struct bucket *units, int n)
{
    uint64_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += squeeze_bytes(s, world, units[i].n);
    return bytes;
}
