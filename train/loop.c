// loop.c - the training loop, the same for every backend.
//
//     compute_step           forward and backward of all micro-batches
//     sync_step              parameters become the next parameters
//     now and then           evaluate, save, write a row, report progress
//
// Nothing here asks which worker averages or where the optimiser runs.

#include "train/trainer.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "data/data.h"
#include "device/busy.h"
#include "model/checkpoint.h"
#include "telemetry/span.h"
#include "telemetry/steps.h"
#include "train/check.h"
#include "train/compute.h"
#include "train/place.h"
#include "train/progress.h"
#include "train/record.h"
#include "train/run_state.h"
#include "train/slices.h"
#include "train/stages.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

// Whether what is done every `every` steps is due after `step`. `before` is
// this worker's last step before it. With backup=1 a late worker leaves steps
// out; what was due in them it does after the step that it reaches.
static bool due(int every, int before, int step, int last)
{
    return every && (step / every > before / every || step == last);
}

// Records the wait for the next parameters. The update is part of it if this
// worker updates. A straggler's delay is a span of its own: it stands for the
// work of a slower processor.
static int synchronize(struct trainer *t, const struct sync_in *in,
                       struct sync_out *out)
{
    struct span_lane *lane = t->observe.lane;
    span_begin(lane, SPAN_WAIT, -1);
    if (sync_step(t->sync, in, out))
        return -1;
    if (out->slowed_ended_ns)
        span_add(lane, SPAN_SLOWED, -1, out->slowed_began_ns,
                 out->slowed_ended_ns);
    if (out->update_ended_ns)
        span_add(lane, SPAN_UPDATE, -1, out->update_began_ns,
                 out->update_ended_ns);
    span_end(lane);
    return 0;
}

// After an update: all copies of a parameter become equal, and the model may
// use them.
static int new_weights(struct trainer *t)
{
    if (slices_align(t) || stages_align(t))
        return -1;
    busy_begin(t->dev, DEVICE_COMPUTE);
    model_params_changed(t->model);
    busy_end(t->dev, DEVICE_COMPUTE);
    return 0;
}

// The tokens of one replica's gradient.
static uint64_t step_tokens(const struct trainer *t)
{
    return (uint64_t)t->run.accum * (uint64_t)t->run.batch *
           (uint64_t)t->config.context;
}

// What the update of the next step needs.
static struct sync_in next_update(const struct trainer *t)
{
    return (struct sync_in){
        .step = t->updates + 1,
        .skipped = t->step - t->updates,
        .lr = schedule_lr(&t->schedule, t->step),
        .grad_scale = trainer_grad_scale(t),
        .clip = (float)t->run.clip,
        .loss = t->loss,
        .last = t->step + 1 >= t->run.steps,
    };
}

// Counts the step as done, and what it has used up.
static int go_on(struct trainer *t, const struct sync_out *out)
{
    loss_scale_update(&t->scale, out->skipped);
    t->skips = out->skipped ? t->skips : 0;
    t->updates += out->skipped ? 0 : 1 + out->missed;
    t->step += 1 + out->missed;
    t->tokens += (uint64_t)out->used * step_tokens(t) * (uint64_t)t->replicas /
                 (uint64_t)t->members->world;
    t->position += 1 + (uint64_t)out->missed;
    t->mean_loss = out->loss;
    return out->missed ? data_seek(t->data, t->position) : 0;
}

static int one_step(struct trainer *t, struct step_row *row)
{
    const struct so_far before = record_so_far(t);
    struct sync_out out;
    span_begin(t->observe.lane, SPAN_STEP, t->step + 1);
    busy_step_begin(t->dev);
    if (compute_step(t)) // batches, forward and backward
        return fail("%s (step %d)", fail_message(), t->step + 1);
    const struct sync_in in = next_update(t);
    if (synchronize(t, &in, &out)) // agree and update
        return -1;
    if ((out.skipped ? check_skip(t) : new_weights(t)) || go_on(t, &out))
        return -1;
    span_end(t->observe.lane);
    record_step(t, &before, &in, &out, row);
    busy_step_end(t->dev);
    return 0;
}

static int save(struct trainer *t)
{
    span_begin(t->observe.lane, SPAN_CHECKPOINT, t->step);
    int rc = state_save(t);
    span_end(t->observe.lane);
    return rc;
}

