// check_run.c - refuses settings that do not go together.

#include "config/config.h"

#include "base/base.h"
#include "config/backends.h"
#include "config/keys.h"

#include <string.h>

int config_check_world(const struct run *r, int world)
{
    const struct sync_settings *set = &r->settings;
    char said[CONFIG_SAID];
    const struct {
        const char *key;
        bool given;
        int rank;
    } ranks[] = {
        {"straggler", r->straggler.factor > 0, r->straggler.rank},
        {"mistake", set->mistake.steps > 0, set->mistake.rank},
        {"inject", set->inject.kind != FAULT_NONE, set->inject.rank},
    };
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        if (ranks[i].given && ranks[i].rank >= world)
            return fail("%s: there is no rank %d of %d workers; try: 0 .. %d",
                        config_said(r, ranks[i].key, said), ranks[i].rank,
                        world, world - 1);
    }
    if (r->mesh.n && mesh_ranks(&r->mesh) != world)
        return fail("%s: %d ranks, but %d workers; try: workers=%d",
                    config_said(r, "mesh", said), mesh_ranks(&r->mesh), world,
                    mesh_ranks(&r->mesh));
    if (set->backup >= world && set->backup > 0)
        return fail("backup=%d of %d workers leaves no worker; try: backup=%d",
                    set->backup, world, world - 1);
    return 0;
}

// Rules of the servers (ps_server/).
int settings_check(const struct sync_settings *s)
{
    bool bsp = s->consistency.kind == CONSISTENCY_BSP;
    bool worker = s->update == UPDATER_WORKER;
    if (worker && !bsp)
        return fail("update=worker requires consistency=bsp: a worker updates "
                    "with the sum of a whole step; try: update=server");
    if (worker && (s->backup || s->elastic))
        return fail("update=worker: only servers keep the state that %s=%d "
                    "needs; try: update=server",
                    s->backup ? "backup" : "elastic",
                    s->backup ? s->backup : s->elastic);
    if (s->backup && (s->elastic || !bsp))
        return fail("backup=%d requires consistency=bsp and elastic=0; try: "
                    "leave one of them out",
                    s->backup);
    if (s->elastic && s->transport == TRANSPORT_MPI) // a death ends the job
        return fail("elastic=1 does not work with transport=mpi; try: "
                    "transport=zmq");
    return 0;
}

static int check_transport(const struct backend *b,
                           const struct sync_settings *s)
{
    const struct key *k = key_find(&run_keys, "transport");
    char list[64] = "auto";
    if (s->transport == TRANSPORT_AUTO || backend_takes(b, k->name, s))
        return 0;
    for (int i = 1; k->words[i]; i++)
        if (b->transports & 1u << i)
            strcat(strcat(list, ", "), k->words[i]);
    return fail("transport=%s: not one of %s; try: transport=auto",
                k->words[s->transport], list);
}

int config_check_backend(const struct run *r, const struct backend *b)
{
    char buf[CONFIG_PATH];
    for (int i = 0; i < run_keys.n; i++) {
        const struct key *k = &run_keys.rows[i];
        if (k->backend && r->asked[i] && !backend_reads(b, k->name))
            return fail("%s=%s: %s has no such setting; try: leave it out, "
                        "or another sync=",
                        k->name, key_show(k, &r->settings, buf), b->name);
    }
    if (!backend_takes(b, "staging", &r->settings))
        return fail("shard=%d works on vectors in host memory; try: "
                    "staging=auto, or shard=1",
                    r->settings.shard);
    if (check_transport(b, &r->settings))
        return -1;
    return b->servers ? settings_check(&r->settings) : 0;
}

