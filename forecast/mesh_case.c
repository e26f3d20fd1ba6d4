// mesh_case.c - predicts a step of a model on a mesh of workers.

#include "forecast/mesh_case.h"

#include "base/base.h"
#include "config/backends.h"
#include "forecast/mesh_links.h"
#include "forecast/sizes.h"
#include "model/part.h"
#include "optim/optim.h"
#include "sync/derive.h"
#include "sync/law_mesh.h"
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

// ---- stages

struct part {
    struct sizes is;
    double params; // of one slice of the stage
};

static int slices_of(const struct mesh_case *c)
{
    return mesh_size(&c->mesh, MESH_TP);
}

static int pieces_of(const struct mesh_case *c)
{
    return mesh_pieces(&c->mesh);
}

// The axis along which heads are exchanged.
static enum mesh_axis heads_axis(const struct mesh_case *c)
{
    return mesh_size(&c->mesh, MESH_UP) > 1 ? MESH_UP : MESH_CP;
}

// The ranks that add their gradients: replicas, and in each the workers that
// divide its sequences.
static int members_of(const struct mesh_case *c)
{
    return mesh_size(&c->mesh, MESH_DP) * pieces_of(c);
}

// The slowest link between neighbours of these ranks.
static struct link members_link(const struct mesh_job *job,
                                const struct mesh_case *c)
{
    static const enum mesh_axis axes[] = {MESH_CP, MESH_UP};
    struct link slowest = mesh_axis_link(job, MESH_DP);
    bool none = mesh_size(&c->mesh, MESH_DP) == 1;
    for (int i = 0; i < 2; i++) {
        struct link link = mesh_axis_link(job, axes[i]);
        if (mesh_size(&c->mesh, axes[i]) > 1 &&
            (none || link.bytes_per_s < slowest.bytes_per_s)) {
            slowest = link;
            none = false;
        }
    }
    return slowest;
}

static const int *cut_of(const struct mesh_case *c)
{
    return c->layers[0] ? c->layers : NULL;
}

static int read_part(const struct mesh_job *job, const struct mesh_case *c,
                     int stage, struct part *out)
{
    struct run r = *job->run;
    const struct sizes_rank rank = {&c->plan, cut_of(c), stage, &c->mesh};
    r.batch = c->batch;
    r.threads = sizes_threads(&r, job->slots);
    r.tp_sequence = c->sequence;
    r.attention_over = c->over;
    r.settings.wire = c->wire;
    r.settings.shard = c->backend->shards ? c->shard : SHARD_STATE;
    if (sizes_stage(&r, c->backend, &rank, &out->is))
        return -1;
    out->params = sizes_slice(&out->is.part, slices_of(c));
    return 0;
}

static struct law_mesh law_of_stage(const struct mesh_job *job,
                                    const struct mesh_case *c, int stage,
                                    int layers)
{
    const struct model_config *m = &job->model;
    struct sync_settings set = job->run->settings;
    set.wire = c->wire;
    return (struct law_mesh){
        .rows = (double)c->batch * m->context,
        .channels = m->channels,
        .vocab = m->vocab,
        .width = (double)dtype_bytes(config_format(job->run)),
        .sum = (double)dtype_bytes((enum dtype)job->run->tp_wire),
        .micro = c->plan.micro,
        .stages = c->plan.stages,
        .chunks = c->plan.chunks,
        .slices = slices_of(c),
        .layers = layers,
        .stage = stage,
        .recompute = job->run->recompute,
        .aligned = shape_aligned(job->run, c->backend, &set, members_of(c)),
        .sequence = c->sequence,
        .pieces = pieces_of(c),
        .up = config_exchange_heads(&c->mesh, c->over),
        .tokens = m->context,
        .heads = m->heads,
    };
}

