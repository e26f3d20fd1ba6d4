// mesh_search.c - tries all ways to use a number of workers.

#include "lockstep/mesh_search.h"

#include "base/base.h"
#include "config/backends.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct search {
    const struct mesh_question *q;
    struct mesh_answers *out;
    struct mesh_answer now; // the way to try next
    struct mesh_answer *fastest, *smallest;
    bool fits, any;
};

static bool asked(const struct search *s, const char *key)
{
    return config_asked(s->q->job.run, key);
}

double mesh_seconds(double seconds)
{
    char text[32];
    snprintf(text, sizeof text, "%.4g", seconds);
    return strtod(text, NULL);
}

static double sent(const struct mesh_answer *a)
{
    double sum = 0;
    for (int i = 0; i < MESH_AXES; i++)
        sum += a->step.bytes[i];
    return sum;
}

// Whether a is better than b, which was tried before: ways are tried from the
// simple ones to the others.
static bool is_better(const struct mesh_answer *a, const struct mesh_answer *b)
{
    double x = mesh_seconds(a->step.seconds), y = mesh_seconds(b->step.seconds);
    return x < y || (x == y && sent(a) < sent(b));
}

static void keep(struct mesh_answers *a, const struct mesh_answer *one)
{
    int at = a->n < MESH_BEST ? a->n++ : MESH_BEST;
    for (; at > 0 && is_better(one, &a->best[at - 1]); at--)
        if (at < MESH_BEST)
            a->best[at] = a->best[at - 1];
    if (at < MESH_BEST)
        a->best[at] = *one;
}

// Predicts one way, s->now. Remembers it if it is the fastest that fits so far,
// or the one that needs least memory so far.
static int try_one(struct search *s)
{
    const struct mesh_question *q = s->q;
    struct mesh_answer *a = &s->now;
    if (mesh_step(&q->job, &a->way, &a->step))
        return -1;
    size_t need = memory_sum(&a->step.memory);
    bool fits = q->memory == 0 || (double)need <= q->memory;
    double t = mesh_seconds(a->step.seconds);
    if (fits && (!s->fits || t < mesh_seconds(s->fastest->step.seconds)))
        *s->fastest = *a;
    struct mesh_answer *plain = &s->out->plain;
    if (fits && a->way.wire == DTYPE_F32 &&
        (plain->step.seconds == 0 || t < mesh_seconds(plain->step.seconds)))
        *plain = *a;
    if (!s->any || need < memory_sum(&s->smallest->step.memory))
        *s->smallest = *a;
    s->fits |= fits;
    s->any = true;
    return 0;
}

// Tries the formats in which gradients may travel.
static int try_wires(struct search *s)
{
    const struct run *r = s->q->job.run;
    struct mesh_case *c = &s->now.way;
    bool travels = mesh_size(&c->mesh, MESH_DP) > 1;
    c->wire = asked(s, "wire") ? r->settings.wire : DTYPE_F32;
    if (try_one(s))
        return -1;
    if (asked(s, "wire") || !travels || !backend_reads(c->backend, "wire"))
        return 0;
    c->wire = r->precision == PRECISION_FP16 ? DTYPE_F16 : DTYPE_BF16;
    return try_one(s);
}

// Tries slices with whole rows between the products, and with divided ones.
static int try_rows(struct search *s)
{
    struct mesh_case *c = &s->now.way;
    if (try_wires(s))
        return -1;
    if (mesh_size(&c->mesh, MESH_TP) == 1 || asked(s, "tp_sequence"))
        return 0;
    c->sequence = true;
    int rc = try_wires(s);
    c->sequence = false;
    return rc;
}

// Returns how many micro-batches of `batch` sequences make a step; 0 if the
// step is no multiple of them.
static int micro_of(const struct search *s, int batch)
{
    int64_t all = (int64_t)batch * mesh_size(&s->now.way.mesh, MESH_DP);
    int64_t micro = s->q->global_batch % all ? 0 : s->q->global_batch / all;
    return micro > PIPELINE_MICRO ? 0 : (int)micro;
}

static int try_batch(struct search *s, int batch)
{
    const struct run *r = s->q->job.run;
    struct mesh_case *c = &s->now.way;
    bool stages = mesh_size(&c->mesh, MESH_PP) > 1;
    int most = r->ahead;
    c->batch = batch;
    c->sequence = r->tp_sequence && mesh_size(&c->mesh, MESH_TP) > 1;
    c->plan = (struct pipeline){PIPELINE_NAIVE, 1, micro_of(s, batch), 1, 0};
    if (!c->plan.micro)
        return 0;
    if (stages)
        c->plan = (struct pipeline){(enum pipeline_kind)r->pipeline,
                                    mesh_size(&c->mesh, MESH_PP), c->plan.micro,
                                    r->chunks, r->ahead};
    if (stages && !asked(s, "ahead") && r->pipeline == PIPELINE_1F1B &&
        r->chunks == 1)
        most = 1;
    if (c->plan.chunks > 1 && c->plan.micro % c->plan.stages)
        return 0;
    if (!r->mesh.n && c->plan.stages * c->plan.chunks > s->q->job.model.layers)
        return 0; // a part would have no layer
    if (r->stages.n)
        memcpy(c->layers, r->stages.layers, sizeof c->layers);
    else
        mesh_cut(&s->q->job, c);
    for (; c->plan.ahead <= most; c->plan.ahead++)
        if (try_rows(s))
            return -1;
    return 0;
}

