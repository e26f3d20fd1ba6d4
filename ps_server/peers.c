// peers.c - which workers are connected, expected or gone.

#include "ps_server/peers.h"
#include "ps_server/answers.h"

#include "base/base.h"

static bool speaks(const struct server *s, int rank,
                   const struct message_peer *from)
{
    return s->peers[rank].alive && message_same_peer(&s->peers[rank].id, from);
}

int peers_find(const struct server *s, const struct message_peer *from,
               int likely)
{
    if (!s->described)
        return -1;
    if (likely < s->job.world && speaks(s, likely, from))
        return likely;
    for (int r = 0; r < s->job.world; r++)
        if (speaks(s, r, from))
            return r;
    return -1;
}

// Allocates the job's memory. It is called after all workers have described the
// job, so that one message of an unauthenticated peer cannot make the server
// allocate.
static int equip(struct server *s)
{
    if (store_open(&s->store, &s->job, s->threads) ||
        (s->job.squeeze.squeeze &&
         answers_open(&s->answers, &s->job, s->store)))
        return -1;
    s->policy =
        s->job.consistency == CONSISTENCY_BSP ? &policy_bsp : &policy_async;
    return s->policy->open(s);
}

static void begin_if_all(struct server *s)
{
    for (int r = 0; r < s->job.world; r++)
        if (!s->peers[r].alive)
            return;
    if (equip(s)) {
        server_fail(s, "%s", fail_message());
        return;
    }
    s->running = true;
    for (int r = 0; r < s->job.world; r++)
        server_send(s, r, (struct ps_head){.kind = PS_WELCOME}, NULL, 0);
    if (s->policy->begin)
        s->policy->begin(s);
}

// Fails if parameters and their sum do not fit into the free memory.
static int check_memory(const struct ps_job *j)
{
    char need[32], have[32];
    size_t bytes = 2 * sizeof(float) * (j->n / (uint64_t)j->servers);
    size_t available = mem_available();
    if (available && bytes > available)
        return fail("rank %d describes a model whose part on this server "
                    "needs %s, but only %s are free; try: more servers=",
                    j->rank, mem_text(need, bytes), mem_text(have, available));
    return 0;
}

static int check_config(const struct server_config *c, const struct ps_job *j)
{
    if (c->world && c->world != j->world)
        return fail("rank %d has world=%d, but this server has world=%d",
                    j->rank, j->world, c->world);
    if (c->servers && c->servers != j->servers)
        return fail("rank %d has %d servers, but this server has %d", j->rank,
                    j->servers, c->servers);
    if (c->index >= 0 && c->index != j->index)
        return fail("rank %d expects server %d here, this is server %d; try: "
                    "list servers= by index",
                    j->rank, j->index, c->index);
    return 0;
}

// The first HELLO describes the job.
static int describe(struct server *s, const struct ps_job *j)
{
    s->peers = mem_alloc((size_t)j->world, sizeof *s->peers);
    if (!s->peers)
        return -1;
    s->job = *j;
    s->round = 1;
    s->hello_ns = s->said_ns = now_ns();
    rendezvous_set_elastic(s->rendezvous, j->elastic);
    s->described = true;
    return 0;
}

// Before the first gradient, a worker that comes again is like one that comes
// first: perhaps worker 0 has died before it has set the parameters.
static void admit(struct server *s, const struct message_peer *from, int rank)
{
    struct peer *p = &s->peers[rank];
    uint8_t *row_state = p->row_state;
    *p = (struct peer){
        .id = *from,
        .alive = true,
        .row_state = row_state,
        .from = s->begun ? UINT64_MAX : 1,
    };
    if (!s->running) {
        begin_if_all(s);
        return;
    }
    struct ps_head h = {.kind = PS_WELCOME, .version = s->begun};
    s->policy->welcome(s, rank, &h);
    server_send(s, rank, h, NULL, 0);
}

