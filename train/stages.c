// stages.c - manages the buffers of a stage, and sends and receives them.
//
// A forward's input is received into the first free buffer. A stage has as many
// input buffers as the stage before has activation slots. The stage before
// keeps the slot of a micro-batch until this stage has sent the gradient back.
// So every message finds a buffer, and no stage waits for a free buffer on
// another one. By the time the gradient comes back, the slot's output has
// arrived at the stage behind, so no stage waits for that send.
//
// Gradients are received into `edges` buffers in turn. A backward replaces the
// gradient that came by the one that it sends, in the same buffer. While one
// backward computes, the gradient of the next may arrive and that of the one
// before may be on its way out. With several chunks the stages form a circle,
// and every gradient that may arrive has a buffer of its own.
//
// A message may have to wait until each other stage has done a forward and a
// backward, one after the other. timeout= is the deadline of one of these.

#include "train/stages.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "horovod_ring/carriers.h"
#include "sync/law_mesh.h"
#include "sync/sync.h"
#include "telemetry/span.h"
#include "train/exchange.h"
#include "train/shape.h"
#include "train/slices.h"
#include "train/stage_buffers.h"
#include "train/trainer.h"

#include <string.h>

// The slot and the input of a micro-batch in a chunk, and that input's ticket.
struct passage {
    int slot, input;
    uint64_t came;
};

// Tickets of an edge's last send and receive.
struct edge {
    uint64_t sent, came;
};

struct stages {
    struct cluster patient;           // the line, with the deadline of a wait
    struct group *forward, *backward; // residual streams; their gradients
    struct action *order[2];          // by kind: this stage's, in order
    int total;                        // of each kind
    int slots, inputs, edges;
    int ahead;       // how many backwards ahead gradients are received
    int first_input; // inputs before this one are never received
    bool *slot_used, *input_used;
    struct edge *edge;        // by number
    struct passage *passages; // by chunk and micro-batch
    uint64_t sent;            // the newest ticket of sending a slot's output
    int expected[2], done[2]; // in `order`: receives posted; actions done
    struct stage_buffers *buffers;
    float *tied; // wte's gradient from the pipeline's other end
};

// Wait for a message from another stage. This stage is idle meanwhile.
static int await_stage(struct trainer *t, struct group *g, uint64_t ticket,
                       int micro)
{
    span_begin(t->observe.lane, SPAN_BUBBLE, micro);
    int rc = exchange_delay_failure(group_await(g, ticket));
    sync_waited(t->sync, span_end(t->observe.lane));
    return rc;
}

// ---- the norm of all stages

// The stages may reach this point at different times, since some are still in
// their backwards; so the wait counts as bubble. It has a clock and no span: in
// a step it is within the update, whose span is recorded when that is over.
static int all_gather(struct trainer *t, double *v, size_t each)
{
    struct group_vector all =
        group_plain(v, each * (size_t)t->plan.stages, DTYPE_F64);
    all.awaited = true;
    uint64_t start = now_ns(), ticket;
    struct group *g = t->stages->forward;
    int rc = exchange_delay_failure(group_all_gather(g, &all, &ticket) ||
                                    group_await(g, ticket));
    t->bubble_ns += now_ns() - start;
    return rc;
}

enum { SHARED = 2 }; // doubles of a stage: squares, loss

int stages_sum(struct trainer *t, double *squares)
{
    if (t->plan.stages == 1)
        return 0;
    double all[SHARED * PIPELINE_STAGES] = {0}, *mine = all + SHARED * t->stage;
    mine[0] = *squares;
    mine[1] = t->loss;
    if (all_gather(t, all, SHARED))
        return -1;
    *squares = 0;
    for (int s = 0; s < t->plan.stages; s++)
        *squares += all[SHARED * s];
    t->loss = all[SHARED * (t->plan.stages - 1) + 1];
    return 0;
}

int stages_share(struct trainer *t, double *of_last)
{
    double all[SHARED * PIPELINE_STAGES] = {0};
    if (t->plan.stages == 1)
        return 0;
    all[SHARED * t->stage] = *of_last;
    if (all_gather(t, all, SHARED))
        return -1;
    *of_last = all[SHARED * (t->plan.stages - 1)];
    return 0;
}

// ---- open and close

