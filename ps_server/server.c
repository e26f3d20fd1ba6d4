// server.c - receives messages and passes each to the function that handles it.
//
// Each message is checked twice: ps_wire checks its numbers against their
// limits; this file and the policies check whether it is allowed now. A peer
// that breaks the rules is dropped, with a log line that says why. The server
// continues.

#include "ps_server/server.h"
#include "ps_server/answers.h"
#include "ps_server/peers.h"

#include "base/base.h"
#include "ps_server/thread_pool.h"
#include "telemetry/align.h"
#include "telemetry/span.h"

// MAX_LINES: log lines about unauthenticated peers. MAX_REFUSALS: answers to
// them, which they may never read. After so many, each tick allows one more.
enum { MAX_LINES = 20, MAX_REFUSALS = 4096 };

static bool send_for_rendezvous(void *ctx, const struct message_peer *to,
                                const uint8_t head[RENDEZVOUS_HEAD],
                                const void *data, size_t bytes)
{
    const struct server *s = ctx;
    struct payload d = {.at = data, .bytes = bytes};
    return endpoint_send(s->endpoint, to, head, RENDEZVOUS_HEAD, &d) == 1;
}

// ---- messages

static int step_message(struct server *s, int rank, const struct ps_head *h,
                        const struct message *p)
{
    struct ps_step step;
    if (ps_step_get(&step, p->data, p->bytes))
        return -1;
    s->peers[rank].step = step;
    return s->policy->step(s, rank, h);
}

// Answers with this server's time, or learns the run's zero on this clock.
static void clock_message(struct server *s, int rank, const struct ps_head *h)
{
    struct ps_head answer = {.kind = PS_CLOCK, .round = align_host()};
    if (h->version)
        spans_set_zero(s->config.spans, h->version);
    answer.version = now_ns();
    if (!h->version)
        server_send(s, rank, answer, NULL, 0);
}

static int not_here(const struct ps_head *h)
{
    return fail("%s is not for this job", ps_kind_name(h->kind));
}

// Handles a message of a known worker. Returns 0, or -1 after fail().
static int message(struct server *s, int rank, const struct ps_head *h,
                   struct message **data)
{
    const struct policy *p = s->policy;
    if (h->rank != (uint32_t)rank)
        return fail("%s claims to be from rank %u", ps_kind_name(h->kind),
                    h->rank);
    if (h->kind != PS_BYE && !s->running)
        return fail("%s before all workers are here", ps_kind_name(h->kind));
    rendezvous_heard(s->rendezvous, rank);
    if (h->kind == PS_SET || h->kind == PS_PUSH)
        s->row_ns = now_ns();
    if (h->kind == PS_STEP || h->kind == PS_PUSH || h->kind == PS_CLAIM) {
        s->begun = true;
        rendezvous_back(s->rendezvous, rank);
    }
    switch (h->kind) {
    case PS_SET:
        return vectors_set(s, rank, h, (*data)->data);
    case PS_PULL:
        return vectors_pull(s, rank, h);
    case PS_STEP:
        return step_message(s, rank, h, *data);
    case PS_PUSH:
        return p->push(s, rank, h, data);
    case PS_COMMIT:
        return p->commit ? p->commit(s, rank, h) : not_here(h);
    case PS_CLAIM:
        return p->claim ? p->claim(s, rank, h) : not_here(h);
    case PS_DROP:
        return p->drop && s->job.elastic ? p->drop(s, rank, h) : not_here(h);
    case PS_JOIN:
        return p->join && s->job.elastic ? p->join(s, rank, h) : not_here(h);
    case PS_CLOCK:
        clock_message(s, rank, h);
        return 0;
    case PS_BUSY:
        peers_busy(s, rank);
        return 0;
    case PS_BYE:
        peers_goodbye(s, rank);
        return 0;
    default:
        return fail("%s is not for servers", ps_kind_name(h->kind));
    }
}

static void say_refused(struct server *s, const char *why)
{
    if (++s->refused <= MAX_LINES)
        log_line("server: refused a peer: %s%s", why,
                 s->refused == MAX_LINES ? " (further ones are not logged)"
                                         : "");
}

