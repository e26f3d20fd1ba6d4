// job.c - the message of the handshake: writes it, reads and checks it, and
// compares the messages of two workers.

#include "ps_wire/job.h"

#include "base/base.h"
#include "ps_wire/bytes.h"
#include "ps_wire/wire.h"

#include <math.h>

enum {
    FLAG_BESIDE = 1,
    FLAG_WORKER = 2,
    FLAG_ELASTIC = 4,
    FLAG_PRIORITY = 8,
    FLAG_FEEDBACK = 16
};

// Bytes before the list of ranges that decay.
enum { FIXED = 120 };

void ps_job_squeeze(struct ps_job *j, const struct sync_settings *from)
{
    j->squeeze = (struct sync_settings){.squeeze = from->squeeze,
                                        .density = from->density,
                                        .levels = from->levels,
                                        .feedback = from->feedback};
}

size_t ps_job_put(uint8_t *out, const struct ps_job *j)
{
    uint32_t flags =
        (j->beside ? FLAG_BESIDE : 0) | (j->worker_updates ? FLAG_WORKER : 0) |
        (j->elastic ? FLAG_ELASTIC : 0) | (j->priority ? FLAG_PRIORITY : 0) |
        (j->squeeze.feedback ? FLAG_FEEDBACK : 0);
    uint8_t *p = put_u32(out, (uint32_t)j->rank);
    p = put_u32(p, (uint32_t)j->world);
    p = put_u32(p, (uint32_t)j->index);
    p = put_u32(p, (uint32_t)j->servers);
    p = put_u64(p, j->n);
    p = put_u64(p, j->slice);
    p = put_u32(p, (uint32_t)j->wire);
    p = put_u32(p, (uint32_t)j->consistency);
    p = put_u32(p, (uint32_t)j->bound);
    p = put_u32(p, (uint32_t)j->backup);
    p = put_u32(p, flags);
    p = put_u64(p, j->layout);
    p = put_f64(p, j->timeout_s);
    p = put_u32(p, j->optim.kind);
    p = put_f32(p, j->optim.beta1);
    p = put_f32(p, j->optim.beta2);
    p = put_f32(p, j->optim.eps);
    p = put_f32(p, j->optim.weight_decay);
    p = put_f32(p, j->optim.momentum);
    p = put_u32(p, j->optim.ndecay);
    p = put_u32(p, (uint32_t)j->squeeze.squeeze);
    p = put_u32(p, (uint32_t)j->squeeze.levels);
    p = put_f64(p, j->squeeze.density);
    p = put_u64(p, j->seed);
    CHECK(p == out + FIXED && j->optim.ndecay <= OPTIM_MAX_DECAY);
    for (uint32_t i = 0; i < j->optim.ndecay; i++) {
        p = put_u64(p, j->optim.decay[i].off);
        p = put_u64(p, j->optim.decay[i].n);
    }
    return (size_t)(p - out);
}

static int check_optim(const struct optim_config *o, uint64_t n)
{
    const float numbers[] = {o->beta1, o->beta2, o->eps, o->weight_decay,
                             o->momentum};
    if (o->kind > OPTIM_SGD)
        return fail("HELLO: unknown optimiser %u", o->kind);
    for (int i = 0; i < 5; i++)
        if (!isfinite(numbers[i]) || numbers[i] < 0)
            return fail("HELLO: the optimiser has a setting %g",
                        (double)numbers[i]);
    uint64_t end = 0;
    for (uint32_t i = 0; i < o->ndecay; i++) {
        const struct optim_range *r = &o->decay[i];
        if (r->off < end || r->off > n || r->n > n - r->off)
            return fail("HELLO: range %u that decays is not in order", i);
        end = r->off + r->n;
    }
    return 0;
}

static int check_squeeze(const struct ps_job *j)
{
    const struct sync_settings *s = &j->squeeze;
    if (s->squeeze == SQUEEZE_NONE)
        return isfinite(s->density) ? 0 : fail("HELLO: density %g", s->density);
    if ((unsigned)s->squeeze >= SQUEEZE_KINDS || s->squeeze == SQUEEZE_POWER ||
        s->squeeze == SQUEEZE_DEMO || s->levels < 1 || s->levels > 127 ||
        !(s->density > 0 && s->density <= 1))
        return fail("HELLO: compressor %u, levels %d, density %g",
                    (unsigned)s->squeeze, s->levels, s->density);
    if (!j->worker_updates || j->wire != DTYPE_F32)
        return fail("HELLO: squeeze= requires update=worker and wire=fp32");
    return 0;
}

static int check(const struct ps_job *j)
{
    uint64_t most = PS_MAX_SLICE / sizeof(float);
    if (j->world < 1 || j->world > PS_MAX_WORLD || j->rank < 0 ||
        j->rank >= j->world)
        return fail("HELLO: rank %d of world %d", j->rank, j->world);
    if (j->servers < 1 || j->servers > PS_MAX_WORLD || j->index < 0 ||
        j->index >= j->servers)
        return fail("HELLO: server %d of %d", j->index, j->servers);
    if (j->n < 1 || j->n > (uint64_t)1 << 40 || j->slice < 1 || j->slice > most)
        return fail("HELLO: %llu elements in slices of %llu",
                    (unsigned long long)j->n, (unsigned long long)j->slice);
    if (j->wire > DTYPE_BF16 || j->consistency > CONSISTENCY_ASP ||
        j->bound < 0 || j->backup < 0 || j->backup >= j->world)
        return fail("HELLO: wire %d, consistency %d, bound %d, backup %d of %d",
                    (int)j->wire, (int)j->consistency, j->bound, j->backup,
                    j->world);
    if (!(j->timeout_s > 0 && j->timeout_s < 1e6))
        return fail("HELLO: timeout %g s", j->timeout_s);
    bool bsp = j->consistency == CONSISTENCY_BSP;
    if ((j->worker_updates && (!bsp || j->backup || j->elastic)) ||
        (j->backup && (!bsp || j->elastic)))
        return fail("HELLO: update=worker and backup= require consistency=bsp "
                    "and elastic=0, and exclude each other");
    return check_squeeze(j) || check_optim(&j->optim, j->n) ? -1 : 0;
}

