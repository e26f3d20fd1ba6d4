// sizes.c - finds the model of a run's settings, and predicts the memory that
// the model needs.

#include "lockstep/sizes.h"

#include "base/base.h"
#include "config/config.h"
#include "model/part.h"
#include "optim/optim.h"
#include "pipeline/timetable.h"
#include "sync/derive.h"
#include "train/shape.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int sizes_model(const struct run *r, struct model_config *c)
{
    if (shape_model(r, c))
        return -1;
    if (c->vocab == 0)
        c->vocab = 256; // symbols=bytes
    return model_check(c);
}

static int threads_of(const struct run *r, int workers)
{
    int cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    int share = cores / workers;
    return r->threads ? r->threads : share > 1 ? share : 1;
}

int sizes_memory(const struct run *r, const struct backend *b, int workers,
                 struct memory *worker, struct memory *server)
{
    struct model_job model = {.precision = config_format(r),
                              .batch = r->batch,
                              .threads = threads_of(r, workers),
                              .train = true,
                              .recompute = r->recompute};
    const struct optim_config optim = {.kind = (uint32_t)r->optimizer,
                                       .momentum = (float)r->momentum};
    struct sync_settings settings = r->settings;
    if (sizes_model(r, &model.config))
        return -1;
    model.tokens = model.config.context;
    sync_derive(&settings, b, workers, model_nparams(&model.config));
    const struct memory_job job = {.model = &model,
                                   .settings = &settings,
                                   .backend = b,
                                   .optim = &optim,
                                   .world = workers,
                                   .saves = r->save > 0};
    memory_worker(&job, worker);
    memory_server(&job, server);
    return 0;
}

// ---- a rank of a mesh

double sizes_slice(const struct model_config *c, int slices)
{
    double C = c->channels, V = c->vocab, L = c->layers;
    double tables = part_embeds(c) || part_has_head(c) ? V * C : 0;
    double cut = tables + L * (12 * C * C + 7 * C);
    return (double)model_nparams(c) - cut + cut / slices;
}

int sizes_stage(const struct run *r, const struct backend *b,
                const struct sizes_rank *rank, struct model_config *part,
                struct memory *out)
{
    struct model_job model = {.precision = config_format(r),
                              .batch = r->batch,
                              .threads = threads_of(r, rank->replicas),
                              .train = true,
                              .recompute = r->recompute};
    const struct pipeline *p = rank->plan;
    const struct optim_config optim = {.kind = (uint32_t)r->optimizer,
                                       .momentum = (float)r->momentum};
    const struct model_slices sums = {.sum = NULL}; // for its memory only
    struct sync_settings settings = r->settings;
    struct model_config whole;
    if (sizes_model(r, &whole))
        return -1;
    model.config = whole;
    if (p->stages > 1 && part_cut(&whole, p->stages, rank->stage, p->chunks,
                                  rank->layers, &model.config))
        return -1;
    *part = model.config;
    if (rank->slices > 1) { // slice 0 is the largest
        if (part_slice(part, rank->slices, 0, &model.config))
            return -1;
        model.slices = &sums;
    }
    model.tokens = whole.context;
    shape_stage(p, rank->stage, &model);
    sync_derive(&settings, b, rank->replicas, model_nparams(&model.config));
    const struct memory_job job = {.model = &model,
                                   .settings = &settings,
                                   .backend = b,
                                   .optim = &optim,
                                   .world = rank->replicas};
    memory_worker(&job, out);
    if (rank->slices > 1)
        out->buffers += (size_t)model.batch * (size_t)model.tokens *
                        (size_t)whole.channels * sizeof(float);
    if (p->stages > 1 && (rank->stage == 0 || rank->stage == p->stages - 1))
        out->buffers += (size_t)part_words(&model.config).n *
                        (size_t)whole.channels * sizeof(float);
    return 0;
}

int sizes_mesh(const struct run *r, const struct backend *b, struct memory *out)
{
    int stages = mesh_size(&r->mesh, MESH_PP);
    struct pipeline plan = {PIPELINE_NAIVE, 1, r->accum, 1, 0};
    if (stages > 1)
        plan = (struct pipeline){(enum pipeline_kind)r->pipeline, stages,
                                 r->accum, r->chunks, r->ahead};
    if (pipeline_check(&plan))
        return -1;
    if (r->stages.n && r->stages.n != stages * r->chunks)
        return fail("stages= has %d parts, but mesh= and chunks= make %d; try: "
                    "without stages=",
                    r->stages.n, stages * r->chunks);
    *out = (struct memory){.params = 0};
    for (int s = 0; s < stages; s++) {
        const struct sizes_rank rank = {&plan,
                                        r->stages.n ? r->stages.layers : NULL,
                                        s, mesh_size(&r->mesh, MESH_TP),
                                        mesh_size(&r->mesh, MESH_DP)};
        struct model_config part;
        struct memory one;
        if (sizes_stage(r, b, &rank, &part, &one))
            return -1;
        if (memory_sum(&one) > memory_sum(out))
            *out = one;
    }
    return 0;
}

int sizes_bytes(const char *key, const char *text, double *out)
{
    static const struct {
        const char *name;
        double bytes;
    } units[] = {{"kb", 1e3},     {"mb", 1e6},     {"gb", 1e9},
                 {"tb", 1e12},    {"kib", 0x1p10}, {"mib", 0x1p20},
                 {"gib", 0x1p30}, {"tib", 0x1p40}};
    char *end;
    double v = strtod(text, &end);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (end > text && v > 0 && v < 1e9 && !strcmp(end, units[i].name)) {
            *out = v * units[i].bytes;
            return 0;
        }
    return fail("%s=%s: must be a number with a unit; try: %s=2gb, 900mb or "
                "1.5gib",
                key, text, key);
}

// ---- a table

static const char *megabytes(char text[16], size_t bytes)
{
    snprintf(text, 16, bytes ? "%.1f" : "-", (double)bytes * 1e-6);
    return text;
}

void sizes_print_head(const char *first)
{
    printf("%-14s %10s %10s %10s %9s %11s %8s %10s", first, "parameters",
           "gradients", "optimiser", "buffers", "activations", "process",
           "total MB");
}

void sizes_print_row(const char *name, const struct memory *m)
{
    const size_t parts[] = {m->params,    m->grads,       m->optimizer,
                            m->buffers,   m->activations, m->process,
                            memory_sum(m)};
    static const int widths[] = {10, 10, 10, 9, 11, 8, 10};
    char text[16];
    printf("%-14s", name);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        printf(" %*s", widths[i], megabytes(text, parts[i]));
}
