// shape.c - finds the model that a run's settings describe, and its parts.

#include "train/shape.h"

#include "base/base.h"
#include "config/backends.h"
#include "config/config.h"
#include "config/mesh.h"
#include "data/token_file.h"
#include "model/checkpoint.h"
#include "model/model.h"
#include "model/part.h"
#include "optim/rule.h"
#include "pipeline/timetable.h"
#include "sync/law_mesh.h"
#include "sync/sync.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static int override_number(int *field, int given, bool fixed, const char *key)
{
    if (!given || given == *field)
        return 0;
    if (fixed && *field)
        return fail("%s=%d, but the checkpoint that init= names has %d", key,
                    given, *field);
    *field = given;
    return 0;
}

int shape_model(const struct run *r, struct model_config *c)
{
    bool fixed = strcmp(r->init, "random") != 0;
    if (fixed && access(r->init, R_OK))
        return fail("init=%s: %s; try: init=random, or a safetensors or llm.c "
                    "checkpoint",
                    r->init, strerror(errno));
    if (fixed && file_is_folder(r->init))
        return fail("init=%s: a folder; try: init=%s/model.safetensors, or "
                    "resume= to continue its run",
                    r->init, r->init);
    if (fixed ? checkpoint_config(r->init, c) : model_preset(r->model, c))
        return -1;
    if (override_number(&c->layers, r->layers, fixed, "layers") ||
        override_number(&c->heads, r->heads, false, "heads") ||
        override_number(&c->channels, r->channels, fixed, "channels") ||
        override_number(&c->context, r->context, fixed, "context") ||
        override_number(&c->vocab, r->vocab_size, fixed, "vocab_size"))
        return -1;
    c->dropout = (float)r->dropout;
    return 0;
}

int shape_check_slices(const struct run *r, const struct model_config *whole)
{
    int slices = mesh_size(&r->mesh, MESH_TP);
    int replicas = mesh_size(&r->mesh, MESH_DP) * mesh_pieces(&r->mesh);
    int wire = (int)dtype_bytes(r->settings.wire);
    return backend_find(r->sync)->shards &&
                   law_mesh_order_matters(replicas, wire) &&
                   (whole->heads % slices || whole->vocab % slices)
               ? fail("sync=%s: slices (tp) of unequal length and %d replicas; "
                      "try: heads= and vocab_size= that %d divides, or "
                      "sync=ring",
                      r->sync, replicas, slices)
               : 0;
}

int shape_check_pieces(const struct run *r, const struct model_config *whole)
{
    int pieces = mesh_pieces(&r->mesh), T = whole->context;
    int group = config_exchange_heads(&r->mesh, r->attention_over);
    int heads = whole->heads / mesh_size(&r->mesh, MESH_TP);
    char said[CONFIG_SAID];
    if (T < pieces)
        return fail("%s: %d workers (cp) divide sequences of %d tokens, and "
                    "some would have none; try: cp%d or fewer",
                    config_said(r, "mesh", said), pieces, T, T);
    if (pieces > 1 && heads < group)
        return fail("%s: %d workers divide %d heads, and some would have none; "
                    "try: %s",
                    group < pieces ? config_said(r, "mesh", said)
                                   : "attention_over=heads",
                    group, heads,
                    group < pieces ? "cp without up" : "attention_over=ring");
    return 0;
}

// Whether the gradient of a whole model has few enough buckets.
static int check_buckets(const struct run *r, const struct model_config *whole)
{
    struct bucket *buckets = mem_alloc(TRAIN_MAX_BUCKETS, sizeof *buckets);
    int n = buckets
                ? shape_buckets(whole, &r->settings, buckets, TRAIN_MAX_BUCKETS)
                : -1;
    mem_free(buckets);
    return n < 0 ? -1 : 0;
}

int shape_check(const struct run *r)
{
    struct model_config whole;
    bool shards = backend_find(r->sync)->shards;
    bool parts = mesh_parts(&r->mesh) > 1;
    // a size that is derived is large enough; the file that init= names may be
    // on the workers' host only
    bool cuts = r->settings.bucket_mb > 0 && !strcmp(r->init, "random");
    if (!parts && !cuts)
        return 0;
    if (shape_model(r, &whole))
        return -1;
    if (!parts)
        return check_buckets(r, &whole);
    if (shape_check_pieces(r, &whole))
        return -1;
    return mesh_size(&r->mesh, MESH_TP) > 1 && shards
               ? shape_check_slices(r, &whole)
               : 0;
}

size_t shape_join_bytes(const struct run *r)
{
    size_t wire = dtype_bytes((enum dtype)r->tp_wire);
    return sizeof(float) + (wire < sizeof(float) ? 2 * wire : 0);
}