int ps_job_get(struct ps_job *out, const void *data, size_t n)
{
    const uint8_t *p = data;
    if (n < FIXED)
        return fail("HELLO of %zu bytes, at least %d are needed", n, FIXED);
    struct ps_job j = {.rank = (int)get_u32(&p), .world = (int)get_u32(&p)};
    j.index = (int)get_u32(&p);
    j.servers = (int)get_u32(&p);
    j.n = get_u64(&p);
    j.slice = get_u64(&p);
    j.wire = (enum dtype)get_u32(&p);
    j.consistency = (enum consistency)get_u32(&p);
    j.bound = (int)get_u32(&p);
    j.backup = (int)get_u32(&p);
    uint32_t flags = get_u32(&p);
    j.beside = flags & FLAG_BESIDE;
    j.worker_updates = flags & FLAG_WORKER;
    j.elastic = flags & FLAG_ELASTIC;
    j.priority = flags & FLAG_PRIORITY;
    j.layout = get_u64(&p);
    j.timeout_s = get_f64(&p);
    j.optim.kind = get_u32(&p);
    j.optim.beta1 = get_f32(&p);
    j.optim.beta2 = get_f32(&p);
    j.optim.eps = get_f32(&p);
    j.optim.weight_decay = get_f32(&p);
    j.optim.momentum = get_f32(&p);
    j.optim.ndecay = get_u32(&p);
    j.squeeze.squeeze = (enum squeeze_kind)get_u32(&p);
    j.squeeze.levels = (int)get_u32(&p);
    j.squeeze.density = get_f64(&p);
    j.squeeze.feedback = flags & FLAG_FEEDBACK ? 1 : 0;
    j.seed = get_u64(&p);
    if (j.optim.ndecay > OPTIM_MAX_DECAY ||
        n != FIXED + 16 * (size_t)j.optim.ndecay)
        return fail("HELLO of %zu bytes with %u ranges that decay", n,
                    j.optim.ndecay);
    for (uint32_t i = 0; i < j.optim.ndecay; i++) {
        j.optim.decay[i].off = get_u64(&p);
        j.optim.decay[i].n = get_u64(&p);
    }
    if (check(&j))
        return -1;
    *out = j;
    return 0;
}

// ---- comparing two jobs

#define BOTH(member) (double)a->member, (double)b->member

int ps_job_same(const struct ps_job *a, const struct ps_job *b)
{
    const struct {
        const char *name;
        double a, b;
    } all[] = {
        {"world", BOTH(world)},
        {"servers", BOTH(servers)},
        {"servers beside workers (1: yes)", BOTH(beside)},
        {"parameters", BOTH(n)},
        {"slice (elements; slice_kb)", BOTH(slice)},
        {"wire (0 fp32, 1 fp16, 2 bf16)", BOTH(wire)},
        {"consistency (0 bsp, 1 ssp, 2 asp)", BOTH(consistency)},
        {"bound of ssp", BOTH(bound)},
        {"backup", BOTH(backup)},
        {"update (0 server, 1 worker)", BOTH(worker_updates)},
        {"elastic", BOTH(elastic)},
        {"priority", BOTH(priority)},
        {"optimizer (0 adamw, 1 sgd)", BOTH(optim.kind)},
        {"beta1", BOTH(optim.beta1)},
        {"beta2", BOTH(optim.beta2)},
        {"eps", BOTH(optim.eps)},
        {"weight_decay", BOTH(optim.weight_decay)},
        {"momentum", BOTH(optim.momentum)},
        {"ranges that decay", BOTH(optim.ndecay)},
        {"squeeze (0 none, 1 topk, 2 int8, 3 sign)", BOTH(squeeze.squeeze)},
        {"density", BOTH(squeeze.density)},
        {"levels", BOTH(squeeze.levels)},
        {"feedback", BOTH(squeeze.feedback)},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].a != all[i].b)
            return fail("settings differ: rank %d has %s %.9g, rank %d has "
                        "%.9g",
                        a->rank, all[i].name, all[i].a, b->rank, all[i].b);
    if (a->seed != b->seed)
        return fail("settings differ: rank %d has seed %llu, rank %d has %llu",
                    a->rank, (unsigned long long)a->seed, b->rank,
                    (unsigned long long)b->seed);
    if (a->layout != b->layout)
        return fail("settings differ: the buckets of ranks %d and %d; try: "
                    "the same bucket_mb and model",
                    a->rank, b->rank);
    for (uint32_t i = 0; i < a->optim.ndecay; i++)
        if (a->optim.decay[i].off != b->optim.decay[i].off ||
            a->optim.decay[i].n != b->optim.decay[i].n)
            return fail("settings differ: the shapes of ranks %d and %d: "
                        "range %u that decays",
                        a->rank, b->rank, i);
    return 0;
}
