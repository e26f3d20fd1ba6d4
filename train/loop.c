// loop.c - the training loop: the same whatever the backend.
//
//     for each micro-batch   data_next, model_train (backward reports buckets)
//     sync_step              parameters become the next parameters
//     now and then           evaluate, save, write a row, say how it goes
//
// Nothing here asks who averages or where the optimiser runs.

#include "train/trainer.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "data/data.h"
#include "device/busy.h"
#include "model/checkpoint.h"
#include "telemetry/span.h"
#include "telemetry/steps.h"
#include "train/place.h"
#include "train/progress.h"
#include "train/record.h"
#include "train/state.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { MAX_SKIPS = 20 }; // in a row: scaling the loss does not help

// Backward has filled all gradients from `off` on: hand complete buckets over.
static void on_watermark(void *ctx, size_t off)
{
    struct trainer *t = ctx;
    const struct sync *s = t->sync;
    struct span_lane *lane = t->observe.lane;
    while (!t->ready_failed && s->next_bucket < s->job.nbuckets &&
           s->job.buckets[s->next_bucket].off >= off) {
        span_begin(lane, SPAN_READY, s->next_bucket);
        t->ready_failed = sync_ready(t->sync, s->next_bucket) != 0;
        span_end(lane);
    }
}

// Forward and backward over all micro-batches; buckets go out during the last.
static int compute(struct trainer *t, struct step_row *row)
{
    int accum = t->run.accum;
    for (int micro = 0; micro < accum; micro++) {
        uint64_t start = now_ns();
        span_begin(t->observe.lane, SPAN_DATA, -1);
        if (data_next(t->data, t->x, t->y))
            return -1;
        span_end(t->observe.lane);
        uint64_t have = now_ns();
        bool last = micro == accum - 1;
        struct model_step s = {
            .x = t->x,
            .y = t->y,
            .step = t->step,
            .micro = micro,
            .scale = t->scale.scale,
            .accumulate = micro > 0,
            .watermark = last ? on_watermark : NULL,
            .ctx = t,
            .lane = t->observe.lane,
        };
        float loss;
        if (busy_begin(t->dev, DEVICE_COMPUTE) ||
            model_train(t->model, &s, &loss) || t->ready_failed ||
            busy_end(t->dev, DEVICE_COMPUTE))
            return -1;
        row->loss += (double)loss / accum;
        row->data_us += (have - start) / 1000;
        row->compute_us += (now_ns() - have) / 1000;
    }
    return 0;
}

// The first tensor whose gradient is not finite, for the message that stops the
// run: behind a stage in the host's copies, which the sum is left in. Where it
// is not left with everybody (servers, zero), only some workers' gradients show
// it; the others leave them the first word.
static int blame_tensor(const struct trainer *t)
{
    const float *grads =
        t->sync->stage ? t->sync->job.grads : place_read(t, t->grads);
    if (!grads)
        return -1;
    for (int i = 0; i < model_ntensors(&t->config); i++) {
        struct tensor tensor;
        model_tensor(&t->config, i, &tensor);
        for (size_t k = 0; k < tensor.n; k++) {
            float g = grads[tensor.off + k];
            if (!isfinite(g))
                return fail("step %d: the gradient of %s is %g at element %zu; "
                            "try: a smaller lr, or look at the data",
                            t->step + 1, tensor.name, (double)g, k);
        }
    }
    sleep(1);
    return fail("step %d: the sum of all gradients is not finite, but this "
                "worker's is; try: the line of a worker that names a tensor, "
                "a smaller lr, or look at the data",
                t->step + 1);
}

static int handle_skip(struct trainer *t, int *skips_in_a_row)
{
    if (!t->scaling)
        return blame_tensor(t);
    log_line("step %d: the gradient overflows at loss scale %g, skipped",
             t->step + 1, (double)t->scale.scale);
    if (++*skips_in_a_row < MAX_SKIPS)
        return 0;
    int rc = blame_tensor(t);
    log_line("%d steps in a row were skipped", MAX_SKIPS);
    return rc;
}

