// dataparallel.c - the strategy of torch.nn.DataParallel: worker 0 owns the
// model.
//
//     scatter  worker 0 sends every worker its part of the batch
//     step     all send gradients and losses to worker 0, which adds and
//              updates; worker 0 sends the norm and the next parameters to all
//
//     worker 0   data|scatter| forward, backward |recv, add|update|send n-1|
//     others         |recv   | forward, backward |send     |      |recv    |
//
// Nothing overlaps with backward, as in PyTorch, where no gradient leaves a GPU
// before the last one is complete. PyTorch copies the parameters at the start
// of a step. Here they travel at the end of the step before: the same bytes,
// and all workers also have them between steps. With several micro-batches in a
// step, PyTorch copies and sums in each of them; here it happens once a step,
// as in all backends.
//
// Payload, for S bytes of gradients on n workers: (n-1) S into worker 0 and
// (n-1) S out of it, so 2 (n-1) S cross its link. S crosses another worker's
// link in each direction. Batches, losses and norms count as heads.
//
// Memory: only worker 0 has the optimiser's state, and receive buffers for the
// gradients. The update runs on the host; sync.c copies a GPU's vectors to the
// host and back.

#include "dataparallel/dataparallel.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "device/device.h"
#include "device/vector.h"
#include "group/group.h"
#include "sync/derive.h"
#include "sync/members.h"
#include "sync/slots.h"

#include <math.h>

struct dataparallel {
    // The job's cluster with a longer deadline; not used on worker 0.
    struct cluster patient;
    uint64_t ticket;          // of the newest message
    struct group_stats notes; // bytes of payload that count as heads
    double loss, norm;        // sent from here: must outlive a step
    // Only on worker 0:
    float *landing;              // (OWNER_SETS, world - 1, piece)
    uint64_t landed[OWNER_SETS]; // the last ticket of each set
    double *losses;              // by rank
    struct device *host;         // where the update runs
    struct rule rule;
};

static bool is_owner(const struct sync *s)
{
    return s->job.cluster->rank == 0;
}

// The number of elements of the piece that begins at `off`.
static size_t piece_at(const struct sync *s, size_t off)
{
    size_t left = s->job.n - off;
    return left < OWNER_PIECE ? left : OWNER_PIECE;
}

static int open_owner(struct sync *s)
{
    struct dataparallel *d = s->state;
    size_t n = s->job.n, others = (size_t)s->job.cluster->world - 1;
    size_t landing = OWNER_SETS * others * piece_at(s, 0);
    if (device_open(&d->host, "cpu") ||
        rule_open(&d->rule, d->host, s->job.optim, n, NULL))
        return -1;
    d->losses = mem_alloc(others + 1, sizeof *d->losses);
    if (landing)
        d->landing = mem_alloc(landing, sizeof *d->landing);
    return d->losses && (d->landing || !landing) ? 0 : -1;
}

static int dataparallel_open(struct sync *s)
{
    struct dataparallel *d = s->state;
    size_t world = (size_t)s->job.cluster->world;
    size_t pieces = (s->job.n + OWNER_PIECE - 1) / OWNER_PIECE;
    const struct members_need need = {.depth = is_owner(s)
                                                   ? (OWNER_SETS + 2) * world
                                                   : pieces + 3,
                                      .pairs = true,
                                      .star = true};
    s->own_update = true;
    if (is_owner(s) && open_owner(s))
        return -1;
    if (!is_owner(s)) {
        // Worker 0 waits for all: it should be the first to name a late rank.
        d->patient = *s->job.cluster;
        d->patient.timeout_s *= 2;
        s->job.cluster = &d->patient;
    }
    return members_open(s, &need);
}

// ---- messages

static int send(struct sync *s, int to, struct group_vector v)
{
    struct dataparallel *d = s->state;
    return group_send(s->group, &v, to, &d->ticket);
}

static int receive(struct sync *s, int from, struct group_vector v)
{
    struct dataparallel *d = s->state;
    return group_recv(s->group, &v, from, &d->ticket);
}

// A message that is neither gradients nor parameters; it counts as heads.
static struct group_vector note(struct sync *s, enum group_verb verb,
                                void *data, size_t bytes)
{
    struct dataparallel *d = s->state;
    bool out = verb == GROUP_SEND;
    group_count(&d->notes, verb, out ? bytes : 0, out ? 0 : bytes);
    return group_bytes(data, bytes);
}

static int finish(struct sync *s)
{
    const struct dataparallel *d = s->state;
    if (s->job.cluster->world > 1 && group_await(s->group, d->ticket))
        return -1;
    s->stats = s->group->stats;
    group_stats_less(&s->stats, &d->notes);
    s->stats.head_out += d->notes.bytes_out;
    s->stats.head_in += d->notes.bytes_in;
    return 0;
}

// Send worker 0's v (n elements) to all.
static int copy_out(struct sync *s, float *v)
{
    if (!is_owner(s))
        return receive(s, 0, group_floats(v, s->job.n));
    for (int r = 1; r < s->job.cluster->world; r++)
        if (send(s, r, group_floats(v, s->job.n)))
            return -1;
    return 0;
}

static int dataparallel_broadcast(struct sync *s, int slot, float *v)
{
    CHECK(slot == -1); // only worker 0 has a state
    return copy_out(s, v) ? -1 : finish(s);
}