static struct group *open_group(const struct trainer *t, const char *name)
{
    struct group_job job = {
        .name = name,
        .cluster = &t->stages->patient,
        .dev = t->dev,
        .grain = SHARED, // of stages_sum()
        .depth = 4 * (size_t)timetable_length(&t->plan) + 8,
        .thread = true,
        .pairs = true,
        .messages = true,
        .iface = t->run.settings.iface,
    };
    bool tcp = t->run.settings.transport == TRANSPORT_TCP;
    const struct group_ops *carrier = ring_choose(&job, tcp);
    return carrier ? group_open(carrier, &job) : NULL;
}

const char *stages_transport(const struct trainer *t)
{
    return t->stages ? t->stages->forward->ops->name : NULL;
}

int stages_sharing(const struct trainer *t)
{
    bool shares = t->stages && t->stages->forward->ops == &ring_shm;
    return shares ? 2 * t->plan.stages : 0;
}

static int list_actions(const struct trainer *t, struct stages *s)
{
    int length = timetable_length(&t->plan), n[2] = {0, 0};
    s->total = length / 2;
    for (int kind = 0; kind < 2; kind++) {
        s->order[kind] = mem_alloc((size_t)s->total, sizeof *s->order[kind]);
        if (!s->order[kind])
            return -1;
    }
    for (int k = 0; k < length; k++) {
        struct action a = timetable_action(&t->plan, t->stage, k);
        s->order[a.kind][n[a.kind]++] = a;
    }
    return 0;
}

static int open_buffers(struct trainer *t, struct stages *s)
{
    struct model_job job = {.slots = 0};
    shape_stage(&t->plan, t->stage, &job);
    s->slots = job.slots;
    s->inputs = job.inputs;
    s->edges = job.edges;
    s->ahead = shape_ahead(&t->plan, t->stage);
    s->first_input = shape_first_input(&t->plan, t->stage);
    s->slot_used = mem_alloc((size_t)s->slots, sizeof *s->slot_used);
    s->input_used = mem_alloc((size_t)s->inputs + 1, sizeof *s->input_used);
    s->edge = mem_alloc((size_t)s->edges, sizeof *s->edge);
    s->passages = mem_alloc((size_t)s->total, sizeof *s->passages);
    size_t tied = stages_tied(t);
    if ((tied && !(s->tied = mem_alloc(tied, sizeof *s->tied))) ||
        stage_buffers_open(&s->buffers, t))
        return -1;
    return s->slot_used && s->input_used && s->edge && s->passages ? 0 : -1;
}

int stages_open(struct trainer *t)
{
    if (t->plan.stages == 1)
        return 0;
    struct stages *s = t->stages = mem_alloc(1, sizeof *s);
    if (!s || list_actions(t, s) || open_buffers(t, s))
        return -1;
    s->patient = *t->line;
    s->patient.timeout_s *= 2 * (t->plan.stages - 1);
    s->forward = open_group(t, "activations");
    s->backward = s->forward ? open_group(t, "gradients") : NULL;
    return s->backward ? 0 : -1;
}

void stages_close(struct trainer *t)
{
    struct stages *s = t->stages;
    if (!s)
        return;
    group_close(&s->forward);
    group_close(&s->backward);
    for (int kind = 0; kind < 2; kind++)
        mem_free(s->order[kind]);
    mem_free(s->slot_used);
    mem_free(s->input_used);
    mem_free(s->edge);
    mem_free(s->passages);
    mem_free(s->tied);
    stage_buffers_close(&s->buffers);
    mem_free(s);
    t->stages = NULL;
}

// ---- messages

// The stages before and behind this one, in a circle.
static int before(const struct trainer *t)
{
    return (t->stage + t->plan.stages - 1) % t->plan.stages;
}

static int behind(const struct trainer *t)
{
    return (t->stage + 1) % t->plan.stages;
}

// Buffer i of a kind.
static struct group_vector message(const struct trainer *t,
                                   enum stage_buffer kind, int i)
{
    enum dtype type = config_format(&t->run);
    void *data = stage_buffers_at(t->stages->buffers, kind, i);
    return group_plain(data, slices_rows(t) * (size_t)t->config.channels, type);
}

static struct passage *passage_of(const struct trainer *t, struct action a)
{
    return &t->stages->passages[a.chunk * t->plan.micro + a.micro];
}

static int take_free(bool *used, int from, int n)
{
    for (int k = from; k < n; k++)
        if (!used[k]) {
            used[k] = true;
            return k;
        }
    return -1;
}