// Mean loss over this rank's share of the validation batches.
static int evaluate(struct trainer *t, double *loss)
{
    double sum = 0;
    span_begin(t->observe.lane, SPAN_EVALUATE, t->step);
    size_t i = 0, most = (size_t)t->run.eval_batches;
    for (; !most || i < most; i++) {
        float one;
        if (!data_val(t->data, i, t->x, t->y))
            break;
        if (model_eval(t->model, t->x, t->y, t->run.batch, &one))
            return -1;
        sum += (double)one;
    }
    span_end(t->observe.lane);
    *loss = i ? sum / (double)i : NAN;
    return 0;
}

// All replicas must be one: the same hash of what the model multiplies by, on
// every worker.
static int verify(const struct trainer *t)
{
    const struct half_copy *copy =
        t->sync->copy_only ? model_copy(t->model) : NULL;
    const void *params = copy ? copy->at : place_read(t, t->params);
    if (!params)
        return -1;
    size_t bytes = model_nparams(&t->config) *
                   dtype_bytes(copy ? copy->format : DTYPE_F32);
    uint64_t mine = hash_bytes(params, bytes);
    uint64_t *all = mem_alloc((size_t)t->members->world, sizeof *all);
    int rc = all ? cluster_allgather(t->members, &mine, all, sizeof mine) : -1;
    for (int r = 1; !rc && r < t->members->world; r++)
        if (all[r] != all[0])
            rc = fail("step %d: the parameters of rank %d are not those of "
                      "rank 0 (hash %016llx, %016llx)",
                      t->step, r, (unsigned long long)all[r],
                      (unsigned long long)all[0]);
    mem_free(all);
    return rc;
}

static bool due(int every, int step, int last)
{
    return every && (step % every == 0 || step == last);
}