static int try_backend(struct search *s, const struct backend *b, int shard)
{
    struct mesh_answers *out = s->out;
    const struct run *r = s->q->job.run;
    struct mesh_answer fastest, smallest;
    int first = asked(s, "batch") ? r->batch : 1;
    s->now.way.backend = b;
    s->now.way.shard = shard;
    s->fastest = &fastest;
    s->smallest = &smallest;
    s->fits = s->any = false;
    for (int batch = first; batch <= s->q->global_batch; batch *= 2) {
        if (try_batch(s, batch))
            return -1;
        if (asked(s, "batch") || batch > s->q->global_batch / 2)
            break;
    }
    out->tried += s->any;
    if (s->fits)
        keep(out, &fastest);
    if (s->fits || !s->any)
        return 0;
    if (!out->too_large++ ||
        memory_sum(&smallest.step.memory) < memory_sum(&out->least.step.memory))
        out->least = smallest;
    return 0;
}

// Tries a mesh with each backend that can train parts of a model and exchanges
// as a ring does, or only with the run's own sync=.
static int try_mesh(struct search *s, const struct mesh *m)
{
    const struct run *r = s->q->job.run;
    bool replicas = mesh_size(m, MESH_DP) > 1;
    bool cut = mesh_size(m, MESH_PP) > 1 || mesh_size(m, MESH_TP) > 1;
    s->now = (struct mesh_answer){.way = {.mesh = *m}};
    for (int i = 0; backend_at(i); i++) {
        const struct backend *b = backend_at(i);
        if (asked(s, "sync") ? strcmp(b->name, r->sync) != 0
                             : !b->parts || b->traffic != TRAFFIC_RING)
            continue;
        if (cut && !b->parts)
            continue; // it can train only whole models
        int least = b->shards && asked(s, "shard") ? r->settings.shard : 1;
        int most = !b->shards || cut   ? 1
                   : asked(s, "shard") ? r->settings.shard
                                       : SHARD_PARAMS;
        if (b->shards && !replicas && !asked(s, "sync"))
            continue; // no replicas to share the shards
        for (int shard = least; shard <= most; shard++)
            if (try_backend(s, b, shard))
                return -1;
    }
    return 0;
}

static struct link scaled(struct link link, double times)
{
    return (struct link){link.alpha_s * times,
                         times > 0 ? link.bytes_per_s / times : INFINITY};
}

// Returns the seconds of a way's step if each link's messages take so many
// times as long, or -1 after fail().
static double seconds_of(const struct mesh_question *q,
                         const struct mesh_case *way, double outer,
                         double inner)
{
    struct mesh_job job = q->job;
    struct mesh_step step;
    job.outer = scaled(job.outer, outer);
    job.inner = scaled(job.inner, inner);
    return mesh_step(&job, way, &step) ? -1 : step.seconds;
}

// Finds what messages add to the step, and how sure its time is.
static int judge(const struct mesh_question *q, struct mesh_answer *a)
{
    double outer = q->outer_error, inner = q->inner_error;
    double free = seconds_of(q, &a->way, 0, 0);
    a->link_s = a->step.seconds - free;
    a->least_s = seconds_of(q, &a->way, 1 - outer, 1 - inner);
    a->most_s = seconds_of(q, &a->way, 1 + outer, 1 + inner);
    return free < 0 || a->least_s < 0 || a->most_s < 0 ? -1 : 0;
}

// A mesh without the axes that have one rank only; at least dp.
static struct mesh mesh_of(int dp, int pp, int tp)
{
    const int sizes[] = {dp, pp, tp};
    static const enum mesh_axis axes[] = {MESH_DP, MESH_PP, MESH_TP};
    struct mesh m = {.n = 0};
    for (int i = 0; i < 3; i++)
        if (sizes[i] > 1 || (i == 0 && pp * tp == 1)) {
            m.axis[m.n] = axes[i];
            m.size[m.n++] = sizes[i];
        }
    return m;
}

static int try_all(struct search *s)
{
    const struct mesh_question *q = s->q;
    const struct run *r = q->job.run;
    int workers = q->job.hosts * q->job.slots;
    if (r->mesh.n)
        return try_mesh(s, &r->mesh);
    for (int tp = 1; tp <= workers && tp <= q->job.model.heads; tp++)
        for (int pp = 1; pp * tp <= workers && pp <= q->job.model.layers &&
                         pp <= PIPELINE_STAGES;
             pp++) {
            if (workers % (pp * tp) ||
                (r->stages.n && r->stages.n != pp * r->chunks))
                continue;
            const struct mesh m = mesh_of(workers / (pp * tp), pp, tp);
            if (try_mesh(s, &m))
                return -1;
        }
    return 0;
}

int mesh_search(const struct mesh_question *q, struct mesh_answers *out)
{
    struct search s = {.q = q, .out = out};
    memset(out, 0, sizeof *out);
    if (try_all(&s))
        return -1;
    for (int i = 0; i < out->n; i++)
        if (judge(q, &out->best[i]))
            return -1;
    return 0;
}
