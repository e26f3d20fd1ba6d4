// layers.c - the layout of a model's memory and its dropout masks, which are
// the same on every device.

#include "model/layers.h"

#include "base/rng.h"
#include "model/part.h"

void layers_offsets(const struct model_config *c, size_t *off)
{
    int n = model_ntensors(c);
    for (int i = 0; i < n; i++) {
        struct tensor t;
        model_tensor(c, i, &t);
        off[i] = t.off;
    }
    off[n] = model_nparams(c);
}

void *arena_alloc(struct arena *a, size_t n, size_t size)
{
    size_t at = a->used, bytes;
    if (__builtin_mul_overflow(n, size, &bytes) || bytes > SIZE_MAX / 4 ||
        at > SIZE_MAX / 4) {
        a->used = SIZE_MAX / 4;
        return NULL;
    }
    a->used = at + ((bytes + a->line - 1) & ~(a->line - 1));
    return a->block ? a->block + at : NULL;
}

float *arena_floats(struct arena *a, size_t n)
{
    return arena_alloc(a, n, sizeof(float));
}

struct part_share layers_rows(const struct model_job *job, size_t rows)
{
    return job->slices && job->slices->sequence
               ? part_rows(&job->config, rows)
               : (struct part_share){0, (int)rows};
}

struct part_share layers_heads(const struct model_job *job, int w)
{
    int all = part_heads(&job->config).n, n = job->pieces->up;
    int more = all % n;
    return (struct part_share){.first = w * (all / n) + (w < more ? w : more),
                               .n = all / n + (w < more)};
}

struct zigzag layers_group(const struct model_job *job, int g)
{
    const struct model_pieces *p = job->pieces;
    return zigzag_group(p->tokens, p->n, g * p->up, p->up);
}

size_t layers_scores(const struct model_job *job)
{
    const struct model_pieces *p = job->pieces;
    int tokens = p ? layers_group(job, p->rank / p->up).own : job->tokens;
    int heads =
        p ? layers_heads(job, p->rank % p->up).n : part_heads(&job->config).n;
    return (size_t)job->batch * (size_t)tokens * (size_t)heads;
}

static void alloc_layer(struct arena *a, struct layer *l,
                        const struct model_job *job, bool own_gelu)
{
    const struct model_config *g = &job->config;
    size_t rows = (size_t)job->batch * (size_t)job->tokens;
    size_t own = (size_t)layers_rows(job, rows).n;
    size_t size = dtype_bytes(job->precision);
    size_t C = (size_t)g->channels, D = C / (size_t)g->heads;
    size_t width = D * (size_t)part_heads(g).n, scores = layers_scores(job);
    l->in = arena_alloc(a, own * C, size);
    l->qkv = arena_alloc(a, scores * D, 3 * size);
    if (job->pieces && job->pieces->up > 1)
        l->heads = arena_alloc(a, scores * D, size);
    l->lse = arena_floats(a, scores);
    l->att = arena_alloc(a, rows * width, size);
    l->mid = arena_alloc(a, own * C, size);
    l->pre = arena_alloc(a, rows * (size_t)part_inner(g).n, size);
    if (own_gelu)
        l->gelu = arena_alloc(a, rows * (size_t)part_inner(g).n, size);
    else if (!l->gelu)
        l->gelu = l->pre;
    if (job->train && job->slices && job->slices->keeps) {
        l->norm1 = arena_alloc(a, rows * C, size);
        l->norm2 = arena_alloc(a, rows * C, size);
    }
    l->mean1 = arena_floats(a, own);
    l->rstd1 = arena_floats(a, own);
    l->mean2 = arena_floats(a, own);
    l->rstd2 = arena_floats(a, own);
}

void *layers_layout(struct arena *a, const struct model_job *job, int slot,
                    bool own_gelu, struct layer *shared, struct layer *layers)
{
    const struct model_config *g = &job->config;
    size_t rows = (size_t)job->batch * (size_t)job->tokens;
    size_t n = (size_t)layers_rows(job, rows).n * (size_t)g->channels;
    size_t size = dtype_bytes(job->precision);
    struct layer l = *shared;
    for (int k = 0; k < part_largest(g); k++) { // layer k of each chunk
        if ((slot == 0 && k == 0) || (job->train && !job->recompute))
            alloc_layer(a, &l, job, own_gelu);
        else if (job->train)
            l.in = arena_alloc(a, n, size);
        if (!job->train)
            l.mid = l.in; // norm() adds in place
        for (int i = 0, from, to; layers && i < part_chunks(g); i++) {
            part_chunk(g, i, &from, &to);
            if (from + k < to)
                layers[from + k] = l;
        }
    }
    *shared = l;
    return job->train ? arena_alloc(a, n, size) : l.in;
}

struct mask layers_mask(const struct model_job *job,
                        const struct model_step *step, int layer,
                        enum site site)
{
    float rate = job->config.dropout;
    const struct model_pieces *p = job->pieces;
    struct zigzag place = {0};
    if (p && site != SITE_ATTENTION)
        place = zigzag_of(p->tokens, p->n, p->rank);
    if (!step || rate <= 0)
        return (struct mask){.keep = 1, .place = place};
    uint64_t key = rng_key(job->seed, (uint64_t)step->step);
    key = rng_key(key, (uint64_t)step->micro);
    layer = part_layer(&job->config, layer);
    key = rng_key(key, (uint64_t)layer * 4 + site);
    return (struct mask){.key = key,
                         .threshold = (uint32_t)((double)rate * 0x1p32),
                         .keep = 1 / (1 - rate),
                         .place = place};
}
