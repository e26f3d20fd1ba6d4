// ring.c - our own ring all-reduce: what Horovod does.
//
// Nobody is special: every worker passes slices on to its right, adds its own
// share on the first way round, copies on the second, and then updates its own
// parameters with the same sum (plan.h: which part when). Buckets that are
// ready go to a communication thread, which moves them while backward goes on;
// step() waits for the last one.
//
//     time     2(world-1) alpha + 2(world-1)/world S / bandwidth
//     payload  2(world-1)/world S out of and into each worker
//
//     trainer  ready ready ready ........ step |wait| update
//     thread        [group 0][group 1]..[group 2]
//
// The last group is ready when the trainer is about to wait: if the thread is
// idle then, the trainer moves it itself, which saves waking two threads, and
// spins for SPIN_NS after the last slice before it sleeps.

#include "horovod_ring/ring.h"

#include "horovod_ring/flow.h"
#include "horovod_ring/fusion.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "config/config.h"
#include "sync/update.h"
#include "telemetry/span.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { SPIN_NS = 20000 };

struct settings {
    int wire; // enum dtype
    double fusion_mb;
    long slice_kb;
};

struct ring {
    struct settings set;
    struct update update;
    struct bucket *groups; // buckets, fused
    int ngroups;
    int next; // the group that fills up next

    struct transport *transport; // the thread's while it runs, as is flow
    struct flow flow;
    struct wire wire;
    struct task *tasks;

    bool running, locks;
    pthread_t thread;
    pthread_mutex_t lock; // of what follows
    pthread_cond_t change;
    struct task *queue; // not taken by who drives yet
    int nqueue;
    bool driven;                 // somebody moves the flow
    uint64_t asked, done;        // tasks, since open
    uint64_t bytes[2], heads[2]; // flow's, as of `done`
    bool stop, failed;
    char why[512];
};

// ---- moving: by the communication thread, or by a trainer that waits anyhow

// Say what is done, take what is asked for. False: there is nothing to move.
static bool exchange(struct ring *r, bool *more)
{
    pthread_mutex_lock(&r->lock);
    *more = r->nqueue > 0;
    for (int i = 0; i < r->nqueue; i++)
        flow_post(&r->flow, &r->queue[i]);
    r->nqueue = 0;
    if (r->done != flow_done(&r->flow)) {
        r->done = flow_done(&r->flow);
        memcpy(r->bytes, r->flow.bytes, sizeof r->bytes);
        memcpy(r->heads, r->flow.heads, sizeof r->heads);
    }
    r->driven = !r->stop && r->done < r->asked;
    if (!r->driven)
        pthread_cond_broadcast(&r->change);
    bool go = r->driven;
    pthread_mutex_unlock(&r->lock);
    return go;
}

// Until all that is asked for is done, or it fails. Entered with `driven` set.
static void drive(struct ring *r, uint64_t spin_ns)
{
    bool more = true;
    while (exchange(r, &more)) {
        if ((more || !flow_wait(&r->flow, spin_ns)) && !flow_advance(&r->flow))
            continue;
        pthread_mutex_lock(&r->lock);
        r->failed = true;
        snprintf(r->why, sizeof r->why, "%s", fail_message());
        pthread_cond_broadcast(&r->change);
        pthread_mutex_unlock(&r->lock);
        flow_abort(&r->flow); // and `driven` stays: nobody moves it any more
        return;
    }
}

static void *communicate(void *arg)
{
    struct ring *r = arg;
    pthread_mutex_lock(&r->lock);
    while (!r->stop && !r->failed) {
        if (r->driven || r->done == r->asked) {
            pthread_cond_wait(&r->change, &r->lock);
            continue;
        }
        r->driven = true;
        pthread_mutex_unlock(&r->lock);
        drive(r, 0);
        pthread_mutex_lock(&r->lock);
    }
    bool left = !r->failed && r->done < r->asked;
    pthread_mutex_unlock(&r->lock);
    if (left)
        flow_abort(&r->flow);
    return NULL;
}