// The step after which this worker stops.
static int last_step(const struct trainer *t)
{
    const struct sync_mistake *own = &t->run.settings.mistake;
    bool fewer = own->steps > 0 && own->rank == t->cluster->rank &&
                 own->steps < t->run.steps;
    return fewer ? own->steps : t->run.steps;
}

// Turns profiling on or off if profile= says so for the next step.
static void profile(struct trainer *t)
{
    const struct profile *p = &t->run.profile;
    int since = t->step + 1 - p->from;
    bool on = t->step < last_step(t) && since >= 0 && since < p->count;
    if (on == t->profiling)
        return;
    t->profiling = on;
    device_profile(t->dev, on);
}

static int take_steps(void *ctx)
{
    struct trainer *t = ctx;
    struct progress progress;
    uint64_t began = now_ns();
    progress_begin(&progress, t);
    while (t->step < last_step(t)) {
        struct step_row row = {.val_loss = NAN,
                               .loss_scale = (double)t->scale.scale};
        int before = t->step, last = t->run.steps;
        profile(t);
        if (one_step(t, &row))
            return -1;
        if (due(t->run.verify, before, t->step, last) && check_replicas(t))
            return -1;
        if (!t->run.pace.given && due(t->run.eval, before, t->step, last)) {
            if (sync_work(t->sync, compute_val_loss, t))
                return -1;
            row.val_loss = t->val_loss;
        }
        row.time_s = t->time_before + (double)(now_ns() - began) * 1e-9;
        if ((t->rows && steps_write(t->rows, &row)) || observe_step(t, &row))
            return -1;
        if (state_settle(t, false) ||
            (due(t->run.save, before, t->step, last) && save(t)))
            return -1;
        progress_step(&progress, t, &row);
    }
    profile(t);
    return 0;
}

// Takes all steps. Where workers go at their own pace, the first may end long
// before the last, and waits for it as long as it lives. In an elastic job, and
// with verify=, the control plane has other exchanges meanwhile.
static int train(struct trainer *t)
{
    const struct sync_settings *set = &t->settings;
    bool own_pace = set->consistency.kind != CONSISTENCY_BSP || set->backup;
    return own_pace && !set->elastic && !t->run.verify
               ? cluster_work(t->cluster, take_steps, t)
               : take_steps(t);
}

// Continue at the step that the others have reached. They may have done the
// last one: then servers wait for a step that nobody will do.
static void join(struct trainer *t)
{
    int steps = (int)t->sync->joined, left = t->run.steps - t->step;
    steps = steps < left ? steps : left;
    t->step += steps;
    t->updates += (int)t->sync->joined_updates;
    t->position += (uint64_t)steps;
    t->tokens += t->sync->joined_used * step_tokens(t);
    log_line("joins a running job after its step %d", t->step);
}

// Worker 0's weights come from a checkpoint, a file or the seed; then all
// workers get them. A worker that joins a running job gets the present ones,
// and reads no checkpoint: it may have been removed. folder[] becomes the
// checkpoint's, or "". *held: see state_find().
static int begin(struct trainer *t, char folder[STATE_FOLDER], int *held)
{
    bool late = t->sync->late;
    if (state_find(t, folder, held))
        return -1;
    bool resumed = folder[0] != '\0';
    sync_resume(t->sync, t->step);
    if (!late && (resumed ? state_load(t, folder) : state_first(t)))
        return -1;
    place_write_params(t);
    if (sync_bcast(t->sync) || (resumed && state_load_slots(t, folder)))
        return -1;
    if (late)
        join(t);
    model_params_changed(t->model);
    if (t->position && data_seek(t->data, t->position))
        return -1;
    if (t->step > t->run.steps)
        return fail("resume: the checkpoint is of step %d, beyond steps=%d; "
                    "try: a larger steps=",
                    t->step, t->run.steps);
    return 0;
}

int trainer_run(struct trainer *t, int argc, char *const *argv)
{
    char folder[STATE_FOLDER];
    int held;
    if (begin(t, folder, &held) ||
        record_begin(t, folder, argc, argv)) // then all workers have begun
        return -1;
    if (held >= 0)
        close(held);
    if (train(t) || state_save_last(t))
        return -1;
    return record_end(t);
}

int trainer_evaluate(struct trainer *t, double *loss)
{
    char folder[STATE_FOLDER];
    int held;
    t->val_loss = NAN;
    int rc = begin(t, folder, &held);
    if (!rc && t->run.eval)
        rc = compute_val_loss(t);
    *loss = t->val_loss;
    if (held >= 0)
        close(held);
    return rc;
}
