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

void *cut(struct cutter *c, size_t n, size_t size)
{
    size_t at = c->used, bytes;
    if (__builtin_mul_overflow(n, size, &bytes) || bytes > SIZE_MAX / 4 ||
        at > SIZE_MAX / 4) {
        c->used = SIZE_MAX / 4;
        return NULL;
    }
    c->used = at + ((bytes + c->line - 1) & ~(c->line - 1));
    return c->block ? c->block + at : NULL;
}

float *cut_floats(struct cutter *c, size_t n)
{
    return cut(c, n, sizeof(float));
}

static void cut_layer(struct cutter *c, struct layer *l, size_t rows,
                      const struct model_config *g, size_t size)
{
    size_t C = (size_t)g->channels, heads = (size_t)part_heads(g).n;
    size_t width = C / (size_t)g->heads * heads;
    l->in = cut(c, rows * C, size);
    l->qkv = cut(c, rows * width, 3 * size);
    l->att = cut(c, rows * width, size);
    l->mid = cut(c, rows * C, size);
    l->pre = cut(c, rows * (size_t)part_inner(g).n, size);
    l->lse = cut_floats(c, rows * heads);
    l->mean1 = cut_floats(c, rows);
    l->rstd1 = cut_floats(c, rows);
    l->mean2 = cut_floats(c, rows);
    l->rstd2 = cut_floats(c, rows);
}

void *cut_room(struct cutter *c, const struct model_job *job, int room,
               struct layer *shared, struct layer *layers)
{
    const struct model_config *g = &job->config;
    size_t rows = (size_t)job->batch * (size_t)job->tokens;
    size_t C = (size_t)g->channels, size = dtype_bytes(job->precision);
    struct layer l = *shared;
    for (int k = 0; k < part_largest(g); k++) { // layer k of each chunk
        if ((room == 0 && k == 0) || (job->train && !job->recompute))
            cut_layer(c, &l, rows, g, size);
        else if (job->train)
            l.in = cut(c, rows * C, size);
        if (!job->train)
            l.mid = l.in; // norm() adds in place
        for (int i = 0, from, to; layers && i < part_chunks(g); i++) {
            part_chunk(g, i, &from, &to);
            if (from + k < to)
                layers[from + k] = l;
        }
    }
    *shared = l;
    return job->train ? cut(c, rows * C, size) : l.in;
}

struct mask layers_mask(const struct model_job *job,
                        const struct model_step *step, int layer,
                        enum site site)
{
    float rate = job->config.dropout;
    if (!step || rate <= 0)
        return (struct mask){.keep = 1};
    uint64_t key = rng_key(job->seed, (uint64_t)step->step);
    key = rng_key(key, (uint64_t)step->micro);
    layer = part_layer(&job->config, layer);
    key = rng_key(key, (uint64_t)layer * 4 + site);
    return (struct mask){.key = key,
                         .threshold = (uint32_t)((double)rate * 0x1p32),
                         .keep = 1 / (1 - rate)};
}