// Refuses settings that do not work if workers are at different steps, or come
// later than others.
static int check_in_step(const struct run *r, const struct backend *b)
{
    const struct sync_settings *set = &r->settings;
    bool bsp = set->consistency.kind == CONSISTENCY_BSP;
    char said[CONFIG_SAID];
    if (!b->servers)
        return 0;
    if (r->verify && !bsp)
        return fail("verify=%d compares parameters of the same step, and under "
                    "%s workers' parameters differ; try: consistency=bsp, or "
                    "no verify=",
                    r->verify, config_said(r, "consistency", said));
    if (r->verify && set->elastic)
        return fail("verify=%d: with elastic=1 a worker that was away has "
                    "missed comparisons; try: elastic=0, or no verify=",
                    r->verify);
    if (set->elastic && bsp && r->precision == PRECISION_FP16 &&
        r->loss_scale == 0)
        return fail("elastic=1: a worker that was away does not know the loss "
                    "scale that precision=fp16 has reached; try: "
                    "loss_scale=1024, or precision=bf16");
    return 0;
}

// Refuses settings that do not work if workers' parameters differ between two
// exchanges.
static int check_apart(const struct run *r, const struct backend *b)
{
    const struct sync_settings *set = &r->settings;
    const struct {
        const char *key;
        int steps;
    } one[] = {{"save", r->save}, {"verify", r->verify}};
    if (!b->apart)
        return 0;
    for (size_t i = 0; i < sizeof one / sizeof *one; i++)
        if (one[i].steps % set->every)
            return fail("%s=%d is no multiple of every=%d, and in between "
                        "workers' parameters differ; try: %s=%d",
                        one[i].key, one[i].steps, set->every, one[i].key,
                        (one[i].steps / set->every + 1) * set->every);
    if (r->precision == PRECISION_FP16 || r->loss_scale > 0)
        return fail("sync=%s: with a loss scale, a worker with an overflow "
                    "would skip a step that the others take; try: "
                    "precision=bf16, and no loss_scale=",
                    b->name);
    return 0;
}

// Refuses settings that need computed parameters or losses: with pace= a run
// sleeps and computes nothing.
static int check_pace(const struct run *r, const struct backend *b)
{
    const struct {
        const char *key;
        bool wanted;
    } one[] = {{"save", r->save > 0},
               {"verify", r->verify > 0},
               {"resume", r->resume[0] != '\0'},
               {"eval", r->eval > 0 && config_asked(r, "eval")}};
    char pace[CONFIG_SAID], said[CONFIG_SAID];
    if (!r->pace.given)
        return 0;
    config_said(r, "pace", pace);
    for (size_t i = 0; i < sizeof one / sizeof *one; i++)
        if (one[i].wanted)
            return fail("%s: nothing is computed, so there is nothing for %s "
                        "to do; try: leave %s= out",
                        pace, config_said(r, one[i].key, said), one[i].key);
    if (backend_reads(b, "shard") && r->settings.shard >= SHARD_GRADS)
        return fail("%s: with shard=%d a model asks for its blocks while it "
                    "computes, and with pace= it does not compute; try: "
                    "shard=1",
                    pace, r->settings.shard);
    if (strcmp(r->device, "cpu"))
        return fail("%s: device=%s computes; try: device=cpu", pace, r->device);
    return 0;
}

// ---- who draws batches, and who updates

bool config_takes_mistake(const struct run *r, const struct backend *b)
{
    bool owner = b->traffic == TRAFFIC_OWNER;
    switch (r->settings.mistake.kind) {
    case MISTAKE_SAME_SEED:
        return b->launch != LAUNCH_ALONE && !owner;
    case MISTAKE_TWO_UPDATES:
    case MISTAKE_LOCAL_CLIP:
        return !b->servers && !b->shards && !b->apart && !owner &&
               b->traffic != TRAFFIC_OWN;
    default:
        return true;
    }
}