// Post receives of the inputs of the next forwards, while buffers are free.
static int expect_inputs(struct trainer *t)
{
    struct stages *s = t->stages;
    int *k = &s->expected[ACTION_FORWARD];
    for (; *k < s->total; ++*k) {
        struct action a = s->order[ACTION_FORWARD][*k];
        struct passage *at = passage_of(t, a);
        if (stages_is_first(t, a.chunk))
            continue;
        at->input = take_free(s->input_used, s->first_input, s->inputs);
        if (at->input < 0)
            return 0;
        struct group_vector v = message(t, STAGE_INPUT, at->input);
        if (group_recv(s->forward, &v, before(t), &at->came))
            return exchange_delay_failure(-1);
    }
    return 0;
}

// Post receives of the gradients of the next backwards, up to number `most`.
static int expect_gradients(struct trainer *t, int most)
{
    struct stages *s = t->stages;
    int *k = &s->expected[ACTION_BACKWARD];
    for (; *k < s->total && *k <= most; ++*k) {
        struct action a = s->order[ACTION_BACKWARD][*k];
        int edge = *k % s->edges;
        struct group_vector v = message(t, STAGE_EDGE, edge);
        if (group_await(s->backward, s->edge[edge].sent) ||
            (!stages_is_last(t, a.chunk) &&
             group_recv(s->backward, &v, behind(t), &s->edge[edge].came)))
            return exchange_delay_failure(-1);
    }
    return 0;
}

// ---- a step

static int begin_step(struct trainer *t)
{
    struct stages *s = t->stages;
    for (int kind = 0; kind < 2; kind++)
        s->expected[kind] = s->done[kind] = 0;
    return expect_inputs(t) || expect_gradients(t, s->ahead - 1) ? -1 : 0;
}

static int begin_forward(struct trainer *t, struct action a,
                         struct model_pass *pass)
{
    struct stages *s = t->stages;
    struct passage *at = passage_of(t, a);
    if (s->done[ACTION_FORWARD] % s->total == 0 && begin_step(t))
        return -1;
    int slot = at->slot = take_free(s->slot_used, 0, s->slots);
    CHECK(slot >= 0);
    if (stages_is_first(t, a.chunk))
        at->input = s->inputs ? slot : 0;
    else if (await_stage(t, s->forward, at->came, a.micro))
        return -1;
    else
        stage_buffers_up(s->buffers, STAGE_INPUT, at->input);
    *pass =
        (struct model_pass){.chunk = a.chunk, .slot = slot, .input = at->input};
    return 0;
}

static int end_forward(struct trainer *t, struct action a,
                       const struct model_pass *pass)
{
    struct stages *s = t->stages;
    s->done[ACTION_FORWARD]++;
    if (stages_is_last(t, a.chunk))
        return 0;
    struct group_vector v = message(t, STAGE_OUTPUT, pass->slot);
    stage_buffers_down(s->buffers, STAGE_OUTPUT, pass->slot);
    return exchange_delay_failure(
        group_send(s->forward, &v, behind(t), &s->sent));
}

static int begin_backward(struct trainer *t, struct action a,
                          struct model_pass *pass)
{
    struct stages *s = t->stages;
    int number = s->done[ACTION_BACKWARD], edge = number % s->edges;
    struct passage *at = passage_of(t, a);
    *pass = (struct model_pass){.chunk = a.chunk,
                                .slot = at->slot,
                                .input = at->input,
                                .edge = edge};
    bool last = stages_is_last(t, a.chunk);
    if (expect_gradients(t, number) ||
        (!last && await_stage(t, s->backward, s->edge[edge].came, a.micro)))
        return -1;
    if (!last)
        stage_buffers_up(s->buffers, STAGE_EDGE, edge);
    return expect_gradients(t, number + s->ahead);
}

static int end_backward(struct trainer *t, struct action a,
                        const struct model_pass *pass)
{
    struct stages *s = t->stages;
    struct group_vector v = message(t, STAGE_EDGE, pass->edge);
    s->done[ACTION_BACKWARD]++;
    s->slot_used[pass->slot] = false;
    if (s->inputs && !stages_is_first(t, a.chunk))
        s->input_used[pass->input] = false;
    if (expect_inputs(t))
        return -1;
    if (stages_is_first(t, a.chunk))
        return 0;
    stage_buffers_down(s->buffers, STAGE_EDGE, pass->edge);
    return exchange_delay_failure(
        group_send(s->backward, &v, before(t), &s->edge[pass->edge].sent));
}

