// wire.c - writes, reads and checks heads and small messages.

#include "ps_wire/wire.h"

#include "base/base.h"
#include "ps_wire/bytes.h"

#include <math.h>

enum { MAGIC = 0x534b434c }; // "LCKS"

static const char *const kind_names[PS_KINDS] = {
    [PS_HELLO] = "HELLO",   [PS_JOIN] = "JOIN",       [PS_SET] = "SET",
    [PS_PULL] = "PULL",     [PS_CLAIM] = "CLAIM",     [PS_STEP] = "STEP",
    [PS_PUSH] = "PUSH",     [PS_COMMIT] = "COMMIT",   [PS_DROP] = "DROP",
    [PS_BYE] = "BYE",       [PS_WELCOME] = "WELCOME", [PS_LATER] = "LATER",
    [PS_CREDIT] = "CREDIT", [PS_ADMIT] = "ADMIT",     [PS_LATE] = "LATE",
    [PS_AGAIN] = "AGAIN",   [PS_NORM] = "NORM",       [PS_RESULT] = "RESULT",
    [PS_SLICE] = "SLICE",   [PS_ERROR] = "ERROR",     [PS_PING] = "PING",
    [PS_CLOCK] = "CLOCK",   [PS_BUSY] = "BUSY",
};

const char *ps_kind_name(enum ps_kind kind)
{
    return kind > 0 && kind < PS_KINDS ? kind_names[kind] : "?";
}

void ps_head_put(uint8_t out[PS_HEAD], const struct ps_head *h)
{
    uint8_t *p = put_u32(out, MAGIC);
    p = put_u16(p, PS_VERSION);
    p = put_u16(p, (uint16_t)h->kind);
    p = put_u16(p, (uint16_t)h->dtype);
    p = put_u16(p, (uint16_t)h->what);
    p = put_u32(p, h->rank);
    p = put_u32(p, h->row);
    p = put_u32(p, h->epoch);
    p = put_u32(p, h->order);
    p = put_u32(p, 0);
    p = put_u64(p, h->round);
    p = put_u64(p, h->version);
    p = put_u64(p, h->bytes);
    p = put_f64(p, h->value);
    CHECK(p == out + PS_HEAD);
}

int ps_head_get(struct ps_head *out, const void *frame, size_t n)
{
    const uint8_t *p = frame;
    if (n != PS_HEAD)
        return fail("a head of %zu bytes instead of %d", n, PS_HEAD);
    uint32_t magic = get_u32(&p);
    if (magic != MAGIC)
        return fail("not a message of ours (it begins with %08x)", magic);
    unsigned version = get_u16(&p);
    if (version != PS_VERSION)
        return fail("protocol version %u, this side has %d; try: the same "
                    "build everywhere",
                    version, PS_VERSION);
    unsigned kind = get_u16(&p), dtype = get_u16(&p), what = get_u16(&p);
    struct ps_head h = {.rank = get_u32(&p), .row = get_u32(&p)};
    h.epoch = get_u32(&p);
    h.order = get_u32(&p);
    uint32_t zero = get_u32(&p);
    h.round = get_u64(&p);
    h.version = get_u64(&p);
    h.bytes = get_u64(&p);
    h.value = get_f64(&p);
    if (kind < PS_HELLO || kind >= PS_KINDS)
        return fail("a message of unknown kind %u", kind);
    bool row = kind == PS_SET || kind == PS_PUSH || kind == PS_SLICE;
    if (dtype > DTYPE_BF16 || what >= PS_WHATS || zero != 0 ||
        h.rank >= PS_MAX_WORLD || h.order >= PS_MAX_WORLD)
        return fail("%s with impossible numbers: format %u, vector %u, rank "
                    "%u, order %u",
                    kind_names[kind], dtype, what, h.rank, h.order);
    if (h.bytes > (row ? PS_MAX_SLICE : PS_MAX_DATA))
        return fail("%s of %llu bytes, more than %d", kind_names[kind],
                    (unsigned long long)h.bytes,
                    row ? PS_MAX_SLICE : PS_MAX_DATA);
    h.kind = (enum ps_kind)kind;
    h.dtype = (enum dtype)dtype;
    h.what = (enum ps_what)what;
    *out = h;
    return 0;
}

void ps_step_put(uint8_t out[PS_STEP_BYTES], const struct ps_step *s)
{
    uint8_t *p = put_u32(out, s->step);
    p = put_u32(p, s->skip);
    p = put_f32(p, s->lr);
    p = put_f32(p, s->grad_scale);
    p = put_f32(p, s->clip);
    CHECK(p == out + PS_STEP_BYTES);
}

int ps_step_get(struct ps_step *out, const void *data, size_t n)
{
    const uint8_t *p = data;
    if (n != PS_STEP_BYTES)
        return fail("STEP of %zu bytes instead of %d", n, PS_STEP_BYTES);
    struct ps_step s = {.step = get_u32(&p), .skip = get_u32(&p)};
    s.lr = get_f32(&p);
    s.grad_scale = get_f32(&p);
    s.clip = get_f32(&p);
    if (s.step < 1 || s.step > INT32_MAX || s.skip > 1 || !isfinite(s.lr) ||
        !isfinite(s.grad_scale) || s.grad_scale <= 0 || !isfinite(s.clip) ||
        s.clip < 0)
        return fail("STEP with impossible numbers: step %u, lr %g, scale %g, "
                    "clip %g",
                    s.step, (double)s.lr, (double)s.grad_scale, (double)s.clip);
    *out = s;
    return 0;
}

void ps_result_put(uint8_t out[PS_RESULT_BYTES], const struct ps_result *r)
{
    uint8_t *p = put_f64(out, r->norm);
    p = put_u32(p, r->skipped);
    p = put_u32(p, r->lag);
    p = put_u64(p, r->served_out);
    p = put_u64(p, r->served_in);
    p = put_u64(p, r->used);
    CHECK(p == out + PS_RESULT_BYTES);
}

int ps_result_get(struct ps_result *out, const void *data, size_t n)
{
    const uint8_t *p = data;
    if (n != PS_RESULT_BYTES)
        return fail("RESULT of %zu bytes instead of %d", n, PS_RESULT_BYTES);
    struct ps_result r = {.norm = get_f64(&p)};
    r.skipped = get_u32(&p);
    r.lag = get_u32(&p);
    r.served_out = get_u64(&p);
    r.served_in = get_u64(&p);
    r.used = get_u64(&p);
    if (r.skipped > 1 || r.lag > INT32_MAX)
        return fail("RESULT with impossible numbers: skipped %u, lag %u",
                    r.skipped, r.lag);
    *out = r;
    return 0;
}

int ps_window(int world)
{
    enum { EACH = 8, ALL = 64, LEAST = 2 };
    int share = ALL / world;
    return share > EACH ? EACH : share < LEAST ? LEAST : share;
}

float ps_divisor(int world, enum dtype wire)
{
    float d = 1;
    while (wire != DTYPE_F32 && d < (float)world)
        d *= 2;
    return d;
}
