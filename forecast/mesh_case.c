// mesh_case.c - predicts a step of a model on a mesh of workers.

#include "forecast/mesh_case.h"

#include "base/base.h"
#include "config/backends.h"
#include "forecast/mesh_links.h"
#include "forecast/sizes.h"
#include "model/part.h"
#include "optim/optim.h"
#include "sync/derive.h"
#include "sync/sync.h"
#include "train/shape.h"

#include <math.h>
#include <string.h>

enum { MOST_BLOCKS = 1024 };

// FLOP of a token in a layer and in the head, forward.
static double layer_flop(const struct model_config *m)
{
    double C = m->channels;
    return 24 * C * C + 4.0 * m->context * C;
}

static double head_flop(const struct model_config *m)
{
    return 2.0 * m->vocab * m->channels;
}

void mesh_measured(struct mesh_job *j, int layers, double forward,
                   double backward)
{
    double layer = layer_flop(&j->model), head = head_flop(&j->model);
    double times = 2 + j->run->recompute;
    double each[] = {forward / (layers * layer + head),
                     backward / (layers * times * layer + 2 * head)};
    j->layer_forward = layer * each[0];
    j->layer_backward = times * layer * each[1];
    j->head_forward = head * each[0];
    j->head_backward = 2 * head * each[1];
}

void mesh_divide(struct mesh_job *j, double seconds)
{
    int layers = j->model.layers;
    double layer = layers * layer_flop(&j->model), head = head_flop(&j->model);
    double times = 2 + j->run->recompute;
    double forward =
        seconds * (layer + head) / ((1 + times) * layer + 3 * head);
    mesh_measured(j, layers, forward, seconds - forward);
}

int mesh_settle(struct mesh_job *job, struct run *r)
{
    job->run = r;
    job->backend = backend_find(r->sync);
    memset(job->layers, 0, sizeof job->layers);
    r->threads = sizes_threads(r, job->slots);
    if (mesh_size(&r->mesh, MESH_TP) == 1)
        r->tp_sequence = 0;
    if (mesh_size(&r->mesh, MESH_CP) == 1)
        r->attention_over = 0;
    if (!job->backend->shards)
        r->settings.shard = SHARD_STATE;
    if (r->stages.n)
        memcpy(job->layers, r->stages.layers, sizeof job->layers);
    return shape_pipeline(r, &job->plan);
}

// ---- stages

static int slices_of(const struct mesh_job *job)
{
    return mesh_size(&job->run->mesh, MESH_TP);
}

static int pieces_of(const struct mesh_job *job)
{
    return mesh_pieces(&job->run->mesh);
}

// The axis along which heads are exchanged.
static enum mesh_axis heads_axis(const struct mesh_job *job)
{
    return mesh_size(&job->run->mesh, MESH_UP) > 1 ? MESH_UP : MESH_CP;
}

// The ranks that add their gradients: replicas, and in each the workers that
// divide its sequences.
static int members_of(const struct mesh_job *job)
{
    return mesh_size(&job->run->mesh, MESH_DP) * pieces_of(job);
}

// The slowest link between neighbours of these ranks.
static struct link members_link(const struct mesh_job *job)
{
    static const enum mesh_axis axes[] = {MESH_CP, MESH_UP};
    struct link slowest = mesh_axis_link(job, MESH_DP);
    bool none = mesh_size(&job->run->mesh, MESH_DP) == 1;
    for (int i = 0; i < 2; i++) {
        struct link link = mesh_axis_link(job, axes[i]);
        if (mesh_size(&job->run->mesh, axes[i]) > 1 &&
            (none || link.bytes_per_s < slowest.bytes_per_s)) {
            slowest = link;
            none = false;
        }
    }
    return slowest;
}

// Returns how many parameters of a part one of its `slices` slices has (Shoeybi
// et al., 2019): a share of the token embeddings, of the matrices and of the
// biases of c_attn and c_fc, and all other parameters.
static double slice_params(const struct model_config *c, int slices)
{
    double C = c->channels, V = c->vocab, L = c->layers;
    double tables = part_embeds(c) || part_has_head(c) ? V * C : 0;
    double cut = tables + L * (12 * C * C + 7 * C);
    return (double)model_nparams(c) - cut + cut / slices;
}

static const int *cut_of(const struct mesh_job *job)
{
    return job->layers[0] ? job->layers : NULL;
}

static struct law_mesh law_of_stage(const struct mesh_job *job, int stage,
                                    int layers)
{
    return shape_mesh(job->run, &job->plan, &job->model, members_of(job), stage,
                      layers);
}

