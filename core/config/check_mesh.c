// check_mesh.c - refuses what a mesh of workers cannot do.

#include "config/config.h"

#include "base/base.h"
#include "config/backends.h"
#include "config/keys.h"

#include <string.h>

const char *const config_stage_keys[] = {"pipeline", "chunks", "ahead",
                                         "stages", NULL};

bool config_listens(const struct run *r)
{
    const struct backend *b = backend_find(r->sync);
    return backend_reads(b, "iface") &&
           (b->transports || mesh_parts(&r->mesh) > 1);
}

// Refuses settings that a mesh with parts of the model cannot have.
static int check_parts(const struct run *r, const struct backend *b,
                       const char *mesh)
{
    bool stages = mesh_size(&r->mesh, MESH_PP) > 1;
    bool slices = mesh_size(&r->mesh, MESH_TP) > 1;
    const char *parts = stages   ? "stages (pp)"
                        : slices ? "slices (tp)"
                                 : "divided sequences (cp)";
    if (!b->parts)
        return fail("mesh=%s: sync=%s has no %s; try: sync=ring", mesh, b->name,
                    parts);
    if (backend_reads(b, "shard") && r->settings.shard >= SHARD_GRADS)
        return fail("mesh=%s: shard=%d exchanges gradients after every "
                    "micro-batch, %s only after the last; try: shard=1",
                    mesh, r->settings.shard, parts);
    char mistake[CONFIG_PATH];
    if (config_mistake(r, mistake))
        return fail("mesh=%s: %s needs workers with whole models; try: no %s",
                    mesh, mistake, parts);
    return 0;
}

int config_exchange_heads(const struct mesh *m, int over)
{
    return over == ATTENTION_HEADS ? mesh_pieces(m) : mesh_size(m, MESH_UP);
}

// Refuses groups that exchange heads (up) where all workers do.
static int check_groups(const struct run *r)
{
    char said[CONFIG_SAID];
    int up = mesh_size(&r->mesh, MESH_UP), all = mesh_pieces(&r->mesh);
    if (up > 1 && up == all)
        return fail("%s: up%d without cp; try: mesh=cp%d "
                    "attention_over=heads, which is the same",
                    config_said(r, "mesh", said), up, up);
    if (up > 1 && r->attention_over == ATTENTION_HEADS)
        return fail("attention_over=heads: groups (up) exchange heads, and "
                    "attention_over= says how they get keys; try: ring, or "
                    "cp%d without up",
                    all);
    return 0;
}

int config_check_tokens(const struct run *r)
{
    if (check_groups(r))
        return -1;
    if (mesh_size(&r->mesh, MESH_CP) == 1 && config_asked(r, "attention_over"))
        return fail("attention_over=%s is for sequences that workers divide; "
                    "try: mesh=cp2",
                    config_word(r, "attention_over"));
    const char *wire = config_word(r, "tp_wire");
    if (mesh_size(&r->mesh, MESH_TP) > 1)
        return r->tp_wire && *r->settings.lab
                   ? fail("tp_wire=%s: with lab=%s the student's function "
                          "joins; try: without tp_wire=",
                          wire, r->settings.lab)
                   : 0;
    return r->tp_sequence ? fail("tp_sequence=%d is for the slices of a mesh; "
                                 "try: mesh=tp2",
                                 r->tp_sequence)
           : r->tp_wire   ? fail("tp_wire=%s is for the slices of a mesh; "
                                   "try: mesh=tp2",
                                 wire)
                          : 0;
}

int config_check_mesh(const struct run *r, const struct backend *b)
{
    char mesh[CONFIG_PATH], said[CONFIG_SAID];
    const struct mesh *m = &r->mesh;
    int ranks = mesh_ranks(m);
    bool whole = mesh_size(m, MESH_PP) == 1;
    for (int i = 0; config_stage_keys[i]; i++)
        if (whole && config_asked(r, config_stage_keys[i]))
            return fail("%s is for the stages of a pipeline; try: mesh=pp2",
                        config_said(r, config_stage_keys[i], said));
    if (config_check_tokens(r))
        return -1;
    if (config_asked(r, "iface") && !config_listens(r))
        return fail("iface=%s: %s does not listen for other workers; try: "
                    "leave it out",
                    r->settings.iface, b->name);
    mesh_show(m, mesh);
    if (mesh_pieces(m) > 1 && r->pace.given)
        return fail("mesh=%s: %s makes no exchanges of divided sequences (cp); "
                    "try: without pace=",
                    mesh, config_said(r, "pace", said));
    if (m->n && ranks != r->workers)
        return fail("mesh=%s has %d ranks, workers=%d; try: workers=%d, or "
                    "mesh=dp%d",
                    mesh, ranks, r->workers, ranks, r->workers);
    return mesh_parts(m) > 1 ? check_parts(r, b, mesh) : 0;
}