// A worker introduces itself. A malformed HELLO only drops its sender. A HELLO
// that describes another job ends the job for all, unless the job already runs.
int peers_hello(struct server *s, const struct message_peer *from,
                const void *data, size_t bytes)
{
    struct ps_job j;
    if (ps_job_get(&j, data, bytes))
        return -1;
    if (check_config(&s->config, &j) || check_memory(&j) ||
        (!s->described && describe(s, &j)))
        return -1;
    if (ps_job_same(&s->job, &j) || j.index != s->job.index) {
        char why[512];
        if (j.index != s->job.index)
            fail("settings differ: rank %d expects server %d, found %d", j.rank,
                 j.index, s->job.index);
        snprintf(why, sizeof why, "%s", fail_message());
        if (!s->running)
            server_fail(s, "%s", why);
        return fail("%s", why);
    }
    if (s->peers[j.rank].alive && !server_ping(s, j.rank))
        server_lost(s, j.rank, "its connection closed");
    if (s->peers[j.rank].alive)
        return fail("another worker has rank %d already; try: a different "
                    "rank= for each worker",
                    j.rank);
    if (s->running && !s->job.elastic)
        return fail("rank %d comes too late: the job runs; try: elastic=1",
                    j.rank);
    admit(s, from, j.rank);
    return 0;
}

void peers_goodbye(struct server *s, int rank)
{
    s->peers[rank].left = true;
    s->peers[rank].alive = s->peers[rank].pull.waiting = false;
    if (s->running)
        s->policy->left(s, rank);
    else
        server_fail(s, "a worker left before all were here");
    server_check_done(s);
}

static void say_busy(struct server *s, int but)
{
    for (int r = 0; r < s->job.world; r++)
        if (r != but && s->peers[r].alive)
            server_send(s, r, (struct ps_head){.kind = PS_BUSY}, NULL, 0);
}

void peers_busy(struct server *s, int rank)
{
    s->peers[rank].busy_ns = now_ns();
    say_busy(s, rank);
}

// ---- time passes

// After all messages are read: a worker whose connection is closed did not say
// BYE, so it is lost.
static void drop_closed(struct server *s)
{
    for (int r = 0; s->described && r < s->job.world && !s->failed; r++)
        if (s->peers[r].alive && s->peers[r].closed)
            server_lost(s, r, "its connection closed");
}

// The server notices that a peer's connection is gone when sending to it fails.
// The peer's last messages may still wait to be read, so ping() only marks it.
static void ping(struct server *s, uint64_t now)
{
    uint64_t every = (uint64_t)(s->job.timeout_s * 0.1e9);
    if (every > 500000000u)
        every = 500000000u;
    if (!s->described || now - s->pinged_ns < every)
        return;
    s->pinged_ns = now;
    for (int r = 0; r < s->job.world; r++)
        if (s->peers[r].alive && !server_ping(s, r))
            s->peers[r].closed = true;
}

static void await_workers(struct server *s, uint64_t now)
{
    char who[256] = "";
    int missing = 0;
    for (int r = 0; r < s->job.world; r++) {
        if (s->peers[r].alive)
            continue;
        missing++;
        server_list(who, sizeof who, r);
    }
    double waited = (double)(now - s->hello_ns) * 1e-9;
    if (now - s->hello_ns > server_patience_ns(s)) {
        server_fail(s, "%d of %d workers did not come within %.3g s: %s",
                    missing, s->job.world, s->job.timeout_s, who);
    } else if (now - s->said_ns > 5000000000u) {
        log_line("waiting for %d of %d workers (%s), %.0f s of %.3g s", missing,
                 s->job.world, who, waited, s->job.timeout_s);
        s->said_ns = now;
    }
}

static void await_first(struct server *s, uint64_t now)
{
    if (now - s->heard_ns >= (uint64_t)(s->config.timeout_s * 1e9))
        server_fail(s, "no worker came within %.3g s; try: timeout=",
                    s->config.timeout_s);
}

// Behind a slow link the rows of all workers may take longer than the deadline.
// As long as some come, workers are told that others are at work.
static void tell_to_wait(struct server *s, uint64_t now)
{
    if (s->row_ns < s->told_ns || now - s->told_ns < server_patience_ns(s) / 4)
        return;
    s->told_ns = now;
    say_busy(s, -1);
}

void peers_tick(struct server *s, bool drained)
{
    uint64_t now = now_ns();
    s->refusals -= s->refusals > 0;
    if (drained)
        drop_closed(s);
    ping(s, now);
    if (s->failed || s->done)
        return;
    if (s->row_ns > 0)
        tell_to_wait(s, now);
    if (!s->described)
        await_first(s, now);
    else if (!s->running)
        await_workers(s, now);
    else if (server_anyone(s))
        s->policy->tick(s);
    else if (now - s->heard_ns > server_patience_ns(s))
        server_fail(s, "no worker is left, and none joins");
}
