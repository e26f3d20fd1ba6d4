// span_perf.c - the cost of recording spans and samples during training steps.
//
//     span_perf [MODEL [BATCH [ROUNDS]]]
//
// Steps that record spans, with a sampler that runs ten times a second,
// alternate with steps that record nothing. So other load of the machine slows
// down both equally. The bench prints medians.

#include "base/base.h"
#include "base/median.h"
#include "bench/workload.h"
#include "telemetry/sampler.h"
#include "telemetry/span.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RECORDS = 1 << 15, VOCAB = 256, CALLS = 1000000 };

static double ns_a_span(struct spans *s)
{
    struct span_lane *l = spans_lane(s, "bench");
    uint64_t start = now_ns();
    for (int i = 0; i < CALLS; i++) {
        span_begin(l, SPAN_SEND, i);
        span_end(l);
    }
    return (double)(now_ns() - start) / CALLS;
}

// Milliseconds of a step that records into `lane`.
static double step_ms(struct workload *w, struct span_lane *lane)
{
    struct model_step step = {.x = w->x, .y = w->y, .scale = 1, .lane = lane};
    float loss;
    uint64_t start = now_ns();
    span_begin(lane, SPAN_STEP, 1);
    if (model_train(w->model, &step, &loss))
        die("%s", fail_message());
    span_end(lane);
    return (double)(now_ns() - start) * 1e-6;
}

int main(int argc, char **argv)
{
    const char *preset = argc > 1 ? argv[1] : "micro";
    if (!strcmp(preset, "--help") || !strcmp(preset, "-h")) {
        printf("span_perf [MODEL [BATCH [ROUNDS]]] - the cost of recording; "
               "default: micro 4 101\n");
        return 0;
    }
    int batch = argc > 2 ? atoi(argv[2]) : 4;
    int rounds = argc > 3 ? atoi(argv[3]) : 101;
    struct workload_case is = {.batch = batch,
                               .precision = DTYPE_F32,
                               .threads = 1};
    struct workload w;
    struct spans *s;
    struct sampler *sampler = NULL;
    if (batch < 1 || rounds < 1)
        die("batch %d, rounds %d; try: whole numbers from 1", batch, rounds);
    if (model_preset(preset, &is.config))
        die("%s", fail_message());
    is.config.vocab = VOCAB;
    is.tokens = is.config.context;
    if (workload_open(&w, &is))
        die("%s", fail_message());
    double *on = mem_alloc((size_t)rounds, sizeof *on);
    double *off = mem_alloc((size_t)rounds, sizeof *off);
    if (!on || !off || spans_open(&s, RECORDS))
        die("%s", fail_message());
    char samples[] = "/tmp/span_perf-XXXXXX";
    int fd = mkstemp(samples);
    if (fd < 0)
        die("%s: cannot be made; try: df /tmp", samples);
    close(fd);
    struct sampler_config config = {.path = samples,
                                    .who = "0",
                                    .spans = s,
                                    .cores = 1,
                                    .per_s = 10,
                                    .zero_ns = now_ns()};
    for (int i = -2; i < rounds; i++) {
        double bare = step_ms(&w, NULL);
        if (sampler_open(&sampler, &config))
            die("%s", fail_message());
        double recorded = step_ms(&w, spans_compute(s));
        if (sampler_close(&sampler))
            die("%s", fail_message());
        if (i < 0)
            continue;
        off[i] = bare;
        on[i] = recorded;
    }
    double without = median(off, rounds), with = median(on, rounds);
    printf("%-8s %6s %10s %10s %9s %12s\n", "model", "batch", "off_ms", "on_ms",
           "cost_%", "ns_per_span");
    printf("%-8s %6d %10.3f %10.3f %9.3f %12.1f\n", preset, batch, without,
           with, 100 * (with / without - 1), ns_a_span(s));
    unlink(samples);
    spans_close(&s);
    workload_close(&w);
    mem_free(on);
    mem_free(off);
    return 0;
}
