// compressed.c - exchanges compressed gradients on simulated ranks.
//
// The strategy that trains runs here (squeeze/squeezed.c, or zero/zero.c with
// shard=1), for one step. Around the ring every rank must send and receive the
// bytes of the law, by verb. With payload real gradients are compressed. Then
// all ranks must end with the same bits, and what was sent and what is kept
// must add up to all gradients. With shards these are the parameters: SGD with
// a rate of 1 subtracts the sum from 0.

#include "simulate/exchange.h"
#include "simulate/group_simulated.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "config/backends.h"
#include "config/config.h"
#include "model/model.h"
#include "optim/optim.h"
#include "optim/rule.h"
#include "squeeze/scatter.h"
#include "squeeze/travel.h"
#include "sync/members.h"
#include "sync/slots.h"
#include "train/shape.h"
#include "zero/zero.h"

#include <math.h>
#include <string.h>

struct step {
    const struct exchange *e;
    struct model_config model;
    struct sync_settings settings;
    struct cluster cluster;
    struct optim_config optim;
    struct bucket buckets[TRAIN_MAX_BUCKETS];
    struct group_stats law;
    size_t longest; // bytes of the longest message: at least those of a unit
                    // to one member
    struct sync sync;
};

static bool shards(const struct step *t)
{
    return t->sync.job.backend->shards;
}

static int find_law(struct step *t)
{
    const struct exchange *e = t->e;
    struct squeeze_unit *units = NULL;
    int n = shape_units(&t->model, &t->settings, &units);
    for (int i = 0; i < n; i++) {
        struct group_stats one;
        squeezed_bytes(&t->settings, e->world, e->rank, &units[i], 1, &one);
        size_t bytes = one.bytes_out / (size_t)(e->world - 1) + 1;
        t->longest = bytes > t->longest ? bytes : t->longest;
        group_stats_add(&t->law, &one);
    }
    mem_free(units);
    return n < 0 ? -1 : 0;
}

static int find_law_of_shards(struct step *t)
{
    struct bucket *units = NULL;
    struct law_step law = {.world = t->e->world,
                           .micro = 1,
                           .shards = true,
                           .kind = SHARD_STATE,
                           .grain = RULE_BLOCK,
                           .param_bytes = sizeof(float)};
    law.count = shape_shards(&t->model, &t->settings, &units);
    law.cut = units;
    if (law.count > 0 && !shape_scatter(&t->model, &t->settings, &law)) {
        size_t most = members_largest(units, law.count);
        most = group_chunk(most, RULE_BLOCK, law.world, 0).n * sizeof(float);
        t->longest = most > law.messages ? most : law.messages;
        law_step_bytes(&law, t->e->rank, &t->law);
    }
    mem_free(units);
    return t->longest ? 0 : -1;
}

static int cut(struct step *t)
{
    const struct run *r = t->e->run;
    t->model = (struct model_config){.layers = r->layers,
                                     .heads = r->heads,
                                     .channels = r->channels,
                                     .context = r->context,
                                     .vocab = r->vocab_size};
    CHECK(model_nparams(&t->model) == t->e->n);
    t->settings = r->settings;
    t->settings.feedback = t->e->payload;
    t->sync.job.nbuckets =
        shape_buckets(&t->model, &t->settings, t->buckets, TRAIN_MAX_BUCKETS);
    return t->sync.job.nbuckets < 0 || shape_decay(&t->model, &t->optim) ||
                   (shards(t) ? find_law_of_shards(t) : find_law(t))
               ? -1
               : 0;
}

// A message is as long as a chunk, or slice_kb=.
static void divide(struct step *t)
{
    size_t most = t->longest, kb = (most + 1023) / 1024;
    int slice_kb = t->e->slice_kb ? t->e->slice_kb : (int)kb;
    size_t slice = (size_t)slice_kb * 1024;
    t->settings.slice_kb = slice_kb;
    most = slice > most ? slice : most;
    simulated_messages(most, 1, t->e->payload);
    contents_open(t->e, most * (size_t)t->e->world);
}

static int open(struct step *t)
{
    const struct exchange *e = t->e;
    struct sync *s = &t->sync;
    t->cluster = (struct cluster){.rank = e->rank,
                                  .world = e->world,
                                  .timeout_s = NO_DEADLINE_S};
    s->ops = shards(t) ? &sync_zero : &sync_squeezed;
    bool library = s->job.backend->traffic == TRAFFIC_LIBRARY;
    s->carrier = library ? &library_simulated : &ring_simulated;
    s->job.cluster = &t->cluster;
    s->job.n = e->n;
    s->job.buckets = t->buckets;
    s->job.optim = &t->optim;
    s->job.settings = &t->settings;
    s->job.velocity_decay = 1; // of squeeze=demo; it begins at 0
    s->job.grads = gradient_open(e);
    if (shards(t)) {
        t->optim = (struct optim_config){.kind = OPTIM_SGD};
        s->job.params = e->payload ? mem_alloc(e->n, sizeof(float))
                                   : s->job.grads; // nobody reads them
    }
    s->state = mem_alloc(1, s->ops->state_size);
    return s->job.grads && s->state && (!shards(t) || s->job.params)
               ? s->ops->open(s)
               : -1;
}

