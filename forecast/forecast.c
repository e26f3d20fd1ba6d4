// forecast.c - predicts the time of a step from the figures of the links.

#include "forecast/forecast.h"

#include "config/backends.h"
#include "sync/bucket.h"

#include <math.h>

// Returns the number of gradients in buckets with gradients of the embeddings.
static double late(const struct forecast_job *j)
{
    double end = j->params;
    double len = (double)bucket_first((size_t)j->params, (size_t)j->bucket);
    while (end - len >= j->embeddings && end > len) {
        end -= len;
        len = j->bucket;
    }
    return end;
}

// Times of a step's exchanges with shards, without the fit's error.
struct flows {
    double sums_s, gathers_s, again_s, norm_s; // again_s: gathers for backward
    double last_s, first_s; // sums of the late buckets, gather of block 0
};

static struct flows flows_of(const struct forecast_job *j,
                             const struct link *link)
{
    const struct law_step *s = j->step;
    double out[GROUP_VERBS], once = 0, again = 0;
    double per_byte = 1 / link->bytes_per_s, hops = s->world - 1;
    bool sums = s->kind >= SHARD_GRADS, lends = s->kind >= SHARD_PARAMS;
    int passes = sums ? s->micro : 1, forwards = lends ? s->micro : 1;
    law_step_mean(s, out);
    for (int i = 0; i < s->count; i++) {
        int b = s->count - 1 - i, n = s->count;
        once += (double)s->cut[i].n *
                (lends ? law_gathers(b, n, s->micro, false) : 1);
        again += (double)s->cut[i].n *
                 (lends ? law_gathers(b, n, s->micro, true) : 0);
    }
    double gather = out[GROUP_ALL_GATHER] * per_byte / (once + again);
    double part = hops / s->world * per_byte; // seconds a byte, one direction
    double latency = hops * link->alpha_s, first = latency;
    double each = (double)s->sum_bytes; // of a gradient
    if (s->messages) {
        first = link->alpha_s; // all at once
        each = (double)s->messages / passes * s->world / j->params;
    }
    return (struct flows){
        .sums_s =
            passes * first +
            (out[GROUP_REDUCE_SCATTER] + out[GROUP_ALL_TO_ALL]) * per_byte,
        .gathers_s = forwards * latency + gather * once,
        .again_s = lends ? s->micro * latency + gather * again : 0,
        .norm_s = 2 * latency + out[GROUP_ALL_REDUCE] * per_byte,
        .last_s = first + part * each * (sums ? j->embeddings : late(j)),
        .first_s = latency + part * (double)s->param_bytes * j->embeddings,
    };
}

// Returns the seconds of a step if the network takes f times as long.
static double step_of(const struct forecast_job *j, const struct flows *t,
                      double f)
{
    const struct law_step *s = j->step;
    double backward = j->backward_s, forward = backward / 2;
    if (s->kind >= SHARD_GRADS)
        backward *= s->micro;
    if (s->kind >= SHARD_PARAMS)
        forward *= s->micro;
    return j->compute_s + f * t->norm_s +
           fmax(f * (t->sums_s + t->again_s) - backward, f * t->last_s) +
           fmax(f * t->gathers_s - forward, f * t->first_s);
}

// Returns the bytes that the busiest worker sends: all chunks but its own, and
// all but its right neighbour's. The last chunks are the smallest.
static double busiest(const struct law_step *s)
{
    double most = 0;
    for (int r = s->world - 2; r < s->world; r++) {
        struct group_stats one;
        law_step_bytes(s, r, &one);
        most = fmax(most, (double)one.bytes_out);
    }
    return most;
}

static void fill(const struct forecast_job *j, double exchange_s,
                 const double step[3], struct forecast *out)
{
    out->exchange_s = exchange_s;
    out->apart_s = j->compute_s + exchange_s;
    out->overlapped_s = step[0];
    out->tokens_per_s = j->exchange.workers * j->tokens / step[0];
    out->efficiency = j->compute_s / step[0];
    out->least_s = step[1];
    out->most_s = step[2];
}

static int forecast_shards(const struct forecast_job *j,
                           const struct link_fit *fit, struct forecast *out)
{
    struct flows t = flows_of(j, &fit->link);
    double error = links_error(fit, j->params * j->bytes_each);
    const double step[3] = {step_of(j, &t, 1), step_of(j, &t, 1 - error),
                            step_of(j, &t, 1 + error)};
    fill(j, t.sums_s + t.gathers_s + t.again_s + t.norm_s, step, out);
    out->link_bytes = busiest(j->step);
    return 0;
}

int forecast(const struct forecast_job *j, const struct backend *b,
             const struct links *links, struct forecast *out)
{
    const struct link_fit *fit = links_find(links, b->name);
    if (!fit)
        return -1;
    if (b->shards)
        return forecast_shards(j, fit, out);
    struct law law = law_of(b, &j->exchange);
    struct law_case flows = j->exchange;
    flows.held = false; // deferred replies take time, but no more bytes
    double bytes = j->params * j->bytes_each;
    double t = law_seconds(&law, &fit->link, bytes);
    struct law one = {law.hops / (j->follow > 1 ? j->follow : 1), law.share};
    double last = law_seconds(&one, &fit->link, late(j) * j->bytes_each);
    double error = links_error(fit, bytes);
    bool waits = b->servers && j->exchange.held;
    // The share of the exchange that cannot begin before backward ends.
    double after = waits ? 0.5 : 0; // the replies
    if (b->traffic == TRAFFIC_OWNER)
        after = 1; // all of it
    if (b->apart)
        after = 1;  // it exchanges parameters, after a round's last update
    double step[3]; // the estimate, and both ends of its error
    for (int i = 0; i < 3; i++) {
        double f = 1 + (i == 2) * error - (i == 1) * error;
        double sent =
            fmax((1 - after) * f * t - j->backward_s, (1 - after) * f * last);
        step[i] = j->compute_s + after * f * t + sent;
    }
    fill(j, t, step, out);
    out->link_bytes = law_of(b, &flows).share * bytes;
    return 0;
}
