// group.c - queues verbs, and decides which of two threads moves their data.
//
// A carrier is a state machine that some thread must drive. A caller that
// awaits a ticket drives the carrier. At other times a communication thread
// drives it, so that data move while the caller computes:
//
//     caller   post post post ....compute.... await |drives| update
//     thread        |drives.........................|
//
// When the caller awaits, the thread stops driving after its present poll step.
// If the caller is about to await a verb, that verb does not wake the thread at
// all. Without a thread (job.thread=false, or a carrier that cannot use one)
// data move inside the verbs and in group_await(). The deadline counts only
// while the caller awaits: as long as it computes, others may compute, too.
//
// A verb is posted by group_post(), begun by poll_step(), and done when the
// carrier's advance() says so. The group is in one of four states:
//
//              communicate() -> drive()              group_await() -> drive()
//     idle  ------------------------->  thread  idle ----------------> caller
//           <-------------------------               <----------------
//              exchange(): all is done,              exchange(): the ticket
//              or the caller awaits                  is done
//
//     Without a thread group_post() -> drive() enters `caller`, too, for one
//     poll step. A group of one stays idle: its verbs are done at once.
//
//     thread, caller  ---- give_up() ---->  failed, for good
//
//  1. done <= begun <= posted <= done + depth. Verb k has its place in the
//     queue from group_post() until it is done. In a group of one done =
//     posted, and begun stays 0.
//  2. At most one thread drives. `driven` is set, under the lock, before it
//     drives, and cleared in its last exchange(). After a failure it stays set.
//  3. Only the driver uses `begun` and g->moved, and calls begin(), advance()
//     and wait(), and abort() if it fails (give_up()). Any thread calls wake().
//     The caller calls share() before the first verb, follow(), and in
//     close_progress(), after the thread has ended, abort().
//  4. While `awaiting` is set the thread does not begin to drive. If it drives,
//     it stops at its next exchange(), for which wake() ends a sleep.
//  5. Once `failed` is set, `why` does not change, and every group_post() and
//     group_await() of a ticket that is not done fails with it.
//  6. Nobody misses a wake-up: whoever changes posted, done, driven, awaiting,
//     stop or failed so that another thread can go on signals `change`.

#include "group/group.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "device/device.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

// How long an awaiting caller spins after the last move, before it sleeps. It
// yields its core in each poll step, so spinning costs a busy machine little. A
// sleep costs the ring over TCP 3 % if there are more workers than cores. On
// the clock of a model, where no carrier is threaded, spinning takes no time.
enum { SPIN_NS = 100000 };

struct progress {
    bool running; // there is a thread; without it no lock is needed
    pthread_t thread;
    pthread_mutex_t lock; // of the members below
    pthread_cond_t change;
    struct group_op *queue;   // verb k at k % depth, until it is done
    uint64_t posted, done;    // tickets
    struct group_stats moved; // by the verbs that are done
    bool driven;              // some thread drives
    bool awaiting;            // the caller waits: the thread must not drive
    bool stop, failed;
    char why[512];
    uint64_t begun; // tickets that the carrier has; only the driver uses it
};

static void lock(struct progress *p)
{
    if (p->running)
        pthread_mutex_lock(&p->lock);
}

static void unlock(struct progress *p)
{
    if (p->running)
        pthread_mutex_unlock(&p->lock);
}

// ---- driving

struct driver {
    bool thread;           // else the caller
    uint64_t until;        // the ticket to stop at; 0: after one poll step
    uint64_t since_ns;     // see struct group
    uint64_t posted, done; // tickets, at its last look
};

// Tells the caller which verbs are done, and learns which verbs are posted.
// False: this driver has to stop.
static bool exchange(struct group *g, struct driver *d)
{
    struct progress *p = g->progress;
    lock(p);
    if (p->done != d->done) {
        p->done = d->done;
        p->moved = g->moved;
    }
    bool yields = d->thread && (p->awaiting || p->stop);
    bool go = !yields && p->done < p->posted && p->done < d->until;
    d->posted = p->posted;
    p->driven = go;
    if (!go && d->thread) // the caller may wait; it wakes the thread itself
        pthread_cond_broadcast(&p->change);
    unlock(p);
    return go;
}