static void refuse(struct server *s, const struct message_peer *from, int rank,
                   const char *why)
{
    bool replies = rank >= 0 || s->refusals < MAX_REFUSALS;
    s->refusals += rank < 0 && replies;
    if (replies)
        server_error(s, from, why);
    if (rank >= 0) {
        log_line("server: dropped rank %d: %s", rank, why);
        server_lost(s, rank, why);
    } else {
        say_refused(s, why);
    }
}

static void dispatch(struct server *s, struct message **p)
{
    char why[512];
    struct ps_head h = {0};
    const struct message *m = *p;
    const struct message_peer from = m->from;
    int rank = -1, rc;
    if (m->head && rendezvous_is_head(m->head, m->head_bytes)) {
        if (rendezvous_receive(s->rendezvous, &from, m->head, m->head_bytes,
                               m->data, m->bytes))
            say_refused(s, fail_message());
        return;
    }
    if (!m->head)
        rc = fail("a message of too few or too many frames");
    else
        rc = ps_head_get(&h, m->head, m->head_bytes);
    rank = peers_find(s, &from, (int)h.rank);
    if (!rc && h.bytes != m->bytes)
        rc = fail("%s announces %llu bytes and has %zu", ps_kind_name(h.kind),
                  (unsigned long long)h.bytes, m->bytes);
    if (!rc && rank < 0 && h.kind == PS_HELLO)
        rc = peers_hello(s, &from, m->data, m->bytes);
    else if (!rc && rank < 0)
        rc = fail("%s from a peer that has not said HELLO",
                  ps_kind_name(h.kind));
    else if (!rc)
        rc = message(s, rank, &h, p);
    if (rc) {
        snprintf(why, sizeof why, "%s", fail_message());
        refuse(s, &from, rank, why);
    }
}

// Handle one message. Returns false if there is none.
static bool receive(struct server *s)
{
    struct message *p = endpoint_receive(s->endpoint);
    if (!p)
        return false;
    s->heard_ns = now_ns();
    span_begin(s->lane, SPAN_RECEIVE, -1);
    dispatch(s, &p);
    span_end(s->lane);
    message_drop(p);
    return true;
}

int server_open(struct server **out, const struct server_config *config)
{
    struct server *s = mem_alloc(1, sizeof *s);
    struct endpoint_config end = {.bind = config->bind,
                                  .curve = config->curve,
                                  .timeout_s = config->timeout_s};
    if (!s)
        return -1;
    s->config = *config;
    s->lane = spans_compute(config->spans);
    s->heard_ns = now_ns();
    if (thread_pool_open(&s->threads, config->threads) ||
        rendezvous_open(&s->rendezvous, send_for_rendezvous, s) ||
        endpoint_open(&s->endpoint, config->transport, &end)) {
        server_close(&s);
        return -1;
    }
    rendezvous_set_elastic(s->rendezvous, config->elastic);
    *out = s;
    return 0;
}

int server_run(struct server *s)
{
    uint64_t ticked = 0;
    while (!s->failed && !s->done && !atomic_load(&s->stop)) {
        bool drained = false;
        endpoint_wait(s->endpoint, 20);
        for (int i = 0; i < 64 && !s->failed && !s->done && !drained; i++)
            drained = !receive(s);
        if (now_ns() - ticked > 20000000u) {
            rendezvous_tick(s->rendezvous);
            peers_tick(s, drained);
            ticked = now_ns();
        }
    }
    return s->failed ? fail("%s", s->why) : 0;
}

void server_stop(struct server *s)
{
    atomic_store(&s->stop, true);
}

void server_close(struct server **server)
{
    struct server *s = *server;
    if (!s)
        return;
    if (s->policy)
        s->policy->close(s);      // gives back messages that it holds
    endpoint_close(&s->endpoint); // ends sends, which use the store's buffers
    answers_close(&s->answers);
    store_close(&s->store);
    mem_free(s->peers);
    rendezvous_close(&s->rendezvous);
    thread_pool_close(&s->threads);
    mem_free(s);
    *server = NULL;
}
