// sync.c - the trainer's calls to a strategy pass through here.
//
// It compares the workers' settings, chooses the carrier, copies a GPU's
// vectors for backends that know host memory only, checks the order of calls,
// holds buckets back for overlap=0, slows a straggler down, makes faults and
// mistakes (fault.h), and takes the norm of a worker's own gradient
// (own_norm.h). It also runs the update: reduce, test for overflow, unscale,
// clip, update. With `outer` workers update by their own gradients, and merge()
// follows every few steps. Strategies with own_update (zero, dataparallel, and
// servers with update=server) do the same in the same order, with the functions
// of optim/.
//
// One call does not pass here: with sync=lab and mesh=tpN, train/slices.c sums
// the slices' parts by the student's function itself (homework/real_lab.h).

#include "sync/sync.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "config/backends.h"
#include "config/config.h"
#include "config/keys.h"
#include "device/busy.h"
#include "device/device.h"
#include "sync/copies.h"
#include "sync/fault.h"
#include "sync/members.h"
#include "sync/own_norm.h"
#include "sync/slots.h"

#include <math.h>
#include <string.h>

// The word of transport=. tcp and shm are the names of their carriers.
static const char *transport_word(const struct sync_job *job)
{
    const struct key *k = key_find(&run_keys, "transport");
    return k->words[job->settings->transport];
}

static void check_job(const struct sync_job *job)
{
    CHECK(job->backend && job->cluster && job->dev);
    CHECK(job->optim && job->settings);
    CHECK(job->params || job->settings->shard >= SHARD_PARAMS);
    CHECK(job->grads || job->settings->shard >= SHARD_GRADS);
    CHECK(job->n > 0 && job->nbuckets > 0);
    size_t end = job->n;
    for (int b = 0; b < job->nbuckets; b++) {
        const struct bucket *k = &job->buckets[b];
        CHECK(k->n > 0 && k->off + k->n == end);
        end = k->off;
    }
    CHECK(end == 0);
}

// All workers must use the same buckets and settings. Otherwise some would wait
// for messages that nobody sends.
static int check_same(const struct sync *s)
{
    const struct sync_job *job = &s->job;
    struct config_lines all = {.n = 0};
    size_t bytes = (size_t)job->nbuckets * sizeof *job->buckets;
    if (job->cluster->world == 1)
        return 0;
    config_line(&all, "sync=%s", job->backend->name);
    config_line(&all, "parameters=%zu", job->n);
    config_add_settings(&all, job->settings);
    config_line(&all, "buckets=%d, hash %llx", job->nbuckets,
                (unsigned long long)hash_bytes(job->buckets, bytes));
    return cluster_check_same(job->cluster, all.text);
}

// Whether transport= and squeeze= allow carrier c. Gradients are compressed in
// host memory.
static bool is_allowed(const struct sync_job *job, const struct group_ops *c)
{
    const struct sync_settings *set = job->settings;
    if (set->squeeze && c->on_device)
        return false;
    if (set->transport == TRANSPORT_AUTO)
        return true;
    return set->transport == TRANSPORT_LIBRARY
               ? c->library
               : !strcmp(c->name, transport_word(job));
}

// Chooses the first of the job's carriers that the settings allow and all
// workers support. A single worker sends nothing: it takes a carrier that needs
// no copies, and s->transport stays NULL.
static int choose_carrier(struct sync *s)
{
    const struct sync_job *job = &s->job;
    const struct group_ops *const *c = job->carriers;
    struct group_job members = {.name = job->backend->name,
                                .cluster = job->cluster,
                                .dev = job->dev};
    bool alone = job->cluster->world == 1, host = device_is_host(job->dev);
    char why[128] = "", rest[128];
    if (!c || !*c)
        return 0;
    for (; *c && !s->carrier; c++) {
        if (!is_allowed(job, *c))
            continue;
        int can = alone ? !(host && (*c)->on_device)
                        : group_is_supported(*c, &members, *why ? rest : why);
        if (can < 0)
            return -1;
        s->carrier = can ? *c : NULL;
    }
    if (!s->carrier)
        return fail("%s: transport=%s: %s; try: transport=auto",
                    job->backend->name, transport_word(job),
                    *why ? why : "it has no such carrier");
    if (alone)
        return 0;
    if (job->cluster->rank == 0 && *why && !s->carrier->on_device && !host)
        log_line("%s: %s: gradients go through host memory", job->backend->name,
                 why);
    s->transport = s->carrier->name;
    return 0;
}

