// run_law.c - computes the bytes and the times that the laws predict for a run.
//
// In a mesh each worker holds a part of the model, and exchanges gradients with
// the workers that hold the same part. The law of bytes is the mean over all
// parts.

#include "train/run_law.h"

#include "base/base.h"
#include "config/backends.h"
#include "config/config.h"
#include "config/mesh.h"
#include "model/model.h"
#include "model/part.h"
#include "pipeline/timetable.h"
#include "squeeze/squeeze.h"
#include "squeeze/squeezed.h"
#include "sync/derive.h"
#include "sync/law.h"
#include "sync/link.h"
#include "sync/sync.h"
#include "train/shape.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// A run, and what follows from its settings.
struct question {
    const struct run *r;
    const struct backend *row;
    const struct model_config *whole;
    struct pipeline plan;
    int world, replicas, slices;
    // Bytes on the wire of a gradient, and of a number of a join between
    // slices; NAN: not known.
    double width, join;
    bool beside; // each worker has a server on its host
    bool held;   // replies come only when all gradients have come
};

// ---- servers

int run_law_servers(const struct run *r)
{
    const struct backend *b = backend_find(r->sync);
    return b->servers > 0 ? 1 : b->servers ? r->settings.servers.count : 0;
}

// Returns the number of emulated hosts that have only servers. A single server
// has one if hosts= does not say otherwise.
static int own_hosts(const struct run *r, int world)
{
    const char *hosts = strstr(r->net, "hosts=");
    int n = hosts ? atoi(hosts + strlen("hosts="))
                  : world + (backend_find(r->sync)->servers == 1);
    return n > world ? n - world : 0;
}

bool run_law_beside(const struct run *r, int world)
{
    return backend_find(r->sync)->servers < 0 && run_law_servers(r) == world &&
           own_hosts(r, world) == 0;
}

// ---- bytes

// Returns the bytes of a gradient on the wire. Shared memory is always fp32. A
// single replica never chooses between shared memory and TCP.
static double width_of(const struct run *r, const struct backend *row,
                       int replicas, const char *transport)
{
    bool shm = transport ? !strcmp(transport, "shm")
                         : r->settings.transport == TRANSPORT_SHM;
    bool open = replicas > 1 && !transport &&
                r->settings.transport == TRANSPORT_AUTO &&
                row->transports & 1u << TRANSPORT_SHM;
    if (r->settings.wire == DTYPE_F32 || shm)
        return 4;
    return open ? NAN : 2;
}

// The same for a join, which is always made by a carrier of ours.
static double join_of(const struct run *r, const char *transport)
{
    const struct backend *ring = backend_of_parts();
    struct run joins = *r;
    joins.settings.wire = (enum dtype)r->tp_wire;
    return width_of(&joins, ring, mesh_size(&r->mesh, MESH_TP), transport);
}

// Returns the payload of n parameters that leaves a worker's host in a step. It
// is S to servers, and 2(n-1)/n S around a ring. If worker 0 owns the
// parameters, 2(n-1)/n S is the mean of the workers. A backend whose row has
// rounds sends what these are. With a server beside each
// worker, the worker and the server each send (n-1)/n S; the replies of servers
// that update are fp32. If only some steps exchange, it is the mean of all
// steps, with one exchange a round and one at the end.
static double whole_bytes(const struct question *q, double parameters)
{
    double n = q->replicas, bytes = parameters * q->width;
    int every = q->r->settings.every, steps = q->r->steps;
    int rounds = (steps + every - 1) / every;
    if (q->beside)
        return (n - 1) / n * (bytes + (q->held ? 4 * parameters : bytes));
    if (q->row->traffic == TRAFFIC_NONE)
        return 0;
    if (!backend_has_law(q->row))
        return NAN;
    double share = q->row->traffic == TRAFFIC_ROUNDS
                       ? law_rounds(&q->row->rounds, q->replicas).share
                       : 2 * (n - 1) / n;
    return q->row->servers ? bytes : share * bytes * rounds / steps;
}

// Returns the verb that sends these bytes.
static int verb_of(const struct backend *b)
{
    bool pairs = b->traffic == TRAFFIC_OWNER || b->traffic == TRAFFIC_ROUNDS;
    return b->servers ? RUN_LAW_PUSH
           : pairs    ? (int)GROUP_SEND
                      : (int)GROUP_ALL_REDUCE;
}

