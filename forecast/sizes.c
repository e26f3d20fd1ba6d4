// sizes.c - finds the model of a run's settings, and predicts the memory that
// the model needs.

#include "forecast/sizes.h"

#include "base/base.h"
#include "base/zigzag.h"
#include "config/backends.h"
#include "config/config.h"
#include "model/part.h"
#include "optim/optim.h"
#include "pipeline/timetable.h"
#include "sync/derive.h"
#include "train/shape.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int sizes_model(const struct run *r, struct model_config *c)
{
    if (shape_model(r, c))
        return -1;
    if (c->vocab == 0)
        c->vocab = 256; // vocab=bytes
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
    static const char *const formats[] = {"fp32", "bf16", "fp16", "tf32"};
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

int sizes_threads(const struct run *r, int workers)
{
    if (r->threads)
        return r->threads;
    int share = (int)sysconf(_SC_NPROCESSORS_ONLN) / workers;
    return share > 1 ? share : 1;
}

int sizes_stage(const struct run *r, const struct pipeline *p,
                const int *layers, int stage, struct sizes *out)
{
    const struct backend *b = backend_find(r->sync);
    int slices = mesh_size(&r->mesh, MESH_TP);
    int divide = mesh_pieces(&r->mesh); // workers that divide a sequence
    int members = mesh_size(&r->mesh, MESH_DP) * divide;
    int ranks = members * p->stages * slices;
    int up = config_exchange_heads(&r->mesh, r->attention_over);
    struct model_job model = {.precision = config_format(r),
                              .batch = r->batch,
                              .threads = sizes_threads(r, ranks),
                              .train = true,
                              .recompute = r->recompute};
    float momentum = config_moves_momentum(r) ? 0 : (float)r->momentum;
    const struct model_slices sums = {.sequence = r->tp_sequence > 0,
                                      .keeps = r->tp_sequence == 2};
    struct sync_settings settings = r->settings;
    struct model_config whole;
    if (sizes_model(r, &whole))
        return -1;
    bool ring = r->attention_over == ATTENTION_RING;
    const struct model_pieces pieces = {.n = divide,
                                        .tokens = whole.context,
                                        .up = up,
                                        .over = ring ? OVER_RING : OVER_GATHER};
    model.config = whole;
    if (p->stages > 1 &&
        part_cut(&whole, p->stages, stage, p->chunks, layers, &model.config))
        return -1;
    out->part = model.config;
    if (slices > 1) { // slice 0 is the largest
        if (part_slice(&out->part, slices, 0, &model.config))
            return -1;
        model.slices = &sums; // for its memory only
    }
    model.tokens = whole.context;
    if (divide > 1) {
        model.tokens = zigzag_most(whole.context, divide, 1);
        model.pieces = &pieces; // for its memory only
    }
    shape_stage(p, stage, &model);
    sync_derive(&settings, b, members, model_nparams(&model.config));
    const struct memory_job job = {.model = &model,
                                   .settings = &settings,
                                   .backend = b,
                                   .slots =
                                       optim_slots_of((uint32_t)r->optimizer,
                                                      momentum),
                                   .world = members,
                                   .saves = r->save > 0,
                                   .apart = *r->hosts || *r->net};
    memory_worker(&job, &out->worker);
    memory_server(&job, &out->server);
    if (slices > 1)
        out->worker.buffers += (size_t)model.batch * (size_t)model.tokens *
                               (size_t)whole.channels * shape_join_bytes(r);
    if (p->stages > 1 && (stage == 0 || stage == p->stages - 1))
        out->worker.buffers += (size_t)part_words(&model.config).n *
                               (size_t)whole.channels * sizeof(float);
    return 0;
}

// Checks that stages= has as many parts as mesh= and chunks= make.
static int check_stages(const struct run *r)
{
    int parts = mesh_size(&r->mesh, MESH_PP) * r->chunks;
    return r->stages.n && r->stages.n != parts
               ? fail("stages= has %d parts, but mesh= and chunks= make %d; "
                      "try: without stages=",
                      r->stages.n, parts)
               : 0;
}

int sizes_check_mesh(const struct run *r)
{
    struct model_config whole;
    return sizes_model(r, &whole) || check_stages(r) ||
                   config_check_tokens(r) || shape_check_pieces(r, &whole)
               ? -1
               : 0;
}

int sizes_mesh(const struct run *r, struct sizes *out)
{
    const int *layers = r->stages.n ? r->stages.layers : NULL;
    struct pipeline plan;
    if (shape_pipeline(r, &plan) || check_stages(r))
        return -1;
    *out = (struct sizes){.worker = {0}};
    for (int s = 0; s < plan.stages; s++) {
        struct sizes one;
        if (sizes_stage(r, &plan, layers, s, &one))
            return -1;
        if (memory_sum(&one.worker) > memory_sum(&out->worker))
            *out = one;
    }
    return 0;
}