struct sync *sync_open(const struct sync_ops *ops, const struct sync_job *job)
{
    check_job(job);
    struct sync *s = mem_alloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->ops = ops;
    s->job = *job;
    s->scale = 1;
    s->left_ns = now_ns();
    s->state = mem_alloc(1, ops->state_size);
    s->overlap = job->settings->overlap &&
                 job->settings->mistake.kind != MISTAKE_LOCAL_CLIP;
    s->lends_params = job->settings->shard >= SHARD_PARAMS;
    s->lends_grads = job->settings->shard >= SHARD_GRADS;
    if (!job->restarted &&
        job->settings->inject.rank ==
            cluster_job_rank(job->cluster->ranks, job->cluster->rank))
        s->fault = job->settings->inject;
    if (!s->state || check_same(s) || choose_carrier(s) || copies_open(s) ||
        fault_check(s) || own_norm_check(s) || ops->open(s) ||
        block_copies_open(s) ||
        (!s->own_update &&
         rule_open(&s->rule, job->dev, job->optim, job->n, job->folder)))
        sync_close(&s);
    return s;
}

// Returns rc to the trainer. A backend usually fails because another process
// has died. The short sleep lets the supervisor see that death, the cause,
// before this worker exits.
static int end_call(struct sync *s, int rc)
{
    s->left_ns = now_ns();
    if (rc)
        cluster_let_cause_show();
    return rc;
}

int sync_bcast(struct sync *s)
{
    if (s->lends_params)
        return 0; // every worker has filled its own ranges in
    copies_fetch_params(s);
    int rc = members_copy(s, SYNC_PARAMS, s->job.params);
    copies_send_params(s);
    return end_call(s, rc);
}

int sync_clock(struct sync *s, uint64_t zero_ns)
{
    return end_call(s, s->ops->clock ? s->ops->clock(s, zero_ns) : 0);
}

void sync_resume(struct sync *s, int steps)
{
    s->steps = (uint64_t)steps;
}

void sync_waited(struct sync *s, uint64_t took_ns)
{
    s->left_ns += took_ns;
}

// Counts the time since `start` as a wait of the trainer, in a call that
// returned rc. Returns 0 or -1, as rc says.
static int held_up(struct sync *s, uint64_t start, int rc)
{
    sync_waited(s, now_ns() - start);
    return rc ? end_call(s, rc) : 0;
}

int sync_scatter(struct sync *s, int32_t *x, int32_t *y, size_t n)
{
    uint64_t start = now_ns();
    return held_up(s, start, s->ops->scatter(s, x, y, n));
}

int sync_ready(struct sync *s, int b)
{
    CHECK(b == s->next_bucket && b < s->job.nbuckets);
    s->next_bucket++;
    block_copies_ready(s, s->job.nbuckets - 1 - b);
    if (b == 0)
        fault_gradient(s);
    own_norm_add(s, b);
    if (s->ops->merge)
        return 0; // gradients stay where they are
    if (s->copies && !s->lends_grads) {
        copies_ready(s, b); // sync_step() sends it
        return 0;
    }
    if (!s->ops->ready || (!s->overlap && !s->lends_grads))
        return 0;
    return s->ops->ready(s, b) ? end_call(s, -1) : 0;
}

int sync_take(struct sync *s, int b, bool backward, struct sync_place *out)
{
    CHECK(s->lends_grads && b >= 0 && b < s->job.nbuckets);
    if (backward && b == s->job.nbuckets - 1)
        s->next_bucket = 0; // the backward of another micro-batch begins
    uint64_t start = now_ns();
    int rc = s->ops->take(s, b, backward, &s->place);
    if (!rc)
        block_copies_take(s, b, out);
    return held_up(s, start, rc);
}