// Finds the step of a backend with shards, without the units.
static int shards_step(const struct question *q,
                       const struct model_config *part, struct law_step *out)
{
    const struct sync_settings *set = &q->r->settings;
    *out = shape_step(q->r, set, q->replicas, q->r->accum);
    out->sum_bytes = (size_t)q->width;
    return shape_scatter(part, set, out);
}

// The share of steps in which gradients travel whole although squeeze= is
// given: the first squeeze_after=, or freeze=.
static double whole_steps(const struct question *q)
{
    double first = (double)squeeze_whole_steps(&q->r->settings);
    return fmin(first / q->r->steps, 1);
}

static int shards_bytes(const struct question *q,
                        const struct model_config *part,
                        double out[GROUP_VERBS])
{
    int n = model_nblocks(part);
    struct bucket *blocks = mem_alloc((size_t)n, sizeof *blocks);
    struct law_step step;
    int rc = blocks ? shards_step(q, part, &step) : -1;
    if (!rc) {
        double whole[GROUP_VERBS], share = step.messages ? whole_steps(q) : 0;
        step.cut = blocks;
        step.count = shape_blocks(part, blocks, n);
        law_step_mean(&step, out);
        step.messages = 0;
        law_step_mean(&step, whole);
        for (int v = 0; v < GROUP_VERBS; v++)
            out[v] += share * (whole[v] - out[v]);
    }
    mem_free(blocks);
    return rc;
}

// The bytes of messages to servers, and from the server beside a worker. Its
// answers to topk are as long as the workers' entries differ.
static double served_bytes(const struct question *q,
                           const struct model_config *part)
{
    const struct sync_settings *set = &q->r->settings;
    double n = q->replicas, messages = shape_messages(part, set);
    bool known = squeeze_find(set->squeeze)->twice || n == 1;
    return !q->beside ? messages : known ? 2 * (n - 1) / n * messages : NAN;
}

// The mean of all steps.
static int squeezed_step_bytes(const struct question *q,
                               const struct model_config *part,
                               double out[RUN_LAW_VERBS])
{
    const struct sync_settings *set = &q->r->settings;
    struct squeeze_unit *units = NULL;
    double whole = whole_steps(q);
    int n = q->row->servers ? 0 : shape_units(part, set, &units);
    if (n < 0)
        return -1;
    squeezed_mean(set, q->replicas, units, n, out);
    if (q->row->servers)
        out[RUN_LAW_PUSH] = served_bytes(q, part);
    for (int v = 0; v < RUN_LAW_VERBS; v++)
        out[v] *= 1 - whole;
    out[verb_of(q->row)] += whole * whole_bytes(q, (double)model_nparams(part));
    mem_free(units);
    return 0;
}

// Adds a share of the bytes of one part of the model.
static int add_part(const struct question *q, const struct model_config *part,
                    double share, struct run_law *out)
{
    double one[RUN_LAW_VERBS] = {0};
    bool squeezes = q->r->settings.squeeze;
    if (q->row->shards ? shards_bytes(q, part, one)
        : squeezes     ? squeezed_step_bytes(q, part, one)
                       : 0)
        return -1;
    if (!q->row->shards && !squeezes)
        one[verb_of(q->row)] = whole_bytes(q, (double)model_nparams(part));
    for (int v = 0; v < RUN_LAW_VERBS; v++) {
        out->by_verb[v] += share * one[v];
        out->bytes += share * one[v];
    }
    return 0;
}

// The share of a stage's layers that backward computes again. If it follows its
// forward, a GPU still has what the last layer's products have computed.
static double computed_again(const struct question *q, int stage, int layers)
{
    const struct pipeline *p = &q->plan;
    bool gpu = strcmp(q->r->device, "cpu");
    int kept = 0;
    for (int k = 1; gpu && k < timetable_length(p); k++) {
        struct action a = timetable_action(p, stage, k - 1);
        struct action b = timetable_action(p, stage, k);
        kept += a.kind == ACTION_FORWARD && b.kind == ACTION_BACKWARD &&
                a.micro == b.micro && a.chunk == b.chunk;
    }
    return q->r->recompute ? 1 - (double)kept / p->micro / layers : 0;
}

