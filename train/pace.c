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
    if (rows < 2 * (size_t)t->config.part.slices)
        return fail("pace=: %zu tokens are too few for the exchanges of "
                    "tp_sequence=1; try: a larger batch",
                    rows);
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

int pace_action(struct trainer *t, struct action a, const struct model_step *s)
{
    const struct pace *p = &t->run.pace;
    bool forward = a.kind == ACTION_FORWARD, falls = !forward && s->watermark;
    struct exchanges left = exchanges_of(t, a);
    int joins = left.sums + left.rows + left.norms;
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
            rc = exchange(t, &left);
        if (falls)
            fall(t, s, a.chunk, (double)k / parts);
    }
    span_end(s->lane);
    return rc;
}
