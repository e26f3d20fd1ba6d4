// server_send.c - messages from a server to its workers, and the end of a
// worker or of the job.

#include "ps_server/server.h"

#include "base/base.h"

#include <stdarg.h>
#include <string.h>

static int send_message(struct server *s, const struct message_peer *to,
                        struct ps_head head, const struct payload *data)
{
    uint8_t raw[PS_HEAD];
    head.rank = s->described ? (uint32_t)s->job.index : 0;
    head.bytes = data->bytes;
    ps_head_put(raw, &head);
    return endpoint_send(s->endpoint, to, raw, PS_HEAD, data);
}

void server_send(struct server *s, int rank, struct ps_head head,
                 const void *data, size_t bytes)
{
    struct payload d = {.at = data, .bytes = bytes};
    (void)send_message(s, &s->peers[rank].id, head, &d);
}

void server_send_buffer(struct server *s, int rank, struct ps_head head,
                        struct buffer *b, size_t bytes)
{
    struct payload d = {b->data, bytes, buffer_sent, b};
    buffer_ref(b);
    if (send_message(s, &s->peers[rank].id, head, &d) < 0)
        server_fail(s, "%s", fail_message());
}

// The lowest rank that is alive: in an elastic job it saves.
static uint32_t lowest_alive(const struct server *s)
{
    uint32_t r = 0;
    while (r + 1 < (uint32_t)s->job.world && !s->peers[r].alive)
        r++;
    return r;
}

void server_send_result(struct server *s, int rank, struct ps_head head,
                        struct ps_result result)
{
    uint8_t raw[PS_RESULT_BYTES];
    result.served_out = s->served_out;
    result.served_in = s->served_in;
    result.used = s->used;
    head.order = lowest_alive(s);
    ps_result_put(raw, &result);
    server_send(s, rank, head, raw, sizeof raw);
}

void server_error(struct server *s, const struct message_peer *to,
                  const char *text)
{
    struct payload d = {.at = text, .bytes = strlen(text)};
    (void)send_message(s, to, (struct ps_head){.kind = PS_ERROR}, &d);
}

bool server_ping(struct server *s, int rank)
{
    struct payload none = {0};
    return !s->endpoint->ops->notices ||
           send_message(s, &s->peers[rank].id,
                        (struct ps_head){.kind = PS_PING}, &none) != 1;
}

// ---- workers that are gone, and deadlines

void server_fail(struct server *s, const char *fmt, ...)
{
    va_list args;
    if (s->failed)
        return;
    s->failed = true;
    va_start(args, fmt);
    vsnprintf(s->why, sizeof s->why, fmt, args);
    va_end(args);
    for (int r = 0; s->described && r < s->job.world; r++)
        if (s->peers[r].alive)
            server_error(s, &s->peers[r].id, s->why);
    rendezvous_abort(s->rendezvous, s->why);
}

void server_list(char *who, size_t size, int rank)
{
    size_t at = strlen(who);
    snprintf(who + at, size - at, "%srank %d", at ? ", " : "", rank);
}

bool server_anyone(const struct server *s)
{
    for (int r = 0; r < s->job.world; r++)
        if (s->peers[r].alive)
            return true;
    return false;
}

void server_check_done(struct server *s)
{
    for (int r = 0; r < s->job.world; r++)
        s->done |= s->peers[r].left && !server_anyone(s);
}

void server_lost(struct server *s, int rank, const char *why)
{
    struct peer *p = &s->peers[rank];
    if (!p->alive)
        return;
    p->alive = p->pull.waiting = false;
    if (!s->job.elastic) {
        server_fail(s, "worker rank %d is gone: %s", rank, why);
        return;
    }
    if (!s->running) { // it is like one that has not come yet
        log_line("server %d: worker rank %d is gone (%s); waiting for another",
                 s->job.index, rank, why);
        return;
    }
    log_line("server %d: worker rank %d is gone (%s); going on without it",
             s->job.index, rank, why);
    rendezvous_lost(s->rendezvous, rank);
    s->policy->lost(s, rank);
    server_check_done(s);
}

bool server_beside(const struct server *s, int rank)
{
    return s->job.beside && rank == s->job.index;
}

uint64_t server_patience_ns(const struct server *s)
{
    return (uint64_t)(s->job.timeout_s * 0.9e9);
}

bool server_is_busy(const struct server *s, int rank)
{
    uint64_t since = s->peers[rank].busy_ns;
    return since && now_ns() - since < server_patience_ns(s);
}
