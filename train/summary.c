// summary.c - writes summary.json: the results of a run, of all ranks.

#include "train/summary.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "config/backends.h"
#include "config/mesh.h"
#include "device/device.h"
#include "telemetry/manifest.h"
#include "telemetry/steps.h"
#include "telemetry/times.h"
#include "train/trainer.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PATH = CONFIG_PATH + 64 };

// What every rank reports of this part of the run.
struct rank_report {
    uint64_t here; // 0: an elastic job has lost this worker
    struct group_stats moved;
    uint64_t out[MESH_AXES];
    uint64_t peak_bytes;
    struct memory memory;
};

static double steps_here(const struct trainer *t)
{
    return (double)(t->step - t->observe.first_step);
}

// The MFU (model FLOP utilisation) of a worker: its tokens/s in the median step
// times the FLOP of a token, divided by the measured peak of its GPU, and by
// that of its data sheet.
static void add_mfu(struct manifest *m, const struct trainer *t,
                    const struct steps_summary *s)
{
    struct model_job job = trainer_model_job(t);
    struct model_peak peak;
    if (device_is_host(t->dev))
        return;
    if (model_peak(&job, &peak)) {
        log_line("summary.json: without MFU: %s", fail_message());
        return;
    }
    double flop = model_flop(&t->whole, t->whole.context);
    double step = (double)t->run.batch * t->run.accum * t->whole.context;
    double rate = step / s->median_step_s * flop;
    manifest_text(m, "device", peak.device);
    manifest_number(m, "flop_per_token", flop);
    manifest_number(m, "peak_measured_flop_per_s", peak.measured);
    manifest_number(m, "mfu_measured_share", rate / peak.measured);
    if (peak.sheet > 0) {
        manifest_number(m, "peak_data_sheet_flop_per_s", peak.sheet);
        manifest_number(m, "mfu_data_sheet_share", rate / peak.sheet);
    }
}

// Adds the prediction of peak_memory_bytes, by part.
static void add_memory(struct manifest *m, const struct memory *of)
{
    manifest_number(m, "predicted_memory_bytes",
                    (double)(memory_sum(of) + of->mapped));
    manifest_begin(m, "predicted_memory");
    manifest_number(m, "parameters_bytes", (double)of->params);
    manifest_number(m, "gradients_bytes", (double)of->grads);
    manifest_number(m, "optimizer_bytes", (double)of->optimizer);
    manifest_number(m, "buffers_bytes", (double)of->buffers);
    manifest_number(m, "activations_bytes", (double)of->activations);
    manifest_number(m, "process_bytes", (double)of->process);
    manifest_number(m, "mapped_bytes", (double)of->mapped);
    manifest_end(m);
}

// Adds the bytes that a worker sends in a step of this part of the run, by
// verb, as the mean over all workers. Bytes of no verb went to servers. `moved`
// is the sum over all workers.
static void add_verbs(struct manifest *m, const struct trainer *t,
                      const struct group_stats *moved)
{
    double steps = steps_here(t);
    double each = steps * t->cluster->world;
    uint64_t other = moved->bytes_out;
    if (steps < 1)
        return;
    manifest_begin(m, "bytes_tx_per_worker_step");
    for (int v = 0; v < GROUP_VERBS; v++) {
        if (moved->out[v])
            manifest_number(m, group_verb_name((enum group_verb)v),
                            (double)moved->out[v] / each);
        other -= moved->out[v];
    }
    if (other)
        manifest_number(m, "push", (double)other / each);
    manifest_end(m);
}

// Adds the bytes that a rank sends in a step, by axis of the mesh: the mean of
// the `ranks` ranks in all[].
static void add_axes(struct manifest *m, const struct trainer *t,
                     const struct rank_report *all, int ranks)
{
    double each = steps_here(t) * ranks;
    if (each < 1)
        return;
    manifest_begin(m, "bytes_tx_per_step_by_axis");
    for (int a = 0; a < MESH_AXES; a++) {
        double sum = 0;
        for (int r = 0; r < ranks; r++)
            sum += (double)all[r].out[a];
        manifest_number(m, mesh_axis_name((enum mesh_axis)a), sum / each);
    }
    manifest_end(m);
}

