// forecast.c - what a step will take on links that are known.

#include "lockstep/forecast.h"

#include "config/backends.h"

#include <math.h>

// Gradients in buckets that hold some of the embeddings.
static double late(const struct forecast_job *j)
{
    double end = j->params, len = j->first_bucket;
    while (end - len >= j->embeddings && end > len) {
        end -= len;
        len = j->bucket;
    }
    return end;
}

int forecast(const struct forecast_job *j, const struct backend *b,
             const struct links *links, struct forecast *out)
{
    const struct link_fit *fit = links_find(links, b->name);
    if (!fit)
        return -1;
    struct law law = law_of(b, &j->exchange);
    struct law_case flows = j->exchange;
    flows.held = false; // holding answers takes time, and no bytes
    double back = b->shards ? j->bytes_back : j->bytes_each;
    double each = (j->bytes_each + back) / 2;
    double bytes = j->params * each;
    double t = law_seconds(&law, &fit->link, bytes);
    double last = law_seconds(&law, &fit->link, late(j) * each);
    double error = links_error(fit, bytes);
    bool waits = b->servers && j->exchange.held;
    double after = waits ? 0.5 : 0; // the answers: none before backward ends
    if (b->traffic == TRAFFIC_OWNER)
        after = 1; // nothing before backward ends
    if (b->shards)
        after = back / (2 * each); // the parameters: likewise
    if (b->apart)
        after = 1;  // of parameters that all steps of a round have updated
    double step[3]; // as it is, and at either end of the error
    for (int i = 0; i < 3; i++) {
        double f = 1 + (i == 2) * error - (i == 1) * error;
        double sent =
            fmax((1 - after) * f * t - j->backward_s, (1 - after) * f * last);
        step[i] = j->compute_s + after * f * t + sent;
    }
    *out = (struct forecast){.link_bytes = law_of(b, &flows).share * bytes,
                             .exchange_s = t,
                             .apart_s = j->compute_s + t,
                             .overlapped_s = step[0],
                             .tokens_per_s =
                                 j->exchange.workers * j->tokens / step[0],
                             .efficiency = j->compute_s / step[0],
                             .least_s = step[1],
                             .most_s = step[2]};
    return 0;
}