int sync_give(struct sync *s, int b)
{
    return s->ops->give(s, b) ? end_call(s, -1) : 0;
}

// Pass on the buckets that ready() has not had yet. With overlap=0 these are
// all of them. With copies, each follows as soon as it is in host memory, while
// the device goes on with backward.
static int pass_on_buckets(struct sync *s, const struct sync_in *in)
{
    int n = s->job.nbuckets;
    if (s->lends_grads || s->ops->merge)
        return 0; // no bucket was held back
    if (!s->overlap)
        copies_await(s, n - 1);
    fault_clip(s, in);
    for (int b = 0; (s->copies || !s->overlap) && b < n; b++) {
        copies_await(s, b);
        if (s->ops->ready && s->ops->ready(s, b))
            return -1;
    }
    return 0;
}

// The vectors that the update works on. With copies the sum is first copied to
// the device; with merge() the gradients never left it.
static void find_vectors(struct sync *s, float **params, float **grads)
{
    *params = s->job.params;
    *grads = s->job.grads;
    if (!s->copies)
        return;
    *params = s->copies->params;
    *grads = s->copies->grads;
    if (!s->ops->merge)
        copies_send_grads(s);
}

// Whether the update may be queued before the sum is complete: the carrier and
// the rule both work in the device's queues.
static bool runs_ahead(const struct sync *s)
{
    return s->ops->settle && s->carrier && s->carrier->on_device &&
           rule_runs_ahead(&s->rule);
}

struct settling {
    struct sync *s;
    struct sync_out *out;
};

// In the host's records, the update begins when the sum is complete.
static int settle(void *ctx)
{
    const struct settling *x = ctx;
    int rc = x->s->ops->settle(x->s);
    x->out->update_began_ns = now_ns();
    return rc;
}

// The update by this worker, on its own device.
static int update(struct sync *s, const struct sync_in *in,
                  struct sync_out *out)
{
    const struct sync_job *job = &s->job;
    float *params, *grads;
    const struct sync_mistake *mistake = &job->settings->mistake;
    int times = mistake->kind == MISTAKE_TWO_UPDATES ? 2 : 1;
    bool ahead = runs_ahead(s);
    struct settling x = {s, out};
    struct rule_in rule = {
        .lr = in->lr,
        .scale = s->gives_update ? 1 : in->grad_scale / s->scale,
        .clip = mistake->kind == MISTAKE_LOCAL_CLIP ? 0 : in->clip,
        .frozen = s->gives_moment,
        .copy = job->copy,
        .parts = job->parts,
        .settle = ahead ? settle : NULL,
        .ctx = &x,
    };
    if (s->ops->settle && (ahead ? s->ops->follow(s) : s->ops->settle(s)))
        return -1;
    out->update_began_ns = now_ns();
    find_vectors(s, &params, &grads);
    busy_begin(job->dev, DEVICE_COMPUTE);
    for (int k = 1; k <= times; k++) {
        rule.step = times * (in->step - 1) + k;
        if (rule_step(&s->rule, params, grads, &rule, &out->grad_norm))
            return -1;
    }
    busy_end(job->dev, DEVICE_COMPUTE);
    out->skipped = !isfinite(out->grad_norm);
    out->update_ended_ns = now_ns();
    return 0;
}

// Add the step of the run to the message of a failure.
static int name_step(const struct sync_in *in)
{
    return fail("%s (step %d)", fail_message(), in->step + in->skipped);
}

// Workers have updated by their own gradients. Every settings.every steps, and
// after the last, they get the same parameters: with copies, on the host.
static int merge(struct sync *s, const struct sync_in *in, struct sync_out *out)
{
    const struct sync_job *job = &s->job;
    s->alone++;
    out->lag = s->alone * (job->cluster->world - 1);
    if ((in->step + in->skipped) % job->settings->every && !in->last)
        return 0;
    copies_fetch_params(s);
    if (s->ops->merge(s))
        return name_step(in);
    copies_send_params(s);
    if (job->copy)
        job->copy->fresh = false;
    s->alone = out->lag = 0;
    return 0;
}