// One poll step: begins new verbs, or sleeps first if there are none; then
// moves data.
static int poll_step(struct group *g, struct driver *d)
{
    struct progress *p = g->progress;
    bool waits = p->begun == d->posted;
    for (; p->begun < d->posted; p->begun++)
        if (g->ops->begin(g, &p->queue[p->begun % g->job.depth]))
            return -1;
    g->since_ns = d->since_ns;
    g->spin_ns = d->thread || !g->ops->threaded ? 0 : SPIN_NS;
    if (waits && g->ops->wait(g))
        return -1;
    return g->ops->advance(g, &d->done);
}

// The carrier has failed. No thread moves data any more.
static void give_up(struct group *g)
{
    struct progress *p = g->progress;
    lock(p);
    p->failed = true;
    snprintf(p->why, sizeof p->why, "%s", fail_message());
    pthread_cond_broadcast(&p->change);
    unlock(p);
    if (g->ops->abort)
        g->ops->abort(g);
    fail("%s", p->why); // abort() may have failed, too
}

// The caller holds the lock, which drive() releases while data move. After a
// failure `driven` stays set, so that no thread drives any more.
static int drive(struct group *g, struct driver d)
{
    struct progress *p = g->progress;
    int rc;
    d.posted = p->posted;
    d.done = p->done;
    p->driven = true;
    unlock(p);
    do
        rc = poll_step(g, &d);
    while (!rc && exchange(g, &d));
    if (rc)
        give_up(g);
    lock(p);
    return rc;
}

static void *communicate(void *arg)
{
    struct group *g = arg;
    struct progress *p = g->progress;
    lock(p);
    while (!p->stop && !p->failed) {
        if (p->driven || p->awaiting || p->done == p->posted)
            pthread_cond_wait(&p->change, &p->lock);
        else
            drive(g, (struct driver){.thread = true,
                                     .until = UINT64_MAX,
                                     .since_ns = UINT64_MAX});
    }
    unlock(p);
    return NULL;
}

// ---- verbs

static struct group_chunk own_chunk(const struct group *g,
                                    const struct group_vector *v)
{
    return group_chunk_of(v, g->job.grain, g->size, g->rank);
}

static void check_vector(const struct group *g, const struct group_vector *v)
{
    bool casts = v->type == DTYPE_F32 && dtype_bytes(v->wire) == 2;
    CHECK(v->wire == v->type || casts);
    if (v->lengths) {
        struct group_chunk last =
            group_chunk_of(v, g->job.grain, g->size, g->size - 1);
        CHECK(last.off + last.n == v->n);
    }
}

static void check_op(const struct group *g, const struct group_op *op)
{
    const struct group_vector *v = &op->vector, *given = &op->given;
    bool casts = group_casts(v);
    check_vector(g, v);
    CHECK(!casts || v->n <= g->job.largest);
    CHECK(!group_is_sum(op->verb) || dtype_bytes(v->type) >= 4);
    CHECK(v->scale == 1 || (group_is_sum(op->verb) && casts));
    CHECK(op->peer >= 0 && op->peer < g->size);
    CHECK(!group_needs_pairs(op->verb) || g->job.pairs);
    CHECK(!group_is_pair(op->verb) || op->peer != g->rank);
    if (op->verb != GROUP_ALL_TO_ALL)
        return;
    check_vector(g, given);
    CHECK(given->type == v->type && !group_casts(given) && !casts);
    CHECK(own_chunk(g, given).n == own_chunk(g, v).n);
}

// A carrier on the device does its part of the verb after the work that the
// compute queue has now, so after this copy.
static void copy_own(struct group *g, const struct group_op *op)
{
    struct group_chunk to = own_chunk(g, &op->vector);
    struct group_chunk from = own_chunk(g, &op->given);
    size_t bytes = to.n * dtype_bytes(op->vector.type);
    void *at = group_at(&op->vector, to.off);
    const void *own = group_at(&op->given, from.off);
    if (bytes > 0 && g->ops->on_device)
        g->job.dev->ops->copy(g->job.dev, DEVICE_COMPUTE, at, own, bytes);
    else if (bytes > 0)
        memcpy(at, own, bytes);
}