static int check_mistake(const struct run *r, const struct backend *b)
{
    char text[CONFIG_PATH];
    if (config_takes_mistake(r, b))
        return 0;
    config_mistake(r, text);
    if (r->settings.mistake.kind != MISTAKE_SAME_SEED)
        return fail("%s needs workers that each update with the sum of all "
                    "gradients in every step; try: sync=ring",
                    text);
    if (b->launch == LAUNCH_ALONE)
        return fail("%s is a mistake of several workers; try: sync=ring", text);
    return fail("%s: with sync=%s worker 0 draws the batches of all; try: "
                "sync=ring",
                text, b->name);
}

// Refuses update rules that need the norms of whole tensors, if the worker or
// server that updates may have parts of them, or updates by another function.
static int check_layers(const struct run *r, const struct backend *b)
{
    const char *rule = config_word(r, "optimizer");
    if (strcmp(rule, "lars") && strcmp(rule, "lamb"))
        return 0;
    if (b->servers || b->shards || b->traffic == TRAFFIC_OWNER)
        return fail("optimizer=%s needs the norms of whole tensors, which "
                    "sync=%s does not compute; try: sync=ring, or "
                    "optimizer=adamw",
                    rule, b->name);
    if (mesh_size(&r->mesh, MESH_PP) * mesh_size(&r->mesh, MESH_TP) > 1)
        return fail("optimizer=%s needs whole tensors and models; try: a mesh "
                    "without stages and slices, or optimizer=adamw",
                    rule);
    if (strcmp(r->device, "cpu"))
        return fail(
            "optimizer=%s has no kernel for device=%s; try: device=cpu, "
            "or optimizer=adamw",
            rule, r->device);
    return 0;
}

// Refuses a file for a state that is not updated piece by piece in host memory.
static int check_offload(const struct run *r, const struct backend *b)
{
    const char *rule = config_word(r, "optimizer");
    if (!r->settings.offload)
        return 0;
    if (!strcmp(rule, "lars") || !strcmp(rule, "lamb"))
        return fail("offload=disk: optimizer=%s needs the norms of whole "
                    "tensors, and the file gives parts of them; try: "
                    "optimizer=adamw",
                    rule);
    if (!strcmp(rule, "sgd") && (r->momentum <= 0 || config_moves_momentum(r)))
        return fail(
            "offload=disk: optimizer=sgd without momentum has no state; "
            "try: leave it out");
    if (strcmp(r->device, "cpu") && !b->shards)
        return fail(
            "offload=disk: with device=%s only sync=zero updates in the "
            "host's memory; try: sync=zero",
            r->device);
    if (!*r->out)
        return fail(
            "offload=disk: the file needs a run's folder; try: out=DIR");
    return 0;
}

// ---- GPUs

// Refuses attention=cudnn with settings for which cuDNN has no attention
// kernels, or would compute something else than our kernels and the CPU.
static int check_cudnn(const struct run *r, bool gpu)
{
    char said[CONFIG_SAID];
    if (!gpu)
        return fail("attention=cudnn is for GPUs; try: device=cuda, or "
                    "attention=ours");
    if (config_format(r) == DTYPE_F32)
        return fail("attention=cudnn computes in 16 bits, precision=%s; try: "
                    "precision=bf16, or attention=ours",
                    config_word(r, "precision"));
    if (r->dropout > 0)
        return fail("attention=cudnn draws other random numbers than all other "
                    "ways, so dropout=%g would drop other weights; try: "
                    "dropout=0, or attention=ours",
                    r->dropout);
    if (mesh_pieces(&r->mesh) > 1)
        return fail("attention=cudnn computes whole sequences, and %s divides "
                    "them (cp); try: attention=ours",
                    config_said(r, "mesh", said));
    return 0;
}

