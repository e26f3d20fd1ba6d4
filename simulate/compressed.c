// compressed.c - exchanges compressed gradients on simulated ranks.
//
// The strategy that trains runs here (squeeze/squeezed.c), for one step. Around
// the ring every rank must send and receive the bytes of the law, by verb. With
// payload real gradients are compressed. Then all ranks must end with the same
// bits, and what was sent and what is kept must add up to all gradients.

#include "simulate/exchange.h"
#include "simulate/group_simulated.h"
#include "simulate/streams_mpi.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "config/backends.h"
#include "config/config.h"
#include "horovod_ring/streams.h"
#include "model/model.h"
#include "optim/optim.h"
#include "squeeze/travel.h"
#include "sync/slots.h"
#include "train/shape.h"

#include <math.h>
#include <mpi.h>
#include <string.h>

// Deadlines are in real time, and off here (ring.c).
static const double no_deadline_s = 1e6;

// The state is never saved (squeeze/residual_slots.c).
const struct sync_state_ops slots_of_rule;

struct step {
    const struct exchange *e;
    struct model_config model;
    struct sync_settings settings;
    struct cluster cluster;
    struct optim_config optim;
    struct bucket buckets[TRAIN_MAX_BUCKETS];
    struct squeeze_unit *units;
    int nunits;
    struct sync sync;
};

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
    t->nunits = shape_units(&t->model, &t->settings, &t->units);
    return t->nunits < 0 || t->sync.job.nbuckets < 0 ||
                   shape_decay(&t->model, &t->optim)
               ? -1
               : 0;
}

// The bytes of the longest message: at least those of a unit to one member.
static size_t longest(const struct step *t)
{
    size_t most = 1;
    for (int i = 0; i < t->nunits; i++) {
        struct group_stats one;
        squeezed_bytes(&t->settings, t->e->world, t->e->rank, &t->units[i], 1,
                       &one);
        size_t bytes = one.bytes_out / (size_t)(t->e->world - 1) + 1;
        most = bytes > most ? bytes : most;
    }
    return most;
}

// A message is as long as a chunk, or slice_kb=.
static void divide(struct step *t)
{
    size_t most = longest(t), kb = (most + 1023) / 1024;
    int slice_kb = t->e->slice_kb ? t->e->slice_kb : (int)kb;
    size_t slice = (size_t)slice_kb * 1024;
    t->settings.slice_kb = slice_kb;
    most = slice > most ? slice : most;
    streams_mpi_usual(most + sizeof(struct head), t->e->payload);
    contents_open(t->e, most * (size_t)t->e->world);
}

static int open(struct step *t)
{
    const struct exchange *e = t->e;
    struct sync *s = &t->sync;
    t->cluster = (struct cluster){.rank = e->rank,
                                  .world = e->world,
                                  .timeout_s = no_deadline_s};
    s->ops = &sync_squeezed;
    s->job.backend = backend_at(e->backend);
    bool library = s->job.backend->traffic == TRAFFIC_LIBRARY;
    s->carrier = library ? &library_simulated : &ring_simulated;
    s->job.cluster = &t->cluster;
    s->job.n = e->n;
    s->job.buckets = t->buckets;
    s->job.optim = &t->optim;
    s->job.settings = &t->settings;
    s->job.velocity_decay = 1; // of squeeze=demo; it begins at 0
    s->job.grads = gradient_open(e);
    s->state = mem_alloc(1, s->ops->state_size);
    return s->job.grads && s->state ? s->ops->open(s) : -1;
}

static int run(struct step *t, double *seconds)
{
    struct sync *s = &t->sync;
    MPI_Barrier(MPI_COMM_WORLD);
    double began = MPI_Wtime();
    for (int b = 0; b < s->job.nbuckets; b++)
        if (s->ops->ready(s, b))
            return -1;
    if (s->ops->settle(s))
        return -1;
    *seconds = MPI_Wtime() - began;
    return 0;
}

// ---- checks

// A library reports only what it is given.
static int check_bytes(const struct step *t)
{
    const struct group_stats *is = &t->sync.stats;
    struct group_stats law;
    squeezed_bytes(&t->settings, t->e->world, t->e->rank, t->units, t->nunits,
                   &law);
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

static int check_same(const struct step *t)
{
    uint64_t mine = hash_bytes(t->sync.job.grads, t->e->n * sizeof(float));
    uint64_t first = mine;
    MPI_Bcast(&first, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    return mine == first
               ? 0
               : fail("rank %d: its sum is not that of rank 0", t->e->rank);
}

// Residuals are zero before, so all that a message lacks is in them. A momentum
// of squeeze=demo has no sum that would be sent.
static int check_sums(const struct step *t)
{
    const struct squeezed *q = t->sync.state;
    size_t n = t->e->n;
    float *v = q->ops->gives_update ? NULL : mem_alloc(n, sizeof *v);
    if (!v)
        return q->ops->gives_update ? 0 : -1;
    memcpy(v, q->residuals.fresh, n * sizeof *v);
    for (int i = 0; q->way->own && !q->way->all_alike && i < q->nunits; i++) {
        struct bucket own = q->way->own(&t->sync, &q->units[i]);
        for (size_t k = 0; k < own.n; k++)
            v[own.off + k] += q->own_fresh[q->units[i].own_at + k];
    }
    for (size_t i = 0; t->e->rank == 0 && i < n; i++)
        v[i] += t->sync.job.grads[i];
    MPI_Allreduce(MPI_IN_PLACE, v, (int)n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    for (size_t i = 0; i < n; i++) // messages are rounded
        v[i] = rintf(v[i] * 256) / 256;
    int rc = gradient_check(t->e, v);
    mem_free(v);
    return rc;
}

static int check(const struct step *t)
{
    if (check_bytes(t))
        return -1;
    return t->e->payload && (check_same(t) || check_sums(t)) ? -1 : 0;
}

int exchange_squeezed(const struct exchange *e, double *seconds)
{
    struct step *t = mem_alloc(1, sizeof *t);
    int rc = -1;
    if (!t)
        return -1;
    t->e = e;
    if (!cut(t)) {
        divide(t);
        rc = open(t) || run(t, seconds) || check(t) ? -1 : 0;
    }
    group_close(&t->sync.group);
    if (t->sync.state)
        t->sync.ops->close(&t->sync);
    mem_free(t->sync.state);
    if (t->sync.job.grads)
        gradient_close(e, t->sync.job.grads);
    mem_free(t->units);
    mem_free(t);
    return rc;
}