int group_post(struct group *g, const struct group_op *op, uint64_t *ticket)
{
    const struct group_vector *v = &op->vector;
    struct progress *p = g->progress;
    int rc = 0;
    check_op(g, op);
    if (op->verb == GROUP_ALL_TO_ALL)
        copy_own(g, op);
    lock(p);
    CHECK(p->failed || p->posted - p->done < g->job.depth);
    bool failed = p->failed, wakes = p->running && p->driven;
    if (!failed) {
        p->queue[p->posted++ % g->job.depth] = *op;
        if (g->size == 1)
            p->done = p->posted; // the sum of one vector is the vector
        else if (!p->running)
            rc = drive(g, (struct driver){.until = 0}); // moves what it can
        else if (!wakes && !v->awaited)
            pthread_cond_broadcast(&p->change);
    }
    unlock(p);
    if (failed)
        return fail("%s", p->why);
    if (wakes && g->ops->wake)
        g->ops->wake(g);
    if (!rc && ticket)
        *ticket = p->posted;
    return rc;
}

static int post_vector(struct group *g, enum group_verb verb,
                       const struct group_vector *v, int peer, uint64_t *ticket)
{
    const struct group_op op = {.verb = verb, .vector = *v, .peer = peer};
    return group_post(g, &op, ticket);
}

int group_all_reduce(struct group *g, const struct group_vector *v,
                     uint64_t *ticket)
{
    return post_vector(g, GROUP_ALL_REDUCE, v, 0, ticket);
}

int group_reduce_scatter(struct group *g, const struct group_vector *v,
                         uint64_t *ticket)
{
    return post_vector(g, GROUP_REDUCE_SCATTER, v, 0, ticket);
}

int group_all_gather(struct group *g, const struct group_vector *v,
                     uint64_t *ticket)
{
    return post_vector(g, GROUP_ALL_GATHER, v, 0, ticket);
}

int group_broadcast(struct group *g, const struct group_vector *v, int root,
                    uint64_t *ticket)
{
    return post_vector(g, GROUP_BROADCAST, v, root, ticket);
}

int group_reduce(struct group *g, const struct group_vector *v, int root,
                 uint64_t *ticket)
{
    return post_vector(g, GROUP_REDUCE, v, root, ticket);
}

int group_send(struct group *g, const struct group_vector *v, int to,
               uint64_t *ticket)
{
    return post_vector(g, GROUP_SEND, v, to, ticket);
}

int group_recv(struct group *g, const struct group_vector *v, int from,
               uint64_t *ticket)
{
    return post_vector(g, GROUP_RECV, v, from, ticket);
}

int group_all_to_all(struct group *g, const struct group_vector *given,
                     const struct group_vector *taken, uint64_t *ticket)
{
    const struct group_op op = {.verb = GROUP_ALL_TO_ALL,
                                .vector = *taken,
                                .given = *given};
    return group_post(g, &op, ticket);
}

int group_await(struct group *g, uint64_t ticket)
{
    struct progress *p = g->progress;
    struct driver d = {.until = ticket, .since_ns = now_ns()};
    lock(p);
    CHECK(ticket <= p->posted);
    while (p->done < ticket && !p->failed) {
        bool told = p->awaiting;
        p->awaiting = true;
        if (!p->driven) {
            drive(g, d);
            continue;
        }
        if (!told && g->ops->wake)
            g->ops->wake(g);
        pthread_cond_wait(&p->change, &p->lock);
    }
    if (p->awaiting && p->done < p->posted)
        pthread_cond_broadcast(&p->change); // the thread goes on
    p->awaiting = false;
    g->stats = p->moved;
    int rc = p->done < ticket ? fail("%s", p->why) : 0;
    unlock(p);
    return rc;
}