// Refuses settings that only a GPU, or a library of GPUs, has.
static int check_gpu(const struct run *r)
{
    bool gpu = strcmp(r->device, "cpu") != 0;
    if (r->profile.count > 0 && !gpu)
        return fail("profile=%d:%d is for a profiler of GPUs, and device=cpu "
                    "has none; try: trace=on, or device=cuda",
                    r->profile.from, r->profile.count);
    if (r->tune > 0 && !gpu)
        return fail("tune=%d measures algorithms of a GPU's library; try: "
                    "device=cuda, or leave it out",
                    r->tune);
    if (r->settings.ctas > 0 && !gpu)
        return fail("ctas=%d is a setting of NCCL, which needs GPUs; try: "
                    "device=cuda, or leave it out",
                    r->settings.ctas);
    if (r->kernels && (!gpu || r->trace == TRACE_OFF || r->out[0] == '\0'))
        return fail("kernels=1 records a GPU's kernels in the trace; try: "
                    "device=cuda trace=on out=DIR");
    return r->attention == ATTENTION_CUDNN ? check_cudnn(r, gpu) : 0;
}

int config_check(const struct run *r)
{
    const struct backend *b = backend_find(r->sync);
    const struct sync_mistake *own = &r->settings.mistake;
    if (r->min_lr > r->lr)
        return fail("min_lr=%g is above lr=%g; try: min_lr=%g", r->min_lr,
                    r->lr, r->lr / 20);
    if (r->lr_scale && !r->base_batch)
        return fail("lr_scale=%s requires base_batch=, the global batch for "
                    "which lr=%g is right; try: base_batch=%d",
                    config_word(r, "lr_scale"), r->lr, r->batch);
    if (r->heads > 0 && r->channels > 0 && r->channels % r->heads != 0)
        return fail("heads=%d does not divide channels=%d; try: channels=%d",
                    r->heads, r->channels,
                    (r->channels / r->heads + 1) * r->heads);
    if (config_check_mesh(r, b) || check_pace(r, b) || check_mistake(r, b) ||
        check_layers(r, b) || check_offload(r, b) || config_check_squeeze(r) ||
        check_gpu(r))
        return -1;
    if (strcmp(r->resume, "auto") == 0 && r->out[0] == '\0')
        return fail("resume=auto looks for checkpoints in out; try: out=DIR");
    if (r->save > 0 && r->out[0] == '\0')
        return fail("save=%d has nowhere to write; try: out=DIR", r->save);
    if (r->save_async && r->save == 0)
        return fail("save_async=1: nothing is saved without save=; try: "
                    "save=100");
    if (r->save_async && (b->shards || b->apart || mesh_parts(&r->mesh) > 1))
        return fail("save_async=1 saves only a copy of worker 0's state, but "
                    "here other workers hold parts of it; try: save_async=0");
    if (own->steps > 0 && r->steps > 0 && own->steps >= r->steps)
        return fail("mistake=own_steps:%d:%d requires fewer steps than "
                    "steps=%d; try: own_steps:%d:%d",
                    own->rank, own->steps, r->steps, own->rank, r->steps / 2);
    // In an elastic job the servers have what a dead worker needs.
    if (r->restarts > 0 && r->save == 0 && !r->settings.elastic)
        return fail("restarts=%d without save= would do every step again; try: "
                    "save=100",
                    r->restarts);
    if (r->world > 0 && r->rank >= r->world)
        return fail("rank=%d of world=%d: ranks count from 0; try: rank=%d",
                    r->rank, r->world, r->world - 1);
    if (b->launch == LAUNCH_ALONE && (r->workers > 1 || r->world > 1))
        return fail("sync=%s trains one worker, not %d; try: sync=ring",
                    b->name, r->workers > 1 ? r->workers : r->world);
    if (r->curve[0] && !b->servers)
        return fail("curve=%s encrypts messages of servers, and sync=%s has "
                    "none; try: leave it out",
                    r->curve, b->name);
    if (r->world == 0 && r->rank >= 0)
        return fail("rank=%d without world; try: world=N", r->rank);
    return config_check_backend(r, b) || check_in_step(r, b) ||
                   check_apart(r, b)
               ? -1
               : 0;
}