// Returns the seconds that a worker computes in forward or backward of one
// micro-batch, through all chunks of its stage.
static double stage_computes(const struct mesh_job *job, int stage, int layers,
                             bool backward)
{
    bool last = stage == job->plan.stages - 1;
    double layer = backward ? job->layer_backward : job->layer_forward;
    double head = backward ? job->head_backward : job->head_forward;
    return job->run->batch * (layers * layer + last * head) /
           (slices_of(job) * pieces_of(job));
}

// Returns the seconds of the exchanges between slices in forward or backward of
// one micro-batch.
static double exchanges(const struct law_mesh *law, const struct link *link,
                        bool backward)
{
    struct law ring = law_ring(law->slices);
    struct law half = {ring.hops / 2, ring.share / 2};
    struct law norm = {law->slices - 1, law->slices - 1};
    double n = law->rows / law->pieces * law->channels;
    double joins = law_mesh_joins(law, backward);
    if (!law->sequence)
        return joins * law_seconds(&ring, link, law->sum * n);
    return joins * law_seconds(&half, link, law->sum * n) +
           law_mesh_gathers(law, backward) *
               law_seconds(&half, link, law->width * n) +
           law_mesh_norms(law, backward) *
               law_seconds(&norm, link, 8 * law->channels);
}

// Returns the seconds for which a micro-batch waits for other workers' keys and
// values, for the sums of their gradients, and for heads, in forward or
// backward of `layers` layers. `computes` is how long it computes in one of
// them. Around a ring keys travel while attention computes, in all steps but
// one.
static double keys_time(const struct mesh_job *job, const struct law_mesh *law,
                        double computes, int layers, bool backward)
{
    int n = law->pieces / law->up, sums = backward;
    struct link link = mesh_axis_link(job, MESH_CP);
    struct link inside = mesh_axis_link(job, heads_axis(job));
    double share = 4.0 * job->model.context * job->model.channels /
                   layer_flop(&job->model);
    double hidden = job->run->attention_over == ATTENTION_RING
                        ? computes * share * (n - 1) / n
                        : 0;
    double times = 1 + sums * (1 + law->recompute);
    double travels = (n - 1) * times * link.alpha_s +
                     law_mesh_keys(law, backward) / link.bytes_per_s;
    double heads = (law->up - 1) * times * inside.alpha_s +
                   law_mesh_heads(law, backward) / inside.bytes_per_s;
    return layers * (heads + fmax(0, travels - hidden));
}

// The same with the exchanges between slices, and for sequences in pieces.
static double stage_time(const struct mesh_job *job, int stage, int layers,
                         bool backward)
{
    struct law_mesh law = law_of_stage(job, stage, layers);
    double t = stage_computes(job, stage, layers, backward);
    if (law.pieces > 1) {
        double one = backward ? job->layer_backward : job->layer_forward;
        one *= (double)job->run->batch / (slices_of(job) * law.pieces);
        t += keys_time(job, &law, one, layers, backward);
    }
    if (law.slices == 1)
        return t;
    struct link link = mesh_axis_link(job, MESH_TP);
    return t + exchanges(&law, &link, backward);
}

// ---- the pipeline

// Sets the time of the pipeline and its idle share. 0, or -1 after fail().
static int run_pipeline(const struct mesh_job *job, struct mesh_step *s)
{
    const struct pipeline *p = &job->plan;
    double f[PIPELINE_STAGES], b[PIPELINE_STAGES], hops[PIPELINE_STAGES];
    double busy = 0;
    s->pipeline_s = p->micro * (s->forward[0] + s->backward[0]);
    if (p->stages == 1)
        return 0;
    struct law_mesh law = law_of_stage(job, 0, 0);
    double stream = law.rows / law.pieces * law.channels * law.width;
    if (law.sequence)
        stream /= law.slices;
    for (int k = 0; k < p->stages; k++) {
        struct link link = mesh_stage_link(job, k);
        f[k] = s->forward[k] / p->chunks;
        b[k] = s->backward[k] / p->chunks;
        busy += p->micro * (s->forward[k] + s->backward[k]) / p->stages;
        hops[k] = link.alpha_s + stream / link.bytes_per_s;
    }
    struct pipeline_times times = {.forward_s = f,
                                   .backward_s = b,
                                   .hops_s = hops};
    struct timetable_entry *e =
        mem_alloc((size_t)(p->stages * timetable_length(p)), sizeof *e);
    s->pipeline_s = e ? timetable_run(p, &times, e) : -1;
    mem_free(e);
    s->bubble = fmax(0, 1 - busy / s->pipeline_s);
    return s->pipeline_s < 0 ? -1 : 0;
}

