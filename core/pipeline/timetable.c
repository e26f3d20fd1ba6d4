// timetable.c - computes action number k of each schedule by a formula, and
// simulates whole steps.

#include "pipeline/timetable.h"

#include "base/base.h"

#include <math.h>
#include <stdbool.h>

const char *const pipeline_names[] = {"naive", "gpipe", "1f1b", NULL};

static int range(const char *what, int x, int min, int max)
{
    return x >= min && x <= max
               ? 0
               : fail("pipeline: %s=%d: want %d .. %d", what, x, min, max);
}

int pipeline_check(const struct pipeline *p)
{
    const char *name = pipeline_names[p->kind];
    if (range("stages", p->stages, 1, PIPELINE_STAGES) ||
        range("micro", p->micro, 1, PIPELINE_MICRO) ||
        range("chunks", p->chunks, 1, PIPELINE_CHUNKS) ||
        range("ahead", p->ahead, 0, PIPELINE_STAGES))
        return -1;
    if (p->ahead && (p->kind != PIPELINE_1F1B || p->chunks > 1))
        return fail("pipeline=%s chunks=%d: ahead=%d is for pipeline=1f1b "
                    "with one chunk; try: pipeline=1f1b chunks=1",
                    name, p->chunks, p->ahead);
    if (p->chunks == 1)
        return 0;
    if (p->kind != PIPELINE_1F1B || p->stages == 1)
        return fail("pipeline=%s stages=%d: chunks=%d is for pipeline=1f1b "
                    "with two stages or more; try: chunks=1",
                    name, p->stages, p->chunks);
    if (p->micro % p->stages)
        return fail("pipeline=1f1b chunks=%d: %d micro-batches are no multiple "
                    "of %d stages; try: %d micro-batches",
                    p->chunks, p->micro, p->stages,
                    (p->micro / p->stages + 1) * p->stages);
    return 0;
}

// How many forwards a stage computes in a step. It computes as many backwards.
static int forwards(const struct pipeline *p)
{
    return p->micro * p->chunks;
}

int timetable_length(const struct pipeline *p)
{
    return 2 * forwards(p);
}

// How many forwards a stage computes before forwards and backwards begin to
// alternate.
static int warm_up(const struct pipeline *p, int stage)
{
    int behind = p->stages - 1 - stage;
    int w = p->kind == PIPELINE_NAIVE   ? 0
            : p->kind == PIPELINE_GPIPE ? forwards(p)
            : p->chunks > 1 ? 2 * behind + (p->chunks - 1) * p->stages
                            : behind * (1 + p->ahead);
    return w < forwards(p) ? w : forwards(p);
}

// Forward number i of a stage, or its backward number i. In an interleaved
// schedule a stage takes as many micro-batches as there are stages through one
// chunk, then through the next. Backward begins with the last chunk.
static struct action nth(const struct pipeline *p, enum action_kind kind, int i)
{
    if (p->chunks == 1)
        return (struct action){kind, i, 0};
    int turn = p->stages * p->chunks, within = i % turn;
    int chunk = within / p->stages;
    return (struct action){kind, i / turn * p->stages + within % p->stages,
                           kind == ACTION_FORWARD ? chunk
                                                  : p->chunks - 1 - chunk};
}

struct action timetable_action(const struct pipeline *p, int stage, int k)
{
    int all = forwards(p), w = warm_up(p, stage);
    CHECK(stage >= 0 && stage < p->stages && k >= 0 && k < 2 * all);
    if (k < w)
        return nth(p, ACTION_FORWARD, k);
    if (k >= 2 * all - w)
        return nth(p, ACTION_BACKWARD, k - all);
    int turn = (k - w) / 2;
    return (k - w) % 2 ? nth(p, ACTION_BACKWARD, turn)
                       : nth(p, ACTION_FORWARD, w + turn);
}

int timetable_slots(const struct pipeline *p, int stage)
{
    int w = warm_up(p, stage);
    return w < forwards(p) ? w + 1 : w;
}

double timetable_bubble(const struct pipeline *p)
{
    double n = p->stages;
    return p->kind == PIPELINE_NAIVE ? 1 - 1 / n
                                     : (n - 1) / (forwards(p) + n - 1);
}

// ---- simulation

struct simulation {
    const struct pipeline *p;
    const struct pipeline_times *times;
    double *ends; // by kind, part of the model and micro-batch; NAN: not done
    struct timetable_entry *out;
    int at[PIPELINE_STAGES]; // actions done
};

static double *end_of(const struct simulation *y, enum action_kind kind,
                      int part, int micro)
{
    const struct pipeline *p = y->p;
    int parts = p->stages * p->chunks;
    return &y->ends[((int)kind * parts + part) * p->micro + micro];
}

// Seconds of a hop from a part of the model to the next part.
static double hop(const struct simulation *y, int part)
{
    const struct pipeline_times *t = y->times;
    if (y->p->stages == 1)
        return 0;
    return t->hops_s ? t->hops_s[part % y->p->stages] : t->hop_s;
}

// The time at which the action's input arrives; NAN if it is not known yet.
static double arrival(const struct simulation *y, int part, struct action a)
{
    int last = y->p->stages * y->p->chunks - 1;
    if (a.kind == ACTION_BACKWARD && part == last)
        return *end_of(y, ACTION_FORWARD, part, a.micro);
    if (a.kind == ACTION_BACKWARD)
        return *end_of(y, ACTION_BACKWARD, part + 1, a.micro) + hop(y, part);
    if (part == 0)
        return 0;
    return *end_of(y, ACTION_FORWARD, part - 1, a.micro) + hop(y, part - 1);
}

// Runs a stage as far as possible. Returns whether it did anything.
static bool advance(struct simulation *y, int stage)
{
    int length = timetable_length(y->p), before = y->at[stage];
    struct timetable_entry *e = y->out + stage * length;
    for (; y->at[stage] < length; y->at[stage]++) {
        int k = y->at[stage];
        struct action a = timetable_action(y->p, stage, k);
        int part = a.chunk * y->p->stages + stage;
        double came = arrival(y, part, a), free = k ? e[k - 1].end_s : 0;
        if (isnan(came))
            break;
        double takes = a.kind == ACTION_FORWARD ? y->times->forward_s[stage]
                                                : y->times->backward_s[stage];
        double begin = came > free ? came : free;
        e[k] = (struct timetable_entry){stage, a, begin, begin + takes};
        *end_of(y, a.kind, part, a.micro) = begin + takes;
    }
    return y->at[stage] > before;
}

double timetable_run(const struct pipeline *p, const struct pipeline_times *t,
                     struct timetable_entry *out)
{
    struct simulation y = {.p = p, .times = t, .out = out};
    int length = timetable_length(p), stages = p->stages, done = 0;
    size_t n = (size_t)stages * (size_t)length;
    double end = 0;
    if (!(y.ends = mem_alloc(n, sizeof *y.ends)))
        return -1;
    for (size_t i = 0; i < n; i++)
        y.ends[i] = NAN;
    for (bool moved = true; moved;) {
        moved = false;
        for (int s = 0; s < stages; s++)
            moved |= advance(&y, s);
    }
    for (int s = 0; s < stages; s++) {
        done += y.at[s];
        if (y.at[s] == length)
            end = fmax(end, out[(s + 1) * length - 1].end_s);
    }
    mem_free(y.ends);
    return done == stages * length ? end : -1;
}
