// units.c - the ranges of the gradients that are compressed one by one, and
// what a step with them sends and needs.

#include "squeeze/squeezed.h"

#include "base/base.h"
#include "optim/optim.h"
#include "squeeze/cosines.h"
#include "squeeze/power.h"
#include "squeeze/squeeze.h"

// Adds [from, to) to the list, unless it is empty.
static int add(struct squeeze_unit *list, int n, size_t from, size_t to,
               size_t rows)
{
    if (from < to)
        list[n++] = (struct squeeze_unit){from, to - from, rows};
    return n;
}

// From the end of the vector to its start, as backward completes it.
static int cut_tensors(const struct sync_job *job, struct squeeze_unit *list)
{
    const struct optim_config *o = job->optim;
    size_t end = job->n;
    int n = 0;
    for (int i = (int)o->ndecay - 1; i >= 0; i--) {
        const struct optim_range *r = &o->decay[i];
        n = add(list, n, (size_t)(r->off + r->n), end, 0);
        n = add(list, n, (size_t)r->off, (size_t)(r->off + r->n),
                (size_t)r->rows);
        end = (size_t)r->off;
    }
    return add(list, n, 0, end, 0);
}

// Whether units are the model's tensors.
static bool by_tensor(const struct sync_settings *s)
{
    const struct squeeze_ops *ops = squeeze_find(s->squeeze);
    return s->scope == SCOPE_TENSOR || ops->summed || ops->gives_update;
}

int squeezed_units(const struct sync_job *job, struct squeeze_unit **units)
{
    const struct sync_settings *set = job->settings;
    bool tensors = by_tensor(set);
    size_t most =
        tensors ? 2 * (size_t)job->optim->ndecay + 1 : (size_t)job->nbuckets;
    struct squeeze_unit *list = *units = mem_alloc(most, sizeof *list);
    int n = 0;
    if (!list)
        return -1;
    if (tensors)
        return cut_tensors(job, list);
    if (set->scope == SCOPE_MODEL)
        return add(list, 0, 0, job->n, 0);
    for (; n < job->nbuckets; n++)
        list[n] =
            (struct squeeze_unit){job->buckets[n].off, job->buckets[n].n, 0};
    return n;
}

// ---- the law

// The bytes of the message that a worker sends to each other worker.
static size_t message(const struct sync_settings *s, int world,
                      const struct squeeze_unit *u)
{
    struct demo_grid grid = demo_grid(s, u->n, u->rows);
    return squeeze_find(s->squeeze)->gives_update
               ? demo_bytes(&grid)
               : squeeze_message(s, world, u->n);
}

// Adds the all-reduce of n numbers.
static void add_sum(int world, int rank, size_t n, struct group_stats *out)
{
    const struct bucket all = {.n = n};
    struct group_stats one;
    law_step_bytes(&(struct law_step){.world = world,
                                      .cut = &all,
                                      .count = 1,
                                      .grain = 1,
                                      .sum_bytes = sizeof(float)},
                   rank, &one);
    group_stats_add(out, &one);
}

void squeezed_bytes(const struct sync_settings *s, int world, int rank,
                    const struct squeeze_unit *units, int n,
                    struct group_stats *out)
{
    const struct squeeze_ops *ops = squeeze_find(s->squeeze);
    *out = (struct group_stats){0};
    for (int i = 0; i < n; i++) {
        if (ops->summed) {
            struct power_matrix m = power_matrix(s, units[i].n, units[i].rows);
            add_sum(world, rank, m.rank ? power_p(&m) : units[i].n, out);
            add_sum(world, rank, power_q(&m), out);
            continue;
        }
        uint64_t bytes = (uint64_t)(world - 1) * message(s, world, &units[i]);
        group_count(out, GROUP_ALL_GATHER, bytes, bytes);
        if (ops->twice)
            group_count(out, GROUP_ALL_TO_ALL, bytes, bytes);
    }
}

double squeezed_mean(const struct sync_settings *s, int world,
                     const struct squeeze_unit *units, int n,
                     double out[GROUP_VERBS])
{
    double all = 0;
    for (int v = 0; v < GROUP_VERBS; v++)
        out[v] = 0;
    for (int r = 0; r < world; r++) {
        struct group_stats one;
        squeezed_bytes(s, world, r, units, n, &one);
        for (int v = 0; v < GROUP_VERBS; v++)
            out[v] += (double)one.out[v] / world;
        all += (double)one.bytes_out / world;
    }
    return all;
}

int squeezed_law(const struct sync_settings *s, int world,
                 const struct squeeze_unit *units, int n, struct law *out)
{
    const struct squeeze_ops *ops = squeeze_find(s->squeeze);
    double verbs[GROUP_VERBS], params = 0, passes = 0;
    int follow = by_tensor(s) ? n : 1;
    for (int i = 0; i < n; i++) {
        bool sums = power_matrix(s, units[i].n, units[i].rows).rank > 0;
        params += (double)units[i].n;
        passes += !ops->summed ? 1 : sums ? 4 : 2;
    }
    double bytes = squeezed_mean(s, world, units, n, verbs);
    double parts = ops->twice && !ops->summed; // all at once
    out->hops = parts + passes * follow / n * (world - 1);
    out->share = bytes / (sizeof(float) * params);
    return follow;
}

// ---- memory

size_t squeezed_memory(const struct sync_settings *s, int world,
                       const struct squeeze_unit *units, int n)
{
    const struct squeeze_ops *ops = squeeze_find(s->squeeze);
    size_t w = (size_t)world, bytes = 0, most = 0;
    for (int i = 0; i < n; i++) {
        const struct squeeze_unit *u = &units[i];
        struct power_matrix m = power_matrix(s, u->n, u->rows);
        size_t parts = ops->twice && s->feedback ? 2 * (u->n / w) : 0;
        bytes += ops->summed ? (power_p(&m) + 2 * power_q(&m)) * sizeof(float)
                             : (1 + ops->twice) * w * message(s, world, u) +
                                   parts * sizeof(float);
        most = u->n > most ? u->n : most;
    }
    return bytes + most * sizeof(float) +
           (ops->scratch ? ops->scratch(most) : 0);
}