// Whether a strategy with shards gathers a model's parameters in 16 bits: one
// in 16 bits, unless host copies of the vectors are between it and the
// strategy, as of a GPU's. With shard=3 there are none.
static bool gathers_narrow(const struct run *r, const struct sync_settings *s)
{
    bool copies = s->staging == STAGING_ALWAYS || strcmp(r->device, "cpu");
    return config_format(r) != DTYPE_F32 &&
           (!copies || s->shard == SHARD_PARAMS);
}

struct law_step shape_step(const struct run *r, const struct sync_settings *s,
                           int world, int micro)
{
    return (struct law_step){
        .world = world,
        .micro = micro,
        .shards = true,
        .kind = (enum shard_level)s->shard,
        .grain = RULE_BLOCK,
        .sum_bytes = dtype_bytes(s->wire),
        .param_bytes = gathers_narrow(r, s) ? 2 : 4,
    };
}

// Bytes of an element of the tied table that the first stage sends the last one
// after an update, where replicas have added the table's gradients in another
// order; 0: the order does not matter.
static int aligned(const struct run *r, int replicas)
{
    if (!law_mesh_order_matters(replicas, (int)dtype_bytes(r->settings.wire)))
        return 0;
    bool shards = backend_find(r->sync)->shards;
    return shards && gathers_narrow(r, &r->settings) ? 2 : 4;
}

struct law_mesh shape_mesh(const struct run *r, const struct pipeline *p,
                           const struct model_config *whole, int replicas,
                           int stage, int layers)
{
    return (struct law_mesh){
        .rows = (double)r->batch * whole->context,
        .channels = whole->channels,
        .vocab = whole->vocab,
        .width = (double)dtype_bytes(config_format(r)),
        .sum = (double)dtype_bytes((enum dtype)r->tp_wire),
        .micro = p->micro,
        .stages = p->stages,
        .chunks = p->chunks,
        .slices = mesh_size(&r->mesh, MESH_TP),
        .layers = layers,
        .stage = stage,
        .recompute = r->recompute,
        .aligned = aligned(r, replicas),
        .sequence = r->tp_sequence,
        .pieces = mesh_pieces(&r->mesh),
        .up = config_exchange_heads(&r->mesh, r->attention_over),
        .tokens = whole->context,
        .heads = whole->heads,
    };
}

// accum= is called `micro` in a timetable.
int shape_pipeline(const struct run *r, struct pipeline *p)
{
    int stages = mesh_size(&r->mesh, MESH_PP);
    *p = (struct pipeline){PIPELINE_NAIVE, 1, r->accum, 1, 0};
    if (stages == 1)
        return 0;
    *p = (struct pipeline){(enum pipeline_kind)r->pipeline, stages, r->accum,
                           r->chunks, r->ahead};
    if (p->micro > PIPELINE_MICRO)
        return fail("accum=%d: a pipeline takes at most %d micro-batches in a "
                    "step; try: accum=%d and a larger batch=, or more replicas",
                    p->micro, PIPELINE_MICRO, PIPELINE_MICRO);
    if (p->chunks > 1 && p->micro % p->stages)
        return fail("chunks=%d: accum=%d micro-batches are no multiple of %d "
                    "stages; try: accum=%d",
                    p->chunks, p->micro, p->stages,
                    (p->micro / p->stages + 1) * p->stages);
    return pipeline_check(p);
}

int shape_cut(const struct run *r, const struct pipeline *p, int stage,
              const struct model_config *whole, struct model_config *out)
{
    const struct stage_layers *cut = &r->stages;
    int parts = p->stages * p->chunks;
    char said[CONFIG_SAID];
    *out = *whole;
    if (p->stages == 1)
        return 0;
    if (cut->n && cut->n != parts)
        return fail("%s lists the layers of %d parts, but %d stages of "
                    "chunks=%d have %d; try: leave it out",
                    config_said(r, "stages", said), cut->n, p->stages,
                    p->chunks, parts);
    return part_cut(whole, p->stages, stage, p->chunks,
                    cut->n ? cut->layers : NULL, out);
}

int shape_first_input(const struct pipeline *p, int stage)
{
    return stage == 0 ? timetable_slots(p, 0) : 0;
}

int shape_ahead(const struct pipeline *p, int stage)
{
    return p->chunks > 1 ? timetable_slots(p, stage) : 1;
}

void shape_stage(const struct pipeline *p, int stage, struct model_job *job)
{
    int before = (stage + p->stages - 1) % p->stages;
    if (p->stages == 1)
        return;
    job->slots = timetable_slots(p, stage);
    job->edges = 2 * shape_ahead(p, stage) + 1;
    job->inputs = timetable_slots(p, before) + shape_first_input(p, stage);
    if (stage == 0 && p->chunks == 1)
        job->inputs = 0; // its slots contain the inputs
}
