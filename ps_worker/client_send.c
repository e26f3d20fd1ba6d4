// client_send.c - sends messages from a worker to a server.

#include "ps_worker/client.h"

#include "base/base.h"
#include "device/vector.h"
#include "squeeze/squeeze.h"

static int send_message(struct client *c, struct remote *r, struct ps_head h,
                        const struct payload *data)
{
    uint8_t raw[PS_HEAD];
    h.rank = (uint32_t)c->job.rank;
    h.bytes = data->bytes;
    ps_head_put(raw, &h);
    int rc = endpoint_send(c->endpoint, &r->address, raw, PS_HEAD, data);
    return rc ? fail("server %s: %s", r->endpoint,
                     rc > 0 ? "is gone" : fail_message())
              : 0;
}

int client_send(struct client *c, struct remote *r, struct ps_head h,
                const void *data, size_t bytes)
{
    struct payload d = {.at = data, .bytes = bytes};
    if (!r->beside)
        c->stats.head_out += PS_HEAD + bytes;
    return send_message(c, r, h, &d);
}

// Sends a row, whose data count as payload.
static int send_payload(struct client *c, struct remote *r, struct ps_head h,
                        const struct payload *data)
{
    if (!r->beside) {
        c->stats.head_out += PS_HEAD;
        c->stats.bytes_out += data->bytes;
    }
    return send_message(c, r, h, data);
}

int client_send_row(struct client *c, struct remote *r, struct ps_head h,
                    const float *from, enum dtype wire)
{
    struct slice at = shard_slice(&r->shard, (int)h.row);
    // sent without a copy; the vector stays as it is until the answer comes
    struct payload d = {from + at.off, at.n * dtype_bytes(wire), message_lent,
                        NULL};
    h.dtype = wire;
    if (wire != DTYPE_F32) {
        struct buffer *b = buffer_get(c->half);
        if (!b)
            return -1;
        vector_cast_scaled(b->data, wire, from + at.off,
                           1 / ps_divisor(c->job.world, wire), at.n);
        d.at = b->data;
        d.sent = buffer_sent;
        d.hint = b;
    }
    return send_payload(c, r, h, &d);
}

int client_send_message(struct client *c, struct remote *r, struct ps_head h)
{
    struct slice at = shard_slice(&r->shard, (int)h.row);
    struct buffer *b = buffer_get(c->half);
    const struct sync_settings *set = &c->job.squeeze;
    uint64_t key =
        squeeze_stream(c->job.seed, c->run_step, c->job.rank, false, at.off);
    if (!b)
        return -1;
    float *x = residuals_add(&c->residuals, c->grads + at.off, at.off, at.n);
    c->squeeze->encode(set, key, x, at.n, b->data, c->scratch);
    if (c->residuals.fresh_speed)
        squeeze_clear_sent(set, b->data, at.n,
                           c->residuals.fresh_speed + at.off);
    h.what = PS_SQUEEZED;
    h.version = c->run_step;
    h.value = (double)c->updates;
    struct payload d = {b->data, c->squeeze->bytes(set, at.n), buffer_sent, b};
    return send_payload(c, r, h, &d);
}