// Returns the seconds that a worker computes in forward or backward of one
// micro-batch, through all chunks of its stage.
static double stage_computes(const struct mesh_job *job,
                             const struct mesh_case *c, int stage, int layers,
                             bool backward)
{
    bool last = stage == c->plan.stages - 1;
    double layer = backward ? job->layer_backward : job->layer_forward;
    double head = backward ? job->head_backward : job->head_forward;
    return c->batch * (layers * layer + last * head) /
           (slices_of(c) * pieces_of(c));
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
static double keys_time(const struct mesh_job *job, const struct mesh_case *c,
                        const struct law_mesh *law, double computes, int layers,
                        bool backward)
{
    int n = law->pieces / law->up, sums = backward;
    struct link link = mesh_axis_link(job, MESH_CP);
    struct link inside = mesh_axis_link(job, heads_axis(c));
    double share = 4.0 * job->model.context * job->model.channels /
                   layer_flop(&job->model);
    double hidden =
        c->over == ATTENTION_RING ? computes * share * (n - 1) / n : 0;
    double times = 1 + sums * (1 + law->recompute);
    double travels = (n - 1) * times * link.alpha_s +
                     law_mesh_keys(law, backward) / link.bytes_per_s;
    double heads = (law->up - 1) * times * inside.alpha_s +
                   law_mesh_heads(law, backward) / inside.bytes_per_s;
    return layers * (heads + fmax(0, travels - hidden));
}

// The same with the exchanges between slices, and for sequences in pieces.
static double stage_time(const struct mesh_job *job, const struct mesh_case *c,
                         int stage, int layers, bool backward)
{
    struct law_mesh law = law_of_stage(job, c, stage, layers);
    double t = stage_computes(job, c, stage, layers, backward);
    if (law.pieces > 1) {
        double one = backward ? job->layer_backward : job->layer_forward;
        one *= (double)c->batch / (slices_of(c) * law.pieces);
        t += keys_time(job, c, &law, one, layers, backward);
    }
    if (law.slices == 1)
        return t;
    struct link link = mesh_axis_link(job, MESH_TP);
    return t + exchanges(&law, &link, backward);
}

// ---- the pipeline

static int run_pipeline(const struct mesh_job *job, const struct mesh_case *c,
                        const struct mesh_step *s, double *seconds,
                        double *bubble)
{
    const struct pipeline *p = &c->plan;
    double f[PIPELINE_STAGES], b[PIPELINE_STAGES], hops[PIPELINE_STAGES];
    double busy = 0;
    *seconds = p->micro * (s->forward[0] + s->backward[0]);
    *bubble = 0;
    if (p->stages == 1)
        return 0;
    struct law_mesh law = law_of_stage(job, c, 0, 0);
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
    *seconds = e ? timetable_run(p, &times, e) : -1;
    mem_free(e);
    *bubble = fmax(0, 1 - busy / *seconds);
    return *seconds < 0 ? -1 : 0;
}

// Sets the times of all stages, without the exchange among their replicas.
// Returns 0, or -1 after fail().
static int add_stages(const struct mesh_job *job, const struct mesh_case *c,
                      struct mesh_step *out)
{
    for (int s = 0; s < c->plan.stages; s++) {
        struct model_config part = job->model;
        if (c->plan.stages > 1 && part_cut(&job->model, c->plan.stages, s,
                                           c->plan.chunks, cut_of(c), &part))
            return -1;
        out->forward[s] = stage_time(job, c, s, part.layers, false);
        out->backward[s] = stage_time(job, c, s, part.layers, true);
    }
    return 0;
}

// A bound of the pipeline's time: the first micro-batch passes the stages
// before one, that stage does all of its work, and the last gradient goes back.
static double least_seconds(const struct mesh_case *c,
                            const struct mesh_step *s)
{
    const struct pipeline *p = &c->plan;
    double before = 0, most = 0;
    for (int k = 0; k < p->stages; k++) {
        double one = s->forward[k] + s->backward[k];
        most = fmax(most, before + p->micro * one);
        before += p->chunks == 1 ? one : 0;
    }
    return most;
}

// ---- replicas

// Parameters that a worker updates.
static double own_params(const struct mesh_case *c, const struct part *part)
{
    return part->params / (c->backend->shards ? members_of(c) : 1);
}

// Whether they are in the file of offload=disk, too.
static bool params_in_file(const struct mesh_job *job,
                           const struct mesh_case *c)
{
    return job->disk > 0 && c->backend->shards && c->shard == SHARD_PARAMS;
}

// Returns the seconds of the update of the parameters that a worker holds. What
// is in a file is read and written meanwhile.
static double updates(const struct mesh_job *job, const struct mesh_case *c,
                      const struct part *part)
{
    const struct run *r = job->run;
    int floats = optim_slots_of((uint32_t)r->optimizer, (float)r->momentum) +
                 params_in_file(job, c);
    double moved = job->disk > 0 ? 2.0 * 4 * floats / job->disk : 0;
    return own_params(c, part) * fmax(job->update, moved);
}

// Returns the seconds of the pipeline, or those for which parameters are read
// from a file meanwhile: in forward and in backward of each micro-batch.
static double computes(const struct mesh_job *job, const struct mesh_case *c,
                       const struct part *part, double pipeline_s)
{
    double bytes = 2.0 * 4 * c->plan.micro * own_params(c, part);
    return params_in_file(job, c) ? fmax(pipeline_s, bytes / job->disk)
                                  : pipeline_s;
}

// Predicts the step of one stage: the pipeline of `pipeline_s` seconds, the
// exchange among the stage's replicas while it runs, and the update. forecast()
// expects whole vectors. For a slice, which is shorter, the link is made faster
// by the same factor.
static int add_replicas(const struct mesh_job *job, const struct mesh_case *c,
                        const struct part *part, double pipeline_s,
                        double backward_s, struct forecast *out)
{
    struct bucket blocks[MOST_BLOCKS];
    const struct model_config *config = &part->is.part;
    struct sync_settings set = job->run->settings;
    int replicas = members_of(c);
    double n = (double)model_nparams(config);
    int servers = set.servers.count;
    set.wire = c->wire;
    set.shard = c->backend->shards ? c->shard : SHARD_STATE;
    sync_derive(&set, c->backend, replicas, (size_t)n);
    struct law_step step = shape_step(job->run, &set, replicas, c->plan.micro);
    struct law squeezed = {0};
    int follow = c->backend->shards ? shape_scatter(config, &set, &step)
                 : set.squeeze
                     ? shape_squeezed_law(config, c->backend, &set, replicas,
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
                     .held = sync_holds(&set, c->backend),
                     .algorithm = set.algorithm,
                     .every = set.every,
                     .squeezed = set.squeeze ? &squeezed : NULL},
        .follow = follow,
        .params = n,
        .bytes_each = (double)dtype_bytes(set.wire),
        .step = &step,
        .bucket = set.bucket_mb * 1048576 / sizeof(float),
        .embeddings = (double)layer.off,
        .compute_s = computes(job, c, part, pipeline_s) + updates(job, c, part),
        .backward_s = backward_s,
        .tokens = (double)c->batch * c->plan.micro * job->model.context /
                  pieces_of(c),
    };
    *out = (struct forecast){.overlapped_s = f.compute_s};
    if (replicas == 1)
        return 0;
    struct links links = {.n = 1, .fits = {{.who = "tcp"}}};
    links.fits[0].link = members_link(job, c);
    links.fits[0].link.bytes_per_s *= n / part->params;
    if (forecast(&f, c->backend, job->links ? job->links : &links, out))
        return -1;
    out->link_bytes *= part->params / n;
    return 0;
}