// The update is part of the wait, where this worker does it. A straggler's
// delay stands for a slower processor.
static int agree(struct trainer *t, const struct sync_in *in,
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

static int new_weights(struct trainer *t)
{
    if (busy_begin(t->dev, DEVICE_COMPUTE))
        return -1;
    model_params_changed(t->model);
    return busy_end(t->dev, DEVICE_COMPUTE);
}

static int one_step(struct trainer *t, struct step_row *row, int *skips)
{
    const struct sync *s = t->sync, before = *s; // what it has counted so far
    uint64_t start = now_ns();
    span_begin(t->observe.lane, SPAN_STEP, t->step + 1);
    if (busy_step_begin(t->dev) || compute(t, row))
        return -1;
    struct sync_in in = {
        .step = t->updates + 1,
        .lr = schedule_lr(&t->schedule, t->step),
        .grad_scale =
            1 / ((float)t->replicas * (float)t->run.accum * t->scale.scale),
        .clip = (float)t->run.clip,
    };
    struct sync_out out;
    if (agree(t, &in, &out))
        return -1;
    row->lr = (double)in.lr;
    row->grad_norm = (double)out.grad_norm;
    row->loss_scale = (double)t->scale.scale;
    row->skipped = out.skipped;
    row->dropped = out.dropped;
    row->lag = out.lag;
    row->ready_us = (s->ready_ns - before.ready_ns) / 1000;
    row->sync_us = (s->step_ns - before.step_ns) / 1000;
    row->compute_us += (out.slowed_ended_ns - out.slowed_began_ns) / 1000;
    row->compute_us -= row->ready_us;
    row->bytes_out = s->stats.bytes_out - before.stats.bytes_out;
    row->bytes_in = s->stats.bytes_in - before.stats.bytes_in;
    row->head_out = s->stats.head_out - before.stats.head_out;
    row->head_in = s->stats.head_in - before.stats.head_in;
    if (out.skipped && handle_skip(t, skips))
        return -1;
    loss_scale_update(&t->scale, out.skipped);
    if (!out.skipped) {
        *skips = 0;
        t->updates += 1 + out.missed;
        if (new_weights(t))
            return -1;
    }
    t->step += 1 + out.missed;
    t->position += 1 + (uint64_t)out.missed;
    if (out.missed && data_seek(t->data, t->position))
        return -1;
    span_end(t->observe.lane);
    row->step_us = (now_ns() - start) / 1000;
    return busy_step_end(t->dev);
}

static int save(struct trainer *t)
{
    span_begin(t->observe.lane, SPAN_CHECKPOINT, t->step);
    int rc = state_save(t);
    span_end(t->observe.lane);
    return rc;
}

static int train(struct trainer *t)
{
    struct progress progress;
    uint64_t began = now_ns();
    uint64_t per_step = (uint64_t)t->replicas * (uint64_t)t->run.accum *
                        (uint64_t)t->run.batch * (uint64_t)t->config.context;
    int skips = 0;
    progress_begin(&progress, t);
    while (t->step < t->run.steps) {
        struct step_row row = {.val_loss = NAN};
        if (one_step(t, &row, &skips))
            return -1;
        row.step = t->step;
        row.tokens = (uint64_t)t->step * per_step;
        if (due(t->run.verify, t->step, t->run.steps) && verify(t))
            return -1;
        if (due(t->run.eval, t->step, t->run.steps) &&
            evaluate(t, &row.val_loss))
            return -1;
        row.time_s = t->time_before + (double)(now_ns() - began) * 1e-9;
        if ((t->rows && steps_write(t->rows, &row)) || observe_step(t, &row))
            return -1;
        if (due(t->run.save, t->step, t->run.steps) && save(t))
            return -1;
        progress_step(&progress, t, &row);
    }
    return 0;
}

// The checkpoint to begin from, "" for none: worker 0 looks, so that all take
// the same, where a file may be damaged or the file system slow to show it.
static int find_checkpoint(struct trainer *t, char *folder, size_t size)
{
    struct {
        bool found;
        char text[CONFIG_PATH + 64]; // the folder, or why there is none
    } answer = {.found = true};
    if (t->cluster->rank == 0 &&
        state_find(&t->run, answer.text, sizeof answer.text)) {
        answer.found = false;
        snprintf(answer.text, sizeof answer.text, "%s", fail_message());
    }
    if (cluster_bcast(t->cluster, &answer, sizeof answer))
        return -1;
    return answer.found ? text_into(folder, size, "%s", answer.text)
                        : fail("%s", answer.text);
}

// Weights on worker 0 from a checkpoint, a file or the seed; then everybody's.
static int begin(struct trainer *t)
{
    char folder[CONFIG_PATH + 64];
    if (find_checkpoint(t, folder, sizeof folder))
        return -1;
    bool resumed = folder[0] != '\0';
    if (resumed) {
        if (state_load(t, folder))
            return -1;
    } else if (strcmp(t->run.init, "random")) {
        if (checkpoint_read(t->run.init, &t->config, t->host))
            return -1;
    } else {
        model_init(&t->config, (uint64_t)t->run.seed, t->host);
    }
    if (place_write_params(t) || sync_bcast(t->sync) ||
        (resumed && state_load_slots(t, folder)))
        return -1;
    if (t->sync->joined) { // go on from where the others are
        t->step = t->updates = (int)t->sync->joined;
        t->position = t->sync->joined;
        log_line("joins a running job after its step %d", t->step);
    }
    model_params_changed(t->model);
    if (t->position && data_seek(t->data, t->position))
        return -1;
    if (t->step > t->run.steps)
        return fail("resume: the checkpoint is of step %d, after steps=%d; "
                    "try: a larger steps=",
                    t->step, t->run.steps);
    return 0;
}

int trainer_run(struct trainer *t, int argc, char *const *argv)
{
    if (begin(t) || record_begin(t, argc, argv) || train(t))
        return -1;
    return record_end(t);
}