// Sets the times of all stages, without the exchange among their replicas.
// Returns 0, or -1 after fail().
static int add_stages(const struct mesh_job *job, struct mesh_step *out)
{
    for (int s = 0; s < job->plan.stages; s++) {
        struct model_config part = job->model;
        if (job->plan.stages > 1 &&
            part_cut(&job->model, job->plan.stages, s, job->plan.chunks,
                     cut_of(job), &part))
            return -1;
        out->forward[s] = stage_time(job, s, part.layers, false);
        out->backward[s] = stage_time(job, s, part.layers, true);
    }
    return 0;
}

// A bound of the pipeline's time: the first micro-batch passes the stages
// before one, that stage does all of its work, and the last gradient goes back.
static double least_seconds(const struct mesh_job *job,
                            const struct mesh_step *s)
{
    const struct pipeline *p = &job->plan;
    double before = 0, most = 0;
    for (int k = 0; k < p->stages; k++) {
        double one = s->forward[k] + s->backward[k];
        most = fmax(most, before + p->micro * one);
        before += p->chunks == 1 ? one : 0;
    }
    return most;
}

// ---- replicas

// Of the parameters of a slice those that a worker updates.
static double own_params(const struct mesh_job *job, double params)
{
    return params / (job->backend->shards ? members_of(job) : 1);
}

// Whether they are in the file of offload=disk, too.
static bool params_in_file(const struct mesh_job *job)
{
    return job->disk > 0 && job->backend->shards &&
           job->run->settings.shard == SHARD_PARAMS;
}

// Returns the seconds of the update of `own` parameters. What is in a file is
// read and written meanwhile.
static double updates(const struct mesh_job *job, double own)
{
    const struct run *r = job->run;
    int floats = optim_slots_of((uint32_t)r->optimizer, (float)r->momentum) +
                 params_in_file(job);
    double moved = job->disk > 0 ? 2.0 * 4 * floats / job->disk : 0;
    return own * fmax(job->update, moved);
}

// Returns the seconds of the pipeline, or those for which a worker's `own`
// parameters are read from a file meanwhile: in forward and in backward of each
// micro-batch.
static double computes(const struct mesh_job *job, double own,
                       double pipeline_s)
{
    double bytes = 2.0 * 4 * job->plan.micro * own;
    return params_in_file(job) ? fmax(pipeline_s, bytes / job->disk)
                               : pipeline_s;
}

// Predicts the step of one stage: the pipeline of `pipeline_s` seconds, the
// exchange among the stage's replicas while it runs, and the update. forecast()
// expects whole vectors. For a slice, which has only `params`, the link is made
// faster by the same factor.
static int add_replicas(const struct mesh_job *job,
                        const struct model_config *config, double params,
                        double pipeline_s, double backward_s,
                        struct forecast *out)
{
    struct bucket blocks[MOST_BLOCKS];
    struct sync_settings set = job->run->settings;
    int replicas = members_of(job);
    double n = (double)model_nparams(config), own = own_params(job, params);
    int servers = set.servers.count;
    sync_derive(&set, job->backend, replicas, (size_t)n);
    struct law_step step =
        shape_step(job->run, &set, replicas, job->plan.micro);
    struct law squeezed = {0};
    int follow = job->backend->shards ? shape_scatter(config, &set, &step)
                 : set.squeeze
                     ? shape_squeezed_law(config, job->backend, &set, replicas,
                                          servers, &squeezed)
                     : 0;
    if (follow < 0)
        return -1;
    step.cut = blocks;
    step.count = shape_blocks(config, blocks, MOST_BLOCKS);
    struct tensor layer; // the first tensor behind wte and wpe
    model_tensor(config, 2, &layer);
    struct forecast_job f = {
        .exchange = {.workers = replicas,
                     .servers = servers,
                     .held = sync_holds(&set, job->backend),
                     .algorithm = set.algorithm,
                     .every = set.every,
                     .squeezed = set.squeeze ? &squeezed : NULL},
        .follow = follow,
        .params = n,
        .bytes_each = (double)dtype_bytes(set.wire),
        .step = &step,
        .bucket = set.bucket_mb * 1048576 / sizeof(float),
        .embeddings = (double)layer.off,
        .compute_s = computes(job, own, pipeline_s) + updates(job, own),
        .backward_s = backward_s,
        .tokens = (double)job->run->batch * job->plan.micro *
                  job->model.context / pieces_of(job),
    };
    *out = (struct forecast){.overlapped_s = f.compute_s};
    if (replicas == 1)
        return 0;
    struct links links = {.n = 1, .fits = {{.who = "tcp"}}};
    links.fits[0].link = members_link(job);
    links.fits[0].link.bytes_per_s *= n / params;
    if (forecast(&f, job->backend, job->links ? job->links : &links, out))
        return -1;
    out->link_bytes *= params / n;
    return 0;
}

// ---- all of it