static int run(struct step *t, double *seconds)
{
    const struct sync_in in = {.step = 1, .lr = 1, .grad_scale = 1};
    struct sync *s = &t->sync;
    struct sync_out out;
    MPI_Barrier(MPI_COMM_WORLD);
    double began = MPI_Wtime();
    for (int b = 0; b < s->job.nbuckets; b++)
        if (s->ops->ready(s, b))
            return -1;
    if (shards(t) ? s->ops->step(s, &in, &out) : s->ops->settle(s))
        return -1;
    *seconds = MPI_Wtime() - began;
    return 0;
}

// ---- checks

// A library reports only what it is given.
static int check_bytes(const struct step *t)
{
    const struct group_stats *is = &t->sync.stats, law = t->law;
    for (int v = 0; v < GROUP_VERBS && !t->sync.carrier->library; v++)
        if (is->out[v] != law.out[v] || is->in[v] != law.in[v])
            return fail("rank %d: %s sends %llu bytes and receives %llu; the "
                        "law says %llu and %llu",
                        t->e->rank, group_verb_name((enum group_verb)v),
                        (unsigned long long)is->out[v],
                        (unsigned long long)is->in[v],
                        (unsigned long long)law.out[v],
                        (unsigned long long)law.in[v]);
    return 0;
}

// Residuals are zero before, so all that a message lacks is in them.
static void find_kept(const struct step *t, float *v)
{
    const struct squeezed *q = t->sync.state;
    memcpy(v, q->residuals.fresh, t->e->n * sizeof *v);
    for (int i = 0; q->way->own && !q->way->all_alike && i < q->nunits; i++) {
        struct bucket own = q->way->own(&t->sync, &q->units[i]);
        for (size_t k = 0; k < own.n; k++)
            v[own.off + k] += q->residuals.own_fresh[q->units[i].own_at + k];
    }
}

// Of a state whose only slots are residuals, as of SGD without momentum.
static int take_kept(void *ctx, int slot, size_t off, float *v, size_t n)
{
    (void)slot;
    memcpy((float *)ctx + off, v, n * sizeof *v);
    return 0;
}

// What is kept, plus on rank 0 what was sent. A momentum of squeeze=demo has no
// sum that would be sent.
static int check_sums(struct step *t)
{
    struct sync *s = &t->sync;
    size_t n = t->e->n;
    if (t->settings.squeeze == SQUEEZE_DEMO)
        return 0;
    float *v = mem_alloc(n, sizeof *v);
    if (!v)
        return -1;
    if (shards(t)) {
        s->ops->updated(s, false);
        CHECK(!s->ops->state->save(s, take_kept, v));
    } else {
        find_kept(t, v);
    }
    for (size_t i = 0; t->e->rank == 0 && i < n; i++)
        v[i] += shards(t) ? -s->job.params[i] : s->job.grads[i];
    MPI_Allreduce(MPI_IN_PLACE, v, (int)n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    for (size_t i = 0; i < n; i++) // messages are rounded
        v[i] = rintf(v[i] * 256) / 256;
    int rc = gradient_check(t->e, v);
    mem_free(v);
    return rc;
}

static int check(struct step *t)
{
    const struct sync_job *job = &t->sync.job;
    const float *sums = shards(t) ? job->params : job->grads;
    if (check_bytes(t))
        return -1;
    return t->e->payload &&
                   (gradient_same(t->e, sums, MPI_COMM_WORLD) || check_sums(t))
               ? -1
               : 0;
}

int exchange_squeezed(const struct exchange *e, double *seconds)
{
    struct step *t = mem_alloc(1, sizeof *t);
    int rc = -1;
    if (!t)
        return -1;
    t->e = e;
    t->sync.job.backend = backend_at(e->backend);
    if (!cut(t)) {
        divide(t);
        rc = open(t) || run(t, seconds) || check(t) ? -1 : 0;
    }
    group_close(&t->sync.group);
    if (t->sync.state)
        t->sync.ops->close(&t->sync);
    mem_free(t->sync.state);
    if (e->payload)
        mem_free(t->sync.job.params);
    if (t->sync.job.grads)
        gradient_close(e, t->sync.job.grads);
    mem_free(t);
    return rc;
}