int stages_begin(struct trainer *t, struct action a, struct model_pass *pass)
{
    *pass = (struct model_pass){.chunk = a.chunk};
    if (t->plan.stages == 1)
        return 0;
    return (a.kind == ACTION_FORWARD ? begin_forward : begin_backward)(t, a,
                                                                       pass);
}

int stages_end(struct trainer *t, struct action a,
               const struct model_pass *pass)
{
    if (t->plan.stages == 1)
        return 0;
    return (a.kind == ACTION_FORWARD ? end_forward : end_backward)(t, a, pass);
}

// Wait until everything that this step has sent has arrived.
static int await_sent(struct trainer *t)
{
    struct stages *s = t->stages;
    int newest = (s->total - 1) % s->edges;
    if (group_await(s->forward, s->sent))
        return exchange_delay_failure(-1);
    return await_stage(t, s->backward, s->edge[newest].sent, -1);
}

// The first and the last stage each add the other's gradient of wte to their
// own. The sum of two numbers does not depend on their order, so both have the
// same gradient.
int stages_tie(struct trainer *t)
{
    struct stages *s = t->stages;
    size_t n = stages_tied(t);
    int rc = await_sent(t);
    if (rc || n == 0)
        return rc;
    int other = t->stage ? 0 : t->plan.stages - 1;
    float *mine = stage_buffers_tied(s->buffers, t->grads);
    struct group_vector own = group_floats(mine, n);
    struct group_vector its = group_floats(s->tied, n);
    uint64_t ticket;
    if (group_send(s->backward, &own, other, &ticket) ||
        group_recv(s->backward, &its, other, &ticket) ||
        await_stage(t, s->backward, ticket, -1))
        return exchange_delay_failure(-1);
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < n; i++)
        mine[i] += s->tied[i];
    stage_buffers_put_tied(s->buffers, t->grads);
    return 0;
}

// Replicas sum the two gradients in the order of their places, which differ
// between the stages.
int stages_align(struct trainer *t)
{
    struct stages *s = t->stages;
    size_t n = stages_tied(t);
    int wire = (int)dtype_bytes(t->run.settings.wire);
    if (n == 0 || !law_mesh_order_matters(t->members->world, wire))
        return 0;
    span_begin(t->observe.lane, SPAN_GATHER, -1);
    int rc = sync_await(t->sync, 0, n);
    span_end(t->observe.lane);
    if (rc)
        return -1;
    struct half_copy *copy = model_copy(t->model);
    float *params = stage_buffers_tied(s->buffers, t->params);
    struct group_vector v = group_floats(params, n);
    if (t->sync->copy_only) {
        v.data = copy->at;
        v.type = v.wire = copy->format;
    } else if (copy) {
        copy->fresh = false; // it has the values before
    }
    uint64_t ticket;
    int other = t->stage ? 0 : t->plan.stages - 1;
    rc = t->stage ? group_recv(s->forward, &v, other, &ticket)
                  : group_send(s->forward, &v, other, &ticket);
    if (rc || group_await(s->forward, ticket))
        return exchange_delay_failure(-1);
    if (t->stage)
        stage_buffers_put_tied(s->buffers, t->params);
    return 0;
}

// ---- outside a step

int stages_receive(struct trainer *t, int chunk)
{
    struct stages *s = t->stages;
    uint64_t ticket;
    if (t->plan.stages == 1 || stages_is_first(t, chunk))
        return 0;
    struct group_vector v = message(t, STAGE_INPUT, 0);
    if (group_recv(s->forward, &v, before(t), &ticket) ||
        exchange_delay_failure(group_await(s->forward, ticket)))
        return -1;
    stage_buffers_up(s->buffers, STAGE_INPUT, 0);
    return 0;
}

int stages_send(struct trainer *t, int chunk)
{
    struct stages *s = t->stages;
    uint64_t ticket;
    if (t->plan.stages == 1 || stages_is_last(t, chunk))
        return 0;
    struct group_vector v = message(t, STAGE_OUTPUT, 0);
    stage_buffers_down(s->buffers, STAGE_OUTPUT, 0);
    return exchange_delay_failure(
        group_send(s->forward, &v, behind(t), &ticket) ||
        group_await(s->forward, ticket));
}

struct group_stats stages_moved(const struct trainer *t)
{
    struct group_stats moved = {0};
    if (t->stages) {
        group_stats_add(&moved, &t->stages->forward->stats);
        group_stats_add(&moved, &t->stages->backward->stats);
    }
    return moved;
}
