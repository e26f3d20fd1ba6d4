// layers.c - what a worker has of the layers, and their dropout masks.

#include "model/layers.h"

#include "base/rng.h"
#include "model/part.h"

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
    return part_even(part_heads(&job->config).n, job->pieces->up, w);
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
