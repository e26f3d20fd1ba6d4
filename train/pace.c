// pace.c - a worker that sleeps instead of computing.

#include "train/pace.h"

#include "base/base.h"
#include "telemetry/span.h"
#include "train/trainer.h"

static void sleep_until(uint64_t end)
{
    uint64_t now = now_ns();
    if (now < end)
        sleep_ns(end - now);
}

// The chunk's part of the vector is [from, to): chunks are taken to be equal.
static void fall(const struct trainer *t, const struct model_step *s, int chunk,
                 uint64_t begin, double ns)
{
    size_t n = model_nparams(&t->config), chunks = (size_t)t->plan.chunks;
    size_t from = n / chunks * (size_t)chunk;
    size_t to = chunk + 1 == t->plan.chunks ? n : from + n / chunks;
    for (int i = 0; i < t->sync->job.nbuckets; i++) {
        size_t off = t->buckets[i].off;
        if (off >= to || off <= from)
            continue;
        double done = (double)(to - off) / (double)(to - from);
        sleep_until(begin + (uint64_t)(done * ns));
        s->watermark(s->ctx, off);
    }
    sleep_until(begin + (uint64_t)ns);
    s->watermark(s->ctx, from);
}

void pace_action(const struct trainer *t, struct action a,
                 const struct model_step *s)
{
    const struct pace *p = &t->run.pace;
    bool forward = a.kind == ACTION_FORWARD;
    double ns = 1e6 * (forward ? p->forward_ms : p->backward_ms);
    uint64_t begin = now_ns();
    span_begin(s->lane, forward ? SPAN_FORWARD : SPAN_BACKWARD, a.micro);
    if (s->watermark && !forward)
        fall(t, s, a.chunk, begin, ns);
    else
        sleep_until(begin + (uint64_t)ns);
    span_end(s->lane);
}