uint64_t group_waited(uint64_t since_ns, uint64_t moved_ns)
{
    uint64_t now = now_ns(), since = since_ns > moved_ns ? since_ns : moved_ns;
    return now > since ? now - since : 0;
}

int group_follow(struct group *g, uint64_t ticket)
{
    if (g->size == 1 || !g->ops->on_device)
        return group_await(g, ticket);
    g->ops->follow(g);
    return 0;
}

// ---- open and close

static int open_progress(struct group *g)
{
    struct progress *p = g->progress = mem_alloc(1, sizeof *p);
    if (!p)
        return -1;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->change, NULL);
    p->queue = mem_alloc(g->job.depth, sizeof *p->queue);
    return p->queue ? 0 : -1;
}

static int start_thread(struct group *g)
{
    struct progress *p = g->progress;
    p->running = true; // before the thread reads it
    int error = pthread_create(&p->thread, NULL, communicate, g);
    if (error)
        p->running = false;
    return error ? fail("%s: thread: %s", g->name, strerror(error)) : 0;
}

struct group *group_open(const struct group_ops *ops,
                         const struct group_job *job)
{
    struct group *g = mem_alloc(1, sizeof *g);
    if (!g)
        return NULL;
    CHECK(job->depth > 0);
    g->ops = ops;
    g->job = *job;
    g->job.grain = job->grain ? job->grain : ops->grain ? ops->grain : 1;
    g->job.slice_bytes = job->slice_bytes ? job->slice_bytes : 256 * 1024;
    g->job.iface = job->iface ? job->iface : "";
    g->name = job->name;
    g->rank = job->cluster->rank;
    g->size = job->cluster->world;
    g->state = mem_alloc(1, ops->state_size);
    if (!g->state || open_progress(g) || (g->size > 1 && ops->open(g)) ||
        (g->size > 1 && g->job.thread && ops->threaded && start_thread(g)))
        group_close(&g);
    return g;
}

static void close_progress(struct group *g)
{
    struct progress *p = g->progress;
    if (!p)
        return;
    if (p->running) {
        lock(p);
        p->stop = true;
        pthread_cond_broadcast(&p->change);
        unlock(p);
        if (g->ops->wake)
            g->ops->wake(g);
        pthread_join(p->thread, NULL);
    }
    if (!p->failed && p->done < p->posted && g->ops->abort)
        g->ops->abort(g);
    pthread_cond_destroy(&p->change);
    pthread_mutex_destroy(&p->lock);
    mem_free(p->queue);
    mem_free(p);
}

void group_close(struct group **g)
{
    if (!*g)
        return;
    close_progress(*g);
    if ((*g)->state && (*g)->size > 1)
        (*g)->ops->close(*g);
    mem_free((*g)->state);
    mem_free(*g);
    *g = NULL;
}

int group_share(struct group *g, void *data, size_t bytes)
{
    return g->size > 1 && g->ops->share ? g->ops->share(g, data, bytes) : 0;
}

// ---- counters

// s += sign * of, modulo 2^64.
static void combine(struct group_stats *s, const struct group_stats *of,
                    uint64_t sign)
{
    s->bytes_out += sign * of->bytes_out;
    s->bytes_in += sign * of->bytes_in;
    s->head_out += sign * of->head_out;
    s->head_in += sign * of->head_in;
    for (int v = 0; v < GROUP_VERBS; v++) {
        s->out[v] += sign * of->out[v];
        s->in[v] += sign * of->in[v];
    }
}

void group_stats_add(struct group_stats *s, const struct group_stats *more)
{
    combine(s, more, 1);
}

void group_stats_less(struct group_stats *s, const struct group_stats *less)
{
    combine(s, less, UINT64_MAX);
}

const char *group_verb_name(enum group_verb v)
{
    static const char *const names[GROUP_VERBS] = {
        "all_reduce", "reduce_scatter", "all_gather", "broadcast",
        "reduce",     "send",           "recv",       "all_to_all"};
    return names[v];
}
