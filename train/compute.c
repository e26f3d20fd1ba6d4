// compute.c - runs forward and backward of a step's micro-batches, in the order
// of the stage's timetable. With one stage the micro-batches run one after the
// other.

#include "train/compute.h"

#include "base/base.h"
#include "data/data.h"
#include "device/busy.h"
#include "model/part.h"
#include "sync/law_mesh.h"
#include "telemetry/span.h"
#include "train/sequences.h"
#include "train/slices.h"
#include "train/stages.h"
#include "train/trainer.h"

#include <math.h>

// All gradients from element `off` on are complete: mark their buckets ready.
static void mark_ready(struct trainer *t, size_t off)
{
    const struct sync *s = t->sync;
    struct span_lane *lane = t->observe.lane;
    while (!t->ready_failed && s->next_bucket < s->job.nbuckets &&
           s->job.buckets[s->next_bucket].off >= off) {
        span_begin(lane, SPAN_READY, s->next_bucket);
        t->ready_failed = sync_ready(t->sync, s->next_bucket) != 0;
        span_end(lane);
    }
}

// Backward has filled the gradients from element `off` on. With stages, the
// gradient of the tied embedding table is complete only after stages_tie().
static void on_watermark(void *ctx, size_t off)
{
    struct trainer *t = ctx;
    size_t tied = stages_tied(t);
    mark_ready(t, off > tied ? off : tied);
}

static size_t batch_tokens(const struct trainer *t)
{
    return (size_t)t->run.batch * (size_t)t->config.context;
}

// The input and target tokens of an activation slot, (B, T) each.
static int32_t *x_of(const struct trainer *t, int slot)
{
    return t->x + (size_t)slot * batch_tokens(t);
}

static int32_t *y_of(const struct trainer *t, int slot)
{
    return t->y + (size_t)slot * batch_tokens(t);
}

static int next_batch(struct trainer *t, int slot)
{
    if (!t->scatters) {
        if (data_next(t->data, x_of(t, slot), y_of(t, slot)))
            return -1;
        sequences_pick(t, x_of(t, slot));
        sequences_pick(t, y_of(t, slot));
        return 0;
    }
    if (t->replica == 0 && data_next(t->data, t->x, t->y))
        return -1;
    return sync_scatter(t->sync, t->x, t->y, batch_tokens(t));
}

static struct model_step step_of(struct trainer *t, struct action a,
                                 const struct model_pass *pass)
{
    bool lent = t->share.lends_grads, last = a.micro == t->run.accum - 1;
    return (struct model_step){
        .x = x_of(t, pass->slot),
        .y = y_of(t, pass->slot),
        .step = t->step,
        .micro = a.micro,
        .scale = t->scale.scale,
        .accumulate = a.micro > 0 && !lent,
        .watermark = last || lent ? on_watermark : NULL,
        .ctx = t,
        .lane = t->observe.lane,
    };
}

// Only the first and the last stage of the model need tokens. Both read the
// same ones.
static int read_batch(struct trainer *t, struct action a, int slot)
{
    if (a.kind != ACTION_FORWARD ||
        !(stages_is_first(t, a.chunk) || stages_is_last(t, a.chunk)))
        return 0;
    span_begin(t->observe.lane, SPAN_DATA, -1);
    if (next_batch(t, slot))
        return -1;
    span_end(t->observe.lane);
    return 0;
}

// ---- pace=F,B
//
// A worker sleeps instead of computing: a forward of one chunk and one
// micro-batch takes F ms, a backward B ms, plus the waits for other slices. All
// messages travel as in training. This measures schedules with more stages than
// there are processors, or with another processor's times. Nothing is learned:
// gradients are 0, and there is no loss.

// A backward lowers its watermark at least this many times.
enum { PARTS = 16 };

// What an action exchanges between slices: how many of each kind.
struct exchanges {
    int sums, rows, norms;
};

// A chunk counts as a stage of its own: the first, the last, both or neither.
static struct exchanges exchanges_of(const struct trainer *t, struct action a)
{
    int from, to;
    bool first = stages_is_first(t, a.chunk), last = stages_is_last(t, a.chunk);
    bool backward = a.kind == ACTION_BACKWARD;
    if (!slices_job(t))
        return (struct exchanges){0};
    part_chunk(&t->config, a.chunk, &from, &to);
    const struct law_mesh law = {.stages = 3 - first - last,
                                 .stage = first ? 0 : 1,
                                 .layers = to - from,
                                 .recompute = t->run.recompute,
                                 .sequence = t->run.tp_sequence};
    return (struct exchanges){law_mesh_joins(&law, backward),
                              law_mesh_gathers(&law, backward),
                              law_mesh_norms(&law, backward)};
}