// With a mesh, ranks hold different parts of the model, so each needs a
// different amount of memory: adds the numbers of each rank.
static void add_ranks(struct manifest *m, const struct trainer *t,
                      const struct rank_report *all)
{
    if (!t->run.mesh.n)
        return;
    add_axes(m, t, all, t->cluster->world);
    manifest_begin(m, "ranks");
    for (int r = 0; r < t->cluster->world; r++) {
        char name[16];
        snprintf(name, sizeof name, "%d", r);
        manifest_begin(m, name);
        for (int a = 0; a < MESH_AXES; a++)
            if (mesh_size(&t->run.mesh, (enum mesh_axis)a) > 1)
                manifest_number(m, mesh_axis_name((enum mesh_axis)a),
                                mesh_at(&t->run.mesh, r, (enum mesh_axis)a));
        add_axes(m, t, &all[r], 1);
        manifest_number(m, "peak_memory_bytes", (double)all[r].peak_bytes);
        add_memory(m, &all[r].memory);
        manifest_end(m);
    }
    manifest_end(m);
}

// ---- how long stages waited

struct idle {
    double bubble; // share of a step in which a stage waited, mean of stages
    // The share and the seconds of a step if the timetable ran with each
    // stage's measured forward and backward, and messages took no time. The
    // rest of the measured step follows at the end. NAN: trace=off measures no
    // parts of a step; with slices, their joins are not part of forward.
    double timetable_bubble, timetable_s;
};

// Seconds of a step in each stage, means over its replicas.
struct stage_times {
    const struct trainer *t;
    double forward[PIPELINE_STAGES], backward[PIPELINE_STAGES];
};

static void add_row(void *ctx, const char *who, const char *kind,
                    double seconds, int steps)
{
    struct stage_times *all = ctx;
    const struct trainer *t = all->t;
    if (!isdigit((unsigned char)*who) || atoi(who) >= t->cluster->world)
        return;
    int stage = mesh_at(&t->run.mesh, atoi(who), MESH_PP);
    double each = seconds / steps / t->members->world;
    if (!strcmp(kind, "forward"))
        all->forward[stage] += each;
    if (!strcmp(kind, "backward"))
        all->backward[stage] += each;
}

// Returns the seconds of the timetable; 0 or less: it has none.
static double run_timetable(const struct pipeline *p,
                            const struct stage_times *all)
{
    double f[PIPELINE_STAGES], b[PIPELINE_STAGES];
    int each = p->micro * p->chunks;
    for (int s = 0; s < p->stages; s++) {
        f[s] = all->forward[s] / each;
        b[s] = all->backward[s] / each;
    }
    struct pipeline_times times = {.forward_s = f, .backward_s = b};
    struct timetable_entry *e =
        mem_alloc((size_t)(p->stages * timetable_length(p)), sizeof *e);
    double whole = e ? timetable_run(p, &times, e) : -1;
    mem_free(e);
    return whole;
}

// For a run with stages, from its breakdown.csv and the seconds of a step,
// which are means over all steps of all ranks.
static void idle_of(const struct trainer *t, double step_s, double bubble_s,
                    struct idle *out)
{
    struct stage_times all = {.t = t};
    *out = (struct idle){bubble_s / step_s, NAN, NAN};
    if (t->slices)
        return;
    times_each(t->run.out, add_row, &all);
    double busy = 0; // the mean over all stages
    for (int s = 0; s < t->plan.stages; s++)
        busy += (all.forward[s] + all.backward[s]) / t->plan.stages;
    double whole = busy > 0 ? run_timetable(&t->plan, &all) : -1;
    // What the timetable does not cover: the update, the exchange among
    // replicas, reading data.
    double rest = fmax(0, step_s - bubble_s - busy);
    if (whole <= 0)
        return;
    out->timetable_bubble = (whole - busy) / (whole + rest);
    out->timetable_s = whole + rest;
}