// ---- the trainer's side

// `now`: the trainer goes on computing, so the thread must see to it.
static void ask(struct ring *r, struct task t, bool now)
{
    pthread_mutex_lock(&r->lock);
    r->queue[r->nqueue++] = t;
    r->asked++;
    bool driven = r->driven;
    if (now && !driven)
        pthread_cond_broadcast(&r->change);
    pthread_mutex_unlock(&r->lock);
    if (driven)
        r->transport->ops->wake(r->transport);
}

// Until all that was asked for is done. Whoever drives keeps the deadline: it
// ends every task or fails.
static int await(struct sync *s)
{
    struct ring *r = s->state;
    pthread_mutex_lock(&r->lock);
    while (r->done < r->asked && !r->failed) {
        if (r->driven) {
            pthread_cond_wait(&r->change, &r->lock);
            continue;
        }
        r->driven = true;
        pthread_mutex_unlock(&r->lock);
        drive(r, SPIN_NS);
        pthread_mutex_lock(&r->lock);
    }
    bool done = r->done == r->asked;
    s->stats.bytes_out = r->bytes[OUT];
    s->stats.bytes_in = r->bytes[IN];
    s->stats.head_out = r->heads[OUT];
    s->stats.head_in = r->heads[IN];
    pthread_mutex_unlock(&r->lock);
    return done ? 0 : fail("%s", r->why);
}

static int spread(struct sync *s, float *data)
{
    if (s->job.cluster->world == 1)
        return 0;
    ask(s->state, (struct task){.bcast = true, .data = data, .n = s->job.n},
        false);
    return await(s);
}

void ring_law(const struct sync_job *job, int rank, int world, double fusion_mb,
              size_t wire_bytes, uint64_t *out, uint64_t *in)
{
    size_t fusion = (size_t)(fusion_mb * 1024 * 1024 / sizeof(float));
    *out = *in = 0;
    for (int b = 0; b < job->nbuckets;) {
        struct bucket g;
        b += fusion_next(&g, job->buckets + b, job->nbuckets - b, fusion);
        *out += plan_elements(g.n, rank, world, OUT) * wire_bytes;
        *in += plan_elements(g.n, rank, world, IN) * wire_bytes;
    }
}

static int read_settings(struct settings *set, const struct sync_job *job)
{
    struct opts *o = job->opts;
    static const char *const types[] = {"fp32", "fp16", "bf16", NULL};
    static const char *const transports[] = {"auto", "tcp", "shm", NULL};
    int transport;
    // Whoever opens the transport reads it; a world of one has none.
    (void)opts_text(o, "iface", "");
    if (opts_word(o, "wire", DTYPE_F32, types, &set->wire) ||
        opts_word(o, "transport", 0, transports, &transport) ||
        fusion_read(job, &set->fusion_mb) ||
        opts_int(o, "slice_kb", 256, 1, 1 << 20, &set->slice_kb))
        return -1;
    return 0;
}

// All workers must cut alike, or they would wait for what never comes.
static int agree(const struct sync_job *job, const struct settings *set)
{
    char text[256];
    size_t bytes = (size_t)job->nbuckets * sizeof *job->buckets;
    if (text_into(text, sizeof text,
                  "sync=ring\nparameters=%zu\nbuckets=%d, hash %llx\nwire=%s\n"
                  "fusion_mb=%.9g\nslice_kb=%ld\n",
                  job->n, job->nbuckets,
                  (unsigned long long)hash_bytes(job->buckets, bytes),
                  dtype_name((enum dtype)set->wire), set->fusion_mb,
                  set->slice_kb))
        return -1;
    return cluster_agree(job->cluster, text);
}

static int open_wire(struct ring *r, int world)
{
    size_t most = 0, slice = (size_t)r->set.slice_kb * 1024;
    for (int g = 0; g < r->ngroups; g++)
        most = r->groups[g].n > most ? r->groups[g].n : most;
    return wire_open(&r->wire, (enum dtype)r->set.wire, world, most,
                     slice / sizeof(float));
}