// Makes the next exchange of *left in the buffer of the joins.
static int exchange(struct trainer *t, struct exchanges *left)
{
    const struct model_slices *s = slices_job(t);
    size_t rows = (size_t)t->run.batch * (size_t)t->config.context;
    size_t C = (size_t)t->config.channels;
    if (left->sums-- > 0)
        return s->sequence ? s->scatter_rows(s->ctx, s->sum, rows)
                           : s->join(s->ctx, s->sum, rows * C);
    if (left->rows-- > 0)
        return s->gather_rows(s->ctx, s->sum, rows);
    char said[CONFIG_SAID];
    if (rows < 2 * (size_t)t->config.part.slices)
        return fail("%s: %zu tokens are too few for the exchanges of "
                    "tp_sequence=1; try: a larger batch",
                    config_said(&t->run, "pace", said), rows);
    return s->gather(s->ctx, s->sum, 2 * C);
}

// Lowers the watermark by the fraction `done` of this chunk's range [from, to)
// of the vector. All chunks count as equally long here.
static void fall(const struct trainer *t, const struct model_step *s, int chunk,
                 double done)
{
    size_t n = model_nparams(&t->config), chunks = (size_t)t->plan.chunks;
    size_t from = n / chunks * (size_t)chunk;
    size_t to = chunk + 1 == t->plan.chunks ? n : from + n / chunks;
    s->watermark(s->ctx, to - (size_t)(done * (double)(to - from)));
}

// Sleeps as long as an action takes, with the joins of its layers spread evenly
// over that time. A backward with a watermark lowers it as time passes, as if
// all parameters of the chunk took equally long; it sets t->ready_failed if
// sync_ready() fails. Returns 0, or -1 after fail().
static int pace_action(struct trainer *t, struct action a,
                       const struct model_step *s)
{
    const struct pace *p = &t->run.pace;
    bool forward = a.kind == ACTION_FORWARD, falls = !forward && s->watermark;
    struct exchanges left = exchanges_of(t, a);
    int joins = left.sums + left.rows + left.norms;
    int parts = falls && joins + 1 < PARTS ? PARTS : joins + 1, rc = 0;
    double ns = 1e6 * (forward ? p->forward_ms : p->backward_ms) / parts;
    const uint64_t *waited = &t->sync->left_ns; // sync_waited() adds to it
    span_begin(s->lane, forward ? SPAN_FORWARD : SPAN_BACKWARD, a.micro);
    uint64_t begin = now_ns() - *waited;
    for (int k = 1; !rc && k <= parts; k++) {
        uint64_t end = begin + (uint64_t)(k * ns) + *waited;
        uint64_t now = now_ns();
        if (now < end)
            sleep_ns(end - now);
        if (k <= joins)
            rc = exchange(t, &left);
        if (falls)
            fall(t, s, a.chunk, (double)k / parts);
    }
    span_end(s->lane);
    return rc;
}

// ---- a step

static int run_action(struct trainer *t, struct action a,
                      const struct model_pass *pass)
{
    const struct model_step s = step_of(t, a, pass);
    float loss = 0;
    if (t->run.pace.given)
        return pace_action(t, a, &s) || t->ready_failed ? -1 : 0;
    busy_begin(t->dev, DEVICE_COMPUTE);
    if ((a.kind == ACTION_FORWARD
             ? model_forward(t->model, &s, pass)
             : model_backward(t->model, &s, pass, &loss)) ||
        t->ready_failed)
        return -1;
    busy_end(t->dev, DEVICE_COMPUTE);
    t->loss += (double)loss / t->run.accum;
    return 0;
}

int compute_step(struct trainer *t)
{
    int length = timetable_length(&t->plan);
    t->loss = t->run.pace.given ? NAN : 0;
    for (int k = 0; k < length; k++) {
        struct action a = timetable_action(&t->plan, t->stage, k);
        struct model_pass pass;
        if (stages_begin(t, a, &pass) || read_batch(t, a, pass.slot) ||
            run_action(t, a, &pass) || stages_end(t, a, &pass))
            return -1;
    }
    if (sequences_sum(t, &t->loss))
        return -1;
    if (t->plan.stages == 1)
        return 0;
    if (stages_tie(t))
        return -1;
    mark_ready(t, 0);
    return t->ready_failed ? -1 : 0;
}

// Forward only, chunk by chunk.
static int evaluate_batch(struct trainer *t, float *loss)
{
    *loss = 0;
    for (int c = 0; c < t->plan.chunks; c++) {
        const struct model_pass pass = {.chunk = c};
        if (stages_receive(t, c) ||
            model_eval_chunk(t->model, &pass, t->x, t->y, t->run.batch, loss) ||
            stages_send(t, c))
            return -1;
    }
    return 0;
}

int compute_val_loss(void *ctx)
{
    struct trainer *t = ctx;
    double sum = 0;
    span_begin(t->observe.lane, SPAN_EVALUATE, t->step);
    size_t i = 0, most = (size_t)t->run.eval_batches;
    for (; !most || i < most; i++) {
        float one;
        if (!data_val(t->data, i, t->x, t->y))
            break;
        sequences_pick(t, t->x);
        sequences_pick(t, t->y);
        if (evaluate_batch(t, &one))
            return -1;
        sum += (double)one;
    }
    if (sequences_sum(t, &sum) || stages_share(t, &sum))
        return -1;
    span_end(t->observe.lane);
    t->val_loss = i ? sum / (double)i : NAN;
    return 0;
}
