// client_send.c - sends messages from a worker to a server.

#include "ps_worker/client.h"

#include "base/base.h"
#include "device/vector.h"

static int send_message(struct client *c, struct remote *r, struct ps_head h,
                        const struct payload *data)
{
    uint8_t raw[PS_HEAD];
    char why[512];
    h.rank = (uint32_t)c->job.rank;
    h.bytes = data->bytes;
    ps_head_put(raw, &h);
    int rc = endpoint_send(c->endpoint, &r->address, raw, PS_HEAD, data);
    if (!rc)
        return 0;
    snprintf(why, sizeof why, "%s", rc > 0 ? "is gone" : fail_message());
    return fail("server %s: %s", r->endpoint, why);
}

int client_send(struct client *c, struct remote *r, struct ps_head h,
                const void *data, size_t bytes)
{
    struct payload d = {.at = data, .bytes = bytes};
    if (!r->beside)
        c->stats.head_out += PS_HEAD + bytes;
    return send_message(c, r, h, &d);
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
    if (!r->beside) {
        c->stats.head_out += PS_HEAD;
        c->stats.bytes_out += d.bytes;
    }
    return send_message(c, r, h, &d);
}