// Adds how long the stages waited, and how long they would have waited by the
// timetable.
static void add_stages(struct manifest *m, const struct trainer *t,
                       const struct steps_summary *s)
{
    struct idle idle = {.bubble = NAN};
    bool stages = t->plan.stages > 1;
    if (stages)
        idle_of(t, s->mean_step_s, s->mean_bubble_s, &idle);
    manifest_number(m, "bubble_share", idle.bubble);
    if (!stages || t->slices)
        return;
    manifest_begin(m, "timetable");
    manifest_number(m, "bubble_share", idle.timetable_bubble);
    manifest_number(m, "step_s", idle.timetable_s);
    manifest_end(m);
}

// ---- all of it

static int write_summary(const struct trainer *t, const struct rank_report *all)
{
    struct group_stats moved = {0};
    char path[PATH];
    struct steps_summary s;
    if (steps_summarise(t->run.out, t->settings.every, &s) ||
        text_into(path, sizeof path, "%s/summary.json", t->run.out))
        return -1;
    struct manifest *m = manifest_open();
    if (!m)
        return -1;
    manifest_text(m, "backend", t->backend->name);
    manifest_number(m, "world", t->cluster->world);
    manifest_number(m, "steps", s.steps);
    manifest_number(m, "steps_skipped", s.skipped);
    manifest_number(m, "gradients_dropped", s.dropped);
    manifest_number(m, "restarts", s.restarts);
    manifest_number(m, "steps_lost", s.lost);
    manifest_number(m, "final_train_loss", s.final_loss);
    manifest_number(m, "best_train_loss", s.best_loss);
    manifest_number(m, "final_val_loss", s.final_val_loss);
    manifest_number(m, "best_val_loss", s.best_val_loss);
    manifest_number(m, "best_val_step", s.best_val_step);
    manifest_number(m, "tokens", (double)s.tokens);
    manifest_number(m, "seconds", s.seconds);
    manifest_number(m, "seconds_lost", s.seconds_lost);
    manifest_number(m, "seconds_whole", s.seconds + s.seconds_lost);
    manifest_number(m, "tokens_per_s", s.tokens_per_s);
    manifest_number(m, "median_step_s", s.median_step_s);
    manifest_number(m, "bytes_tx", (double)s.bytes_out);
    manifest_number(m, "bytes_rx", (double)s.bytes_in);
    for (int r = 0; r < t->cluster->world; r++)
        group_stats_add(&moved, &all[r].moved);
    add_verbs(m, t, &moved);
    const struct rank_report *mine = &all[t->cluster->rank];
    manifest_number(m, "peak_memory_bytes", (double)mine->peak_bytes);
    add_memory(m, &mine->memory);
    add_ranks(m, t, all);
    add_stages(m, t, &s);
    add_mfu(m, t, &s);
    return manifest_close(&m, path);
}

// Gathers the reports of all ranks. An answer without this rank's report is of
// an exchange that the others made before this worker came back: it keeps what
// they reported, and makes the next one. *writer becomes the lowest rank that
// is here.
static int gather(const struct trainer *t, const struct rank_report *mine,
                  struct rank_report *all, int *writer)
{
    struct cluster *c = t->cluster;
    struct rank_report *got = mem_alloc((size_t)c->world, sizeof *got);
    int rc = got ? 0 : -1;
    while (!rc && !all[c->rank].here) {
        rc = cluster_allgather(c, mine, got, sizeof *got);
        for (int r = c->world - 1; !rc && r >= 0; r--) {
            if (!got[r].here)
                continue;
            all[r] = got[r];
            *writer = r;
        }
    }
    mem_free(got);
    return rc;
}

int summary_write(const struct trainer *t)
{
    struct rank_report mine = {.here = true,
                               .moved = t->moved,
                               .peak_bytes = mem_peak(),
                               .memory = t->memory};
    struct rank_report *all = mem_alloc((size_t)t->cluster->world, sizeof *all);
    int writer = 0;
    memcpy(mine.out, t->axis_out, sizeof mine.out);
    int rc = all ? gather(t, &mine, all, &writer) : -1;
    if (!rc && t->cluster->rank == writer)
        rc = steps_merge(t->run.out, t->cluster->world) ||
                     observe_merge(t->run.out) || write_summary(t, all)
                 ? -1
                 : 0;
    mem_free(all);
    return rc;
}