static int dataparallel_scatter(struct sync *s, int32_t *x, int32_t *y,
                                size_t n)
{
    int32_t *const both[] = {x, y};
    size_t bytes = n * sizeof *x;
    for (int k = 0; k < 2; k++) {
        if (!is_owner(s) && receive(s, 0, note(s, GROUP_RECV, both[k], bytes)))
            return -1;
        for (int r = 1; is_owner(s) && r < s->job.cluster->world; r++)
            if (send(s, r, note(s, GROUP_SEND, both[k] + (size_t)r * n, bytes)))
                return -1;
    }
    return finish(s);
}

// ---- a step

static int step_of_others(struct sync *s, const struct sync_in *in,
                          struct sync_out *out)
{
    const struct sync_job *job = &s->job;
    struct dataparallel *d = s->state;
    d->loss = in->loss;
    if (send(s, 0, note(s, GROUP_SEND, &d->loss, sizeof d->loss)))
        return -1;
    for (size_t off = 0, n; off < job->n; off += n) {
        n = piece_at(s, off);
        if (send(s, 0, group_floats(job->grads + off, n)))
            return -1;
    }
    if (receive(s, 0, note(s, GROUP_RECV, &d->norm, sizeof d->norm)) ||
        copy_out(s, job->params) || finish(s))
        return -1;
    out->grad_norm = (float)d->norm;
    return 0;
}

// The receive buffer for worker r's piece at `off`.
static float *landing(const struct sync *s, size_t off, int r)
{
    const struct dataparallel *d = s->state;
    size_t others = (size_t)s->job.cluster->world - 1;
    size_t set = off / OWNER_PIECE % OWNER_SETS;
    return d->landing + (set * others + (size_t)r - 1) * piece_at(s, 0);
}

static int receive_piece(struct sync *s, size_t off)
{
    struct dataparallel *d = s->state;
    for (int r = 1; off < s->job.n && r < s->job.cluster->world; r++)
        if (receive(s, r, group_floats(landing(s, off, r), piece_at(s, off))))
            return -1;
    d->landed[off / OWNER_PIECE % OWNER_SETS] = d->ticket;
    return 0;
}

// Add up the gradients of all workers in grads, in the order of their ranks.
static int add_up(struct sync *s)
{
    const struct dataparallel *d = s->state;
    const struct sync_job *job = &s->job;
    if (receive_piece(s, 0))
        return -1;
    for (size_t off = 0; off < job->n; off += OWNER_PIECE) {
        if (receive_piece(s, off + OWNER_PIECE) ||
            group_await(s->group, d->landed[off / OWNER_PIECE % OWNER_SETS]))
            return -1;
        for (int r = 1; r < job->cluster->world; r++)
            vector_add(job->grads + off, landing(s, off, r), DTYPE_F32,
                       piece_at(s, off));
    }
    return 0;
}

static int update(struct sync *s, const struct sync_in *in,
                  struct sync_out *out)
{
    struct dataparallel *d = s->state;
    const struct rule_in rule = {.step = in->step,
                                 .lr = in->lr,
                                 .scale = in->grad_scale,
                                 .clip = in->clip};
    out->update_began_ns = now_ns();
    int rc = rule_step(&d->rule, s->job.params, s->job.grads, &rule,
                       &out->grad_norm);
    out->update_ended_ns = now_ns();
    return rc;
}

static int step_of_owner(struct sync *s, const struct sync_in *in,
                         struct sync_out *out)
{
    struct dataparallel *d = s->state;
    int world = s->job.cluster->world;
    for (int r = 1; r < world; r++)
        if (receive(s, r,
                    note(s, GROUP_RECV, &d->losses[r], sizeof d->losses[r])))
            return -1;
    if ((world > 1 && add_up(s)) || update(s, in, out))
        return -1;
    d->norm = (double)out->grad_norm;
    for (int r = 1; r < world; r++)
        if (send(s, r, note(s, GROUP_SEND, &d->norm, sizeof d->norm)))
            return -1;
    if (copy_out(s, s->job.params) || finish(s))
        return -1;
    out->loss = in->loss / world;
    for (int r = 1; r < world; r++)
        out->loss += d->losses[r] / world;
    return 0;
}

static int dataparallel_step(struct sync *s, const struct sync_in *in,
                             struct sync_out *out)
{
    if ((is_owner(s) ? step_of_owner : step_of_others)(s, in, out))
        return -1;
    out->skipped = !isfinite(out->grad_norm);
    return 0;
}

// ---- the state, on worker 0

static int visit_slots(struct sync *s, sync_visit *visit, void *ctx)
{
    const struct dataparallel *d = s->state;
    for (int i = 0; is_owner(s) && i < optim_slots(s->job.optim); i++)
        if (visit(ctx, i, 0, d->rule.slots[i], s->job.n))
            return -1;
    return 0;
}

static void dataparallel_close(struct sync *s)
{
    struct dataparallel *d = s->state;
    rule_close(&d->rule);
    device_close(&d->host);
    mem_free(d->landing);
    mem_free(d->losses);
}

static const struct sync_state_ops state = {
    .slots = slots_count,
    .slot_name = slots_name,
    .save = visit_slots,
    .load = visit_slots,
};

const struct sync_ops sync_dataparallel = {
    .state_size = sizeof(struct dataparallel),
    .state = &state,
    .open = dataparallel_open,
    .broadcast = dataparallel_broadcast,
    .scatter = dataparallel_scatter,
    .step = dataparallel_step,
    .close = dataparallel_close,
};
