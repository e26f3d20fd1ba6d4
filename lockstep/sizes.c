// sizes.c - finds the model of a run's settings, and predicts the memory that
// the model needs.

#include "lockstep/sizes.h"

#include "base/base.h"
#include "config/config.h"
#include "lockstep/place.h"
#include "model/part.h"
#include "optim/optim.h"
#include "pipeline/timetable.h"
#include "sync/derive.h"
#include "train/shape.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int sizes_model(const struct run *r, struct model_config *c)
{
    if (shape_model(r, c))
        return -1;
    if (c->vocab == 0)
        c->vocab = 256; // symbols=bytes
    return model_check(c);
}

// Whether a word set one of the model's sizes.
static bool has_sizes(const struct run *r)
{
    static const char *const keys[] = {"layers", "heads", "channels", "context",
                                       "vocab_size"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (config_asked(r, keys[i]))
            return true;
    return false;
}

const char *sizes_say(const struct run *r, const struct model_config *c,
                      char text[SIZES_TEXT])
{
    static const char *const formats[] = {"fp32", "bf16", "fp16"};
    char shape[96] = "";
    bool sizes = has_sizes(r), file = strcmp(r->init, "random") != 0;
    bool named = file || !sizes || config_asked(r, "model");
    if (sizes)
        snprintf(shape, sizeof shape,
                 "%d layers, %d heads, %d channels, context %d", c->layers,
                 c->heads, c->channels, c->context);
    const char *name = !named ? "" : file ? r->init : r->model;
    double n = (double)model_nparams(c) * 1e-6;
    snprintf(text, SIZES_TEXT, "%.64s%s%s, %.4g %c parameters, precision=%s",
             name, named && sizes ? ": " : "", shape, n < 1e4 ? n : n * 1e-3,
             n < 1e4 ? 'M' : 'G', formats[r->precision]);
    return text;
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
                const struct sizes_rank *rank, struct sizes *out)
{
    int ranks = rank->replicas * rank->plan->stages * rank->slices;
    struct model_job model = {.precision = config_format(r),
                              .batch = r->batch,
                              .threads = place_threads(r, ranks),
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
    out->part = model.config;
    if (rank->slices > 1) { // slice 0 is the largest
        if (part_slice(&out->part, rank->slices, 0, &model.config))
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
                                   .world = rank->replicas,
                                   .saves = r->save > 0};
    memory_worker(&job, &out->worker);
    memory_server(&job, &out->server);
    if (rank->slices > 1)
        out->worker.buffers += (size_t)model.batch * (size_t)model.tokens *
                               (size_t)whole.channels * sizeof(float);
    if (p->stages > 1 && (rank->stage == 0 || rank->stage == p->stages - 1))
        out->worker.buffers += (size_t)part_words(&model.config).n *
                               (size_t)whole.channels * sizeof(float);
    return 0;
}

int sizes_check_stages(const struct run *r, const struct mesh *m)
{
    int parts = mesh_size(m, MESH_PP) * r->chunks;
    return r->stages.n && r->stages.n != parts
               ? fail("stages= has %d parts, but mesh= and chunks= make %d; "
                      "try: without stages=",
                      r->stages.n, parts)
               : 0;
}

int sizes_mesh(const struct run *r, const struct backend *b,
               const struct mesh *m, struct sizes *out)
{
    int stages = mesh_size(m, MESH_PP);
    struct pipeline plan = {PIPELINE_NAIVE, 1, r->accum, 1, 0};
    if (stages > 1)
        plan = (struct pipeline){(enum pipeline_kind)r->pipeline, stages,
                                 r->accum, r->chunks, r->ahead};
    if ((stages > 1 && pipeline_check(&plan)) || sizes_check_stages(r, m))
        return -1;
    *out = (struct sizes){.worker = {0}};
    for (int s = 0; s < stages; s++) {
        const struct sizes_rank rank = {&plan,
                                        r->stages.n ? r->stages.layers : NULL,
                                        s, mesh_size(m, MESH_TP),
                                        mesh_size(m, MESH_DP)};
        struct sizes one;
        if (sizes_stage(r, b, &rank, &one))
            return -1;
        if (memory_sum(&one.worker) > memory_sum(&out->worker))
            *out = one;
    }
    return 0;
}

// "gb" may also be GB, g or G.
static bool is_unit(const char *text, const char *unit)
{
    size_t n = strlen(text);
    return !strcasecmp(text, unit) || (n == 1 && !strncasecmp(text, unit, 1));
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
        if (end > text && v > 0 && v < 1e9 && is_unit(end, units[i].name)) {
            *out = v * units[i].bytes;
            return 0;
        }
    return end > text && !*end
               ? fail("%s=%s: must be a number with a unit; try: %s=%sgb", key,
                      text, key, text)
               : fail("%s=%s: must be a number with a unit; try: %s=2gb, 900mb "
                      "or 1.5gib",
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

void sizes_print_both(const char *name, const struct memory *worker,
                      const char *more, const struct memory *server)
{
    sizes_print_row(name, worker);
    printf("%s\n", more);
    if (memory_sum(server) == 0)
        return;
    sizes_print_row("  its server", server);
    printf("\n");
}