// Make the next parameters: the strategy or sync.c updates.
static int take_step(struct sync *s, const struct sync_in *in,
                     struct sync_out *out)
{
    if (pass_on_buckets(s, in) || (s->ops->step && s->ops->step(s, in, out)) ||
        (!s->own_update && update(s, in, out)))
        return name_step(in);
    if (s->ops->updated)
        s->ops->updated(s, out->skipped);
    s->steps = (uint64_t)in->step + (uint64_t)in->skipped;
    if (s->ops->merge)
        return merge(s, in, out);
    if (s->own_update)
        copies_send_params(s);
    return 0;
}

// Make a straggler's own time since the last step `slowdown` times as long.
static void slow_down(const struct sync *s, struct sync_out *out)
{
    device_finish(s->job.dev); // measure the work, not only its launch
    out->slowed_began_ns = now_ns();
    double own = (double)(out->slowed_began_ns - s->left_ns);
    sleep_ns((uint64_t)(own * (s->job.slowdown - 1)));
    out->slowed_ended_ns = now_ns();
}

int sync_step(struct sync *s, const struct sync_in *in, struct sync_out *out)
{
    CHECK(s->next_bucket == s->job.nbuckets);
    CHECK(in->step >= 1 && in->grad_scale > 0);
    CHECK(!s->gives_moment || in->grad_scale == s->job.grad_scale);
    s->next_bucket = 0;
    s->calls++;
    *out = (struct sync_out){0};
    if (s->job.slowdown > 1)
        slow_down(s, out);
    if (fault_step(s))
        return -1;
    int rc = take_step(s, in, out);
    out->own_norm = own_norm_take(s, in);
    if (!s->counts)
        out->used = out->skipped ? 0 : s->job.cluster->world;
    return end_call(s, rc);
}

int sync_await(struct sync *s, size_t off, size_t n)
{
    if (!s->coming || n == 0)
        return 0;
    uint64_t start = now_ns();
    return held_up(s, start, s->ops->await(s, off, n));
}

int sync_whole(struct sync *s)
{
    if (sync_await(s, 0, s->job.n))
        return -1;
    return s->copy_only ? end_call(s, s->ops->whole(s)) : 0;
}

static const struct sync_state_ops *state_of(const struct sync *s)
{
    return s->ops->state ? s->ops->state : &slots_of_rule;
}

int sync_save(struct sync *s, sync_visit *visit, void *ctx)
{
    return end_call(s, state_of(s)->save(s, visit, ctx));
}

int sync_load(struct sync *s, sync_visit *visit, void *ctx)
{
    return end_call(s, state_of(s)->load(s, visit, ctx));
}

int sync_work(struct sync *s, int (*work)(void *ctx), void *ctx)
{
    return s->ops->work ? s->ops->work(s, work, ctx) : work(ctx);
}

int sync_slots(const struct sync *s)
{
    return state_of(s)->slots(s);
}

void sync_slot_name(const struct sync *s, int slot, char name[SYNC_SLOT_NAME])
{
    state_of(s)->slot_name(s, slot, name);
}

int sync_ranges(struct sync *s, int what, sync_visit *visit, void *ctx)
{
    CHECK(what == SYNC_PARAMS ? s->lends_params : s->lends_grads);
    return end_call(s, s->ops->ranges(s, what, visit, ctx));
}

void sync_close(struct sync **s)
{
    if (!*s)
        return;
    group_close(&(*s)->group);
    block_copies_close(*s);
    if ((*s)->state && (*s)->ops->close)
        (*s)->ops->close(*s);
    rule_close(&(*s)->rule);
    copies_close(*s);
    mem_free((*s)->state);
    mem_free(*s);
    *s = NULL;
}