// Adds the bytes of all parts: slices of stages.
static int add_parts(const struct question *q, struct run_law *out)
{
    int p = q->plan.stages, t = q->slices;
    for (int s = 0; s < p; s++) {
        struct model_config stage, slice;
        if (shape_cut(q->r, &q->plan, s, q->whole, &stage))
            return -1;
        struct law_mesh mesh =
            shape_mesh(q->r, &q->plan, q->whole, q->replicas, s, stage.layers);
        mesh.sum = q->join;
        mesh.recompute = computed_again(q, s, stage.layers);
        out->stages += law_mesh_stages(&mesh) / p;
        out->slices += law_mesh_slices(&mesh) / p;
        out->pieces += law_mesh_pieces(&mesh) / p;
        for (int i = 0; i < t; i++)
            if ((t > 1 && part_slice(&stage, t, i, &slice)) ||
                add_part(q, t > 1 ? &slice : &stage, 1.0 / p / t, out))
                return -1;
    }
    return 0;
}

static void no_bytes(struct run_law *out)
{
    out->bytes = out->stages = out->slices = out->pieces = NAN;
    for (int v = 0; v < RUN_LAW_VERBS; v++)
        out->by_verb[v] = NAN;
}

// ---- times

// Reads the links of net=RATE. 0, or -1 if the law predicts no time for the
// run.
static int read_link(const struct question *q, struct link *link)
{
    static const double latency_s = 100e-6; // of a message, an estimate
    struct links links = {0};
    char rate[CONFIG_WORD];
    const char *net = q->r->net;
    snprintf(rate, sizeof rate, "%.*s", (int)strcspn(net, ","), net);
    if (q->world < 2 || q->replicas < q->world ||
        !isdigit((unsigned char)*rate) ||
        q->r->settings.consistency.kind != CONSISTENCY_BSP ||
        links_read(&links, rate, latency_s))
        return -1;
    *link = links.fits[0].link;
    return 0;
}

// Returns the seconds of an exchange; NAN if there is no law for it.
static double exchange_s(const struct question *q, double bytes)
{
    struct link link;
    int apart = q->beside ? 0 : run_law_servers(q->r);
    if (read_link(q, &link) || isnan(bytes) ||
        own_hosts(q->r, q->world) < apart)
        return NAN; // no law for servers beside some of the workers
    struct law_step step;
    if (q->row->shards) {
        if (shards_step(q, q->whole, &step))
            return NAN;
        return law_step_hops(&step) * link.alpha_s + bytes / link.bytes_per_s;
    }
    const struct sync_settings *set = &q->r->settings;
    double params = (double)model_nparams(q->whole);
    struct law squeezed = {0};
    if (set->squeeze && shape_squeezed_law(q->whole, q->row, set, q->world,
                                           apart, &squeezed) < 0)
        return NAN;
    struct law law =
        law_of(q->row,
               &(struct law_case){.workers = q->world,
                                  .servers = apart,
                                  .held = q->held,
                                  .algorithm = q->r->settings.algorithm,
                                  .every = q->r->settings.every,
                                  .squeezed = set->squeeze ? &squeezed : NULL});
    return law_seconds(&law, &link, params * q->width);
}

void run_law(const struct run *r, const struct model_config *whole, int world,
             const char *transport, const char *joins, struct run_law *out)
{
    struct question q = {
        .r = r,
        .row = backend_find(r->sync),
        .whole = whole,
        .world = world,
        .slices = mesh_size(&r->mesh, MESH_TP),
        .beside = run_law_beside(r, world),
    };
    *out = (struct run_law){.exchange_s = NAN, .bubble = NAN};
    bool planned = !shape_pipeline(r, &q.plan);
    q.replicas = planned ? world / (q.plan.stages * q.slices) : 0;
    q.width = width_of(r, q.row, q.replicas, transport);
    q.join = join_of(r, joins);
    q.held = sync_holds(&r->settings, q.row);
    if (planned && q.plan.stages > 1)
        out->bubble = timetable_bubble(&q.plan);
    if (!planned || model_check(whole) || isnan(q.width) || add_parts(&q, out))
        no_bytes(out);
    out->exchange_s = exchange_s(&q, out->bytes);
    if (q.plan.stages == 1)
        out->stages = NAN;
    if (q.slices == 1)
        out->slices = NAN;
    if (mesh_pieces(&r->mesh) == 1)
        out->pieces = NAN;
}