// ---- all of it

// Returns the seconds of the exchanges after the last micro-batch: the first
// and the last stage add their gradients of the tied embedding, and all stages
// exchange the norm.
static double after_pipeline(const struct mesh_job *job,
                             const struct mesh_case *c)
{
    const struct model_config *m = &job->model;
    if (c->plan.stages == 1)
        return 0;
    struct link link = mesh_stage_link(job, c->plan.stages - 1);
    double tied = 4.0 * m->vocab * m->channels / slices_of(c);
    return c->plan.stages * link.alpha_s + tied / link.bytes_per_s;
}

int mesh_step(const struct mesh_job *job, const struct mesh_case *c,
              double enough, struct mesh_step *out)
{
    struct part parts[PIPELINE_STAGES];
    int stages = c->plan.stages;
    memset(out, 0, sizeof *out);
    if (add_stages(job, c, out))
        return -1;
    out->seconds = least_seconds(c, out);
    if (out->seconds > enough)
        return 0;
    out->seconds = 0;
    for (int s = 0; s < stages; s++) {
        if (read_part(job, c, s, &parts[s]))
            return -1;
        int layers = parts[s].is.part.layers;
        out->compute_s +=
            (c->plan.micro * (stage_computes(job, c, s, layers, false) +
                              stage_computes(job, c, s, layers, true)) +
             updates(job, c, &parts[s])) /
            stages;
        out->of_stage[s] = parts[s].is.worker;
        out->server = parts[s].is.server;
        out->layers[s] = layers;
        out->params[s] = parts[s].params;
        for (int k = 0; k < 2; k++) {
            struct law_mesh law = law_of_stage(job, c, s, layers);
            out->joins[k][s] = law_mesh_joins(&law, k);
        }
        if (memory_sum(&out->of_stage[s]) > memory_sum(&out->memory)) {
            out->memory = out->of_stage[s];
            out->stage = s;
        }
    }
    if (run_pipeline(job, c, out, &out->pipeline_s, &out->bubble))
        return -1;
    for (int s = 0; s < stages; s++) {
        struct law_mesh law = law_of_stage(job, c, s, parts[s].is.part.layers);
        struct forecast f;
        if (add_replicas(job, c, &parts[s], out->pipeline_s, out->backward[s],
                         &f))
            return -1;
        if (f.overlapped_s > out->seconds) {
            out->seconds = f.overlapped_s;
            out->exchange = f;
        }
        out->bytes[MESH_DP] = fmax(out->bytes[MESH_DP], f.link_bytes);
        out->bytes[MESH_PP] = fmax(out->bytes[MESH_PP], law_mesh_stages(&law));
        out->bytes[MESH_TP] = fmax(out->bytes[MESH_TP], law_mesh_slices(&law));
        double all = law_mesh_pieces(&law), heads = law_mesh_groups(&law);
        double up = heads_axis(c) == MESH_UP ? heads : 0;
        out->bytes[MESH_CP] = fmax(out->bytes[MESH_CP], all - up);
        out->bytes[MESH_UP] = fmax(out->bytes[MESH_UP], up);
    }
    out->tied_s = after_pipeline(job, c);
    out->seconds += out->tied_s;
    return 0;
}

// ---- the layers of each stage

static double slowest(const struct mesh_job *job, const struct mesh_case *c,
                      const int *layers)
{
    double most = 0;
    for (int s = 0; s < c->plan.stages; s++)
        most = fmax(most, stage_time(job, c, s, layers[s], false) +
                              stage_time(job, c, s, layers[s], true));
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

void mesh_cut(const struct mesh_job *job, struct mesh_case *c)
{
    int p = c->plan.stages, L = job->model.layers, cut[STAGES_PARTS];
    c->layers[0] = 0;
    if (p == 1 || c->plan.chunks > 1 || L < p)
        return;
    divide(L, p, L / p, cut);
    double best = slowest(job, c, cut);
    for (int last = L / p - 1; last > 0; last--) {
        divide(L, p, last, cut);
        double t = slowest(job, c, cut);
        if (t < best * (1 - 1e-9)) {
            best = t;
            memcpy(c->layers, cut, sizeof cut);
        }
    }
}
