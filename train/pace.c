// pace.c - lets a worker sleep instead of computing.

#include "train/pace.h"

#include "base/base.h"
#include "model/part.h"
#include "sync/law_mesh.h"
#include "telemetry/span.h"
#include "train/slices.h"
#include "train/stages.h"
#include "train/trainer.h"

// A backward lowers its watermark at least this many times.
enum { PARTS = 16 };

// How many sums over slices (joins) an action has.
static int joins_of(const struct trainer *t, struct action a)
{
    int from, to;
    part_chunk(&t->config, a.chunk, &from, &to);
    const struct law_mesh law = {.stages = t->plan.stages,
                                 .stage = t->stage,
                                 .layers = to - from,
                                 .recompute = t->run.recompute};
    bool end = a.kind == ACTION_FORWARD ? stages_is_first(t, a.chunk)
                                        : stages_is_last(t, a.chunk);
    return law_mesh_layer_joins(&law, a.kind == ACTION_BACKWARD) + end;
}

static int join(struct trainer *t)
{
    const struct model_slices *s = slices_job(t);
    size_t n = (size_t)t->run.batch * (size_t)t->config.context;
    return s->join(s->ctx, s->sum, n * (size_t)t->config.channels);
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

int pace_action(struct trainer *t, struct action a, const struct model_step *s)
{
    const struct pace *p = &t->run.pace;
    bool forward = a.kind == ACTION_FORWARD, falls = !forward && s->watermark;
    int joins = slices_job(t) ? joins_of(t, a) : 0;
    int parts = falls && joins + 1 < PARTS ? PARTS : joins + 1, rc = 0;
    double ns = 1e6 * (forward ? p->forward_ms : p->backward_ms) / parts;
    uint64_t begin = now_ns(), joined = t->join_ns;
    span_begin(s->lane, forward ? SPAN_FORWARD : SPAN_BACKWARD, a.micro);
    for (int k = 1; !rc && k <= parts; k++) {
        uint64_t end = begin + (uint64_t)(k * ns) + t->join_ns - joined;
        uint64_t now = now_ns();
        if (now < end)
            sleep_ns(end - now);
        if (k <= joins)
            rc = join(t);
        if (falls)
            fall(t, s, a.chunk, (double)k / parts);
    }
    span_end(s->lane);
    return rc;
}
