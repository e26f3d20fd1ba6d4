// no_numbers.c - what the linker puts in place of those functions of squeeze/
// and of the update that work on numbers.
//
// With payload=1 they call the functions that they replace. Else there are no
// numbers: messages keep their sizes, and all of them, of all ranks, have the
// same memory, which nobody reads.

#include "simulate/exchange.h"

#include "config/config.h"
#include "message/carry.h"
#include "optim/segment.h"
#include "squeeze/travel.h"

enum { ENTRY = 8 }; // bytes of an element and its index

// ---- compressors of messages

static void encode_nothing(const struct sync_settings *s, uint64_t key,
                           float *x, size_t n, void *message, void *scratch)
{
    (void)s;
    (void)key;
    (void)x;
    (void)n;
    (void)message;
    (void)scratch;
}

static int add_nothing(const struct sync_settings *s, const void *message,
                       size_t n, float *sum)
{
    (void)s;
    (void)message;
    (void)n;
    (void)sum;
    return 0;
}

REPLACES(squeeze_find);
const struct squeeze_ops *__wrap_squeeze_find(enum squeeze_kind kind)
{
    static struct squeeze_ops empty; // all ranks have the same compressor
    const struct squeeze_ops *ops = __real_squeeze_find(kind);
    if (!ops || contents_travel())
        return ops;
    empty = *ops;
    empty.scratch = NULL;
    empty.encode = encode_nothing;
    empty.add = add_nothing;
    return &empty;
}

REPLACES(travel_open);
int __wrap_travel_open(struct sync *s)
{
    struct squeezed *q = s->state;
    if (contents_travel())
        return __real_travel_open(s);
    for (int i = 0; i < q->nunits; i++)
        q->units[i].messages = q->units[i].given = carry_buffer(0);
    return 0;
}

// ---- shards

REPLACES(segment_squares);
void __wrap_segment_squares(const float *grads, size_t off, size_t n,
                            const struct norm_parts *parts, double *sums)
{
    if (contents_travel())
        __real_segment_squares(grads, off, n, parts, sums);
}

REPLACES(segment_update);
void __wrap_segment_update(const struct optim_config *c, float *params,
                           float *const *slots, const float *grads, size_t off,
                           size_t n, const struct rule_in *in, float scale)
{
    if (contents_travel())
        __real_segment_update(c, params, slots, grads, off, n, in, scale);
}

// ---- squeeze=power and demo

REPLACES(power_orthonormal);
void __wrap_power_orthonormal(float *v, int count, size_t n, uint64_t key)
{
    if (contents_travel())
        __real_power_orthonormal(v, count, n, key);
}

REPLACES(power_right);
void __wrap_power_right(const struct power_matrix *m, const float *x,
                        const float *q, float *p)
{
    if (contents_travel())
        __real_power_right(m, x, q, p);
}

REPLACES(power_left);
void __wrap_power_left(const struct power_matrix *m, const float *x,
                       const float *p, float *q)
{
    if (contents_travel())
        __real_power_left(m, x, p, q);
}

REPLACES(power_product);
void __wrap_power_product(const struct power_matrix *m, const float *p,
                          const float *q, float *out)
{
    if (contents_travel())
        __real_power_product(m, p, q, out);
}

REPLACES(demo_encode);
void __wrap_demo_encode(const struct sync_settings *s,
                        const struct demo_grid *g, float *x, void *message,
                        void *scratch)
{
    if (contents_travel())
        __real_demo_encode(s, g, x, message, scratch);
}

REPLACES(demo_signs);
void __wrap_demo_signs(const struct demo_grid *g, const void *messages,
                       int count, float *out, void *scratch)
{
    if (contents_travel())
        __real_demo_signs(g, messages, count, out, scratch);
}

REPLACES(demo_check);
int __wrap_demo_check(const struct demo_grid *g, const void *message)
{
    return contents_travel() ? __real_demo_check(g, message) : 0;
}

// ---- servers

// Without numbers the union is as long as if no two workers sent the same
// element. All ranks set these to the same.
static struct sync_settings settings;
static size_t workers;

void contents_union(const struct exchange *e)
{
    settings = e->run->settings;
    workers = (size_t)e->world;
}

REPLACES(squeeze_put_union);
size_t __wrap_squeeze_put_union(const float *x, size_t n, void *message)
{
    if (contents_travel())
        return __real_squeeze_put_union(x, n, message);
    size_t bytes = workers * ENTRY * squeeze_entries(&settings, n);
    return bytes < n * sizeof *x ? bytes : 0;
}

REPLACES(squeeze_add_union);
int __wrap_squeeze_add_union(const void *message, size_t bytes, size_t n,
                             float *sum)
{
    return contents_travel() ? __real_squeeze_add_union(message, bytes, n, sum)
                             : 0;
}