static int start(struct ring *r)
{
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->change, NULL);
    r->locks = true;
    int error = pthread_create(&r->thread, NULL, communicate, r);
    if (error)
        return fail("ring: thread: %s", strerror(error));
    r->running = true;
    return 0;
}

static int ring_open(struct sync *s)
{
    struct ring *r = s->state;
    const struct sync_job *job = &s->job;
    if (read_settings(&r->set, job) || update_open(&r->update, job) ||
        agree(job, &r->set))
        return -1;
    r->ngroups = fusion_cut(&r->groups, job, r->set.fusion_mb);
    if (r->ngroups < 0)
        return -1;
    if (job->cluster->world == 1)
        return 0;
    size_t most = (size_t)r->ngroups;
    r->tasks = mem_alloc(most, sizeof *r->tasks);
    r->queue = mem_alloc(most, sizeof *r->queue);
    if (!r->tasks || !r->queue || open_wire(r, job->cluster->world) ||
        transport_open(&r->transport, &transport_tcp, job->cluster, job->opts))
        return -1;
    struct flow_config config = {
        .transport = r->transport,
        .wire = &r->wire,
        .tasks = r->tasks,
        .most = most,
        .slice_bytes = (size_t)r->set.slice_kb * 1024,
        .timeout_s = job->cluster->timeout_s,
        .in = spans_lane(job->spans, "ring in"),
        .out = spans_lane(job->spans, "ring out"),
    };
    flow_open(&r->flow, &config);
    return start(r);
}

static int ring_bcast(struct sync *s)
{
    return spread(s, s->job.params);
}

static int ring_ready(struct sync *s, int b)
{
    struct ring *r = s->state;
    const struct bucket *g = &r->groups[r->next];
    if (s->job.cluster->world == 1 || s->job.buckets[b].off > g->off)
        return 0;
    r->next = (r->next + 1) % r->ngroups;
    ask(r, (struct task){.data = s->job.grads + g->off, .n = g->n},
        r->next > 0);
    return 0;
}

static int ring_step(struct sync *s, const struct sync_in *in,
                     struct sync_out *out)
{
    struct ring *r = s->state;
    bool alone = s->job.cluster->world == 1;
    if (!alone && await(s))
        return fail("%s (step %d)", fail_message(), in->step);
    return update_step(&r->update, &s->job, in, alone ? 1 : r->wire.divisor,
                       out);
}

static int ring_get_state(struct sync *s, float *const *slots)
{
    const struct ring *r = s->state;
    return s->job.cluster->rank ? 0 : update_get(&r->update, &s->job, slots);
}

static int spread_slot(void *ctx, int i, float *vector)
{
    (void)i;
    return spread(ctx, vector);
}

static int ring_set_state(struct sync *s, const float *const *slots)
{
    struct ring *r = s->state;
    return update_set(&r->update, &s->job, slots, spread_slot, s);
}

static void ring_close(struct sync *s)
{
    struct ring *r = s->state;
    if (r->running) {
        pthread_mutex_lock(&r->lock);
        r->stop = true;
        pthread_cond_broadcast(&r->change);
        pthread_mutex_unlock(&r->lock);
        r->transport->ops->wake(r->transport);
        pthread_join(r->thread, NULL);
    }
    if (r->locks) {
        pthread_cond_destroy(&r->change);
        pthread_mutex_destroy(&r->lock);
    }
    transport_close(&r->transport);
    wire_close(&r->wire);
    mem_free(r->queue);
    mem_free(r->tasks);
    mem_free(r->groups);
    update_close(&r->update, &s->job);
}

const struct sync_ops sync_ring = {
    .name = "ring",
    .transport = "tcp",
    .help = "our own ring all-reduce over TCP; every worker updates",
    .state_size = sizeof(struct ring),
    .open = ring_open,
    .bcast = ring_bcast,
    .ready = ring_ready,
    .step = ring_step,
    .get_state = ring_get_state,
    .set_state = ring_set_state,
    .close = ring_close,
};