// Returns the seconds of the exchanges after the last micro-batch: the first
// and the last stage add their gradients of the tied embedding, and all stages
// exchange the norm.
static double after_pipeline(const struct mesh_job *job)
{
    const struct model_config *m = &job->model;
    if (job->plan.stages == 1)
        return 0;
    struct link link = mesh_stage_link(job, job->plan.stages - 1);
    double tied = 4.0 * m->vocab * m->channels / slices_of(job);
    return job->plan.stages * link.alpha_s + tied / link.bytes_per_s;
}

// Whether servers or an owner update.
static bool holds(const struct mesh_job *job)
{
    struct sync_settings set = job->run->settings;
    sync_derive(&set, job->backend, members_of(job), 0);
    return sync_holds(&set, job->backend);
}

int mesh_step(const struct mesh_job *job, double enough, struct mesh_step *out)
{
    struct sizes sizes[PIPELINE_STAGES];
    int stages = job->plan.stages;
    memset(out, 0, sizeof *out);
    out->stages = stages;
    out->parts = job->layers[0] ? stages * job->plan.chunks : 0;
    memcpy(out->cut, job->layers, sizeof out->cut);
    if (add_stages(job, out))
        return -1;
    out->seconds = least_seconds(job, out);
    if (out->seconds > enough)
        return 0;
    out->seconds = 0;
    for (int s = 0; s < stages; s++) {
        if (sizes_stage(job->run, &job->plan, cut_of(job), s, &sizes[s]))
            return -1;
        int layers = sizes[s].part.layers;
        out->params[s] = slice_params(&sizes[s].part, slices_of(job));
        out->compute_s +=
            (job->plan.micro * (stage_computes(job, s, layers, false) +
                                stage_computes(job, s, layers, true)) +
             updates(job, own_params(job, out->params[s]))) /
            stages;
        out->of_stage[s] = sizes[s].worker;
        out->server = sizes[s].server;
        out->layers[s] = layers;
        if (memory_sum(&out->of_stage[s]) > memory_sum(&out->memory))
            out->memory = out->of_stage[s];
    }
    if (run_pipeline(job, out))
        return -1;
    for (int s = 0; s < stages; s++) {
        struct law_mesh law = law_of_stage(job, s, out->layers[s]);
        struct forecast f;
        for (int k = 0; k < 2; k++)
            out->joins[k][s] = law_mesh_joins(&law, k);
        if (add_replicas(job, &sizes[s].part, out->params[s], out->pipeline_s,
                         out->backward[s], &f))
            return -1;
        if (f.overlapped_s > out->seconds) {
            out->seconds = f.overlapped_s;
            out->exchange = f;
        }
        out->bytes[MESH_DP] = fmax(out->bytes[MESH_DP], f.link_bytes);
        out->bytes[MESH_PP] = fmax(out->bytes[MESH_PP], law_mesh_stages(&law));
        out->bytes[MESH_TP] = fmax(out->bytes[MESH_TP], law_mesh_slices(&law));
        double all = law_mesh_pieces(&law), heads = law_mesh_groups(&law);
        double up = heads_axis(job) == MESH_UP ? heads : 0;
        out->bytes[MESH_CP] = fmax(out->bytes[MESH_CP], all - up);
        out->bytes[MESH_UP] = fmax(out->bytes[MESH_UP], up);
    }
    out->tied_s = after_pipeline(job);
    out->seconds += out->tied_s;
    out->held = holds(job);
    return 0;
}

// ---- the layers of each stage

static double slowest(const struct mesh_job *job, const int *layers)
{
    double most = 0;
    for (int s = 0; s < job->plan.stages; s++)
        most = fmax(most, stage_time(job, s, layers[s], false) +
                              stage_time(job, s, layers[s], true));
    return most;
}

// Gives the last stage `last` layers and divides the rest evenly. If they do
// not divide, the first stages get one more.
static void divide(int layers, int stages, int last, int *out)
{
    int others = layers - last, n = stages - 1;
    for (int s = 0; s < n; s++)
        out[s] = others / n + (s < others % n);
    out[n] = last;
}

void mesh_cut(struct mesh_job *job)
{
    int p = job->plan.stages, L = job->model.layers, cut[STAGES_PARTS];
    job->layers[0] = 0;
    if (p == 1 || job->plan.chunks > 1 || L < p)
        return;
    divide(L, p, L / p, cut);
    double best = slowest(job, cut);
    for (int last = L / p - 1; last > 0; last--) {
        divide(L, p, last, cut);
        double t = slowest(job, cut);
        if (t >= best * (1 - 1e-9))
            break; // the last stage is not the slowest
        best = t;
        memcpy(job->layers, cut, sizeof cut);
    }
}
