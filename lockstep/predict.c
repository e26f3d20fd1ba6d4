// predict.c - `lockstep predict model=gpt2 workers=64 link=25gbit` predicts
// which backend is fastest for a model on given links, and by how much.

#include "lockstep/commands.h"

#include "base/base.h"
#include "config/backends.h"
#include "config/config.h"
#include "config/keys.h"
#include "lockstep/budget.h"
#include "lockstep/forecast.h"
#include "lockstep/gpu_step.h"
#include "lockstep/list.h"
#include "lockstep/own_words.h"
#include "lockstep/predict_mesh.h"
#include "lockstep/sizes.h"
#include "lockstep/step_time.h"
#include "model/model.h"
#include "optim/rule.h"
#include "squeeze/squeeze.h"
#include "sync/derive.h"
#include "sync/sync.h"
#include "train/shape.h"

#include <stddef.h>
#include <string.h>

enum { MOST_BLOCKS = 1024 };

struct question {
    struct run run;
    struct list workers, sync;
    struct links links;
    struct model_config model;
    struct forecast_job job;
    struct law_step step;              // of shards
    struct law squeezed;               // with squeeze=
    struct bucket blocks[MOST_BLOCKS]; // of the model
    // The values of the command line.
    char workers_asked[CONFIG_PATH], sync_asked[CONFIG_PATH];
    char link[CONFIG_PATH], device[CONFIG_PATH];
    double alpha_us, compute_ms;
    struct budget budget;
};

#define AT(member) offsetof(struct question, member), false

static const struct key own[] = {
    {"ways", "workers", "", KEY_TEXT, AT(workers_asked), .unit = "N,..",
     .help = "numbers of workers, as 4,16,64"},
    {"ways", "sync", "", KEY_TEXT, AT(sync_asked), .unit = "WAY,..",
     .help = "some of the ways below; empty: all"},
    {"ways", "link", "", KEY_TEXT, AT(link), .unit = "RATE|FILE",
     .help = "rate of a network that was not measured, as 25gbit, or as 3MB/s "
             "of payload; or a file with measurements: of the network by "
             "lockstep bench link out=FILE, or of each way on it by lockstep "
             "bench sync workers=2 out=FILE"},
    {"ways", "alpha_us", "25", KEY_NUMBER, AT(alpha_us), .min = 1e-6,
     .max = 1e9, .unit = "us", .help = "latency of a message, with link=RATE"},
    {"ways", "compute_ms", "0", KEY_NUMBER, AT(compute_ms), .min = 1e-6,
     .max = 1e9, .zero = "measured here", .unit = "ms",
     .help = "forward, backward and update of one worker's step; measuring "
             "takes minutes for a large model"},
    {"ways", "device", "cpu", KEY_TEXT, AT(device), .unit = "NAME",
     .help = "h100: estimate the step of such a GPU part by part, with "
             "precision=bf16; with link= the estimate replaces compute_ms"},
    BUDGET_KEYS("ways", struct question),
};

static const struct key_table keys = {own, sizeof own / sizeof *own,
                                      "lockstep predict --help"};

static bool on_gpu(const struct question *q)
{
    return strcmp(q->device, "cpu") != 0;
}

static void explain(FILE *f)
{
    char all[LIST_TEXT];
    fprintf(f, "lockstep predict workers=N,.. link=LINK [key=value] ...\n\n"
               "Predicts the time of an exchange and of a step for each "
               "backend, from its law and\nthe network's latency and rate, "
               "and says how uncertain the prediction is.\n");
    key_help(f, &keys);
    fprintf(f,
            "\nsync=%s\n\n"
            "These keys of train count as well: model and its sizes, batch, "
            "accum, precision, wire,\nservers (on hosts of their own), update, "
            "algorithm, every, shard, squeeze, density, "
            "levels, bucket_mb,\nfirst_bucket_mb; and for memory only: "
            "optimizer, recompute, threads, outer_rule,\nouter_momentum, "
            "staging, slice_kb, scope, feedback.\n"
            "  lockstep predict model=gpt2 workers=16,64 link=25gbit "
            "compute_ms=900\n"
            "  lockstep predict model=gpt2 workers=64 link=25gbit flops=312e12 "
            "mfu=0.4 tokens=1e10\n",
            list_all_backends(all));
    predict_mesh_explain(f);
}

// ---- computing, measured

static int measure(struct question *q)
{
    struct step_time t;
    log_line("measuring how long one worker computes here: %d steps; to skip "
             "this, give compute_ms=",
             STEP_TIME_STEPS);
    if (step_time(&q->run, &q->model, &t))
        return -1;
    q->job.compute_s = t.step_s;
    q->job.backward_s = t.backward_s / q->run.accum;
    return 0;
}

// ---- the settings asked for

static int read_model(struct question *q)
{
    const struct run *r = &q->run;
    struct model_config *c = &q->model;
    if (sizes_model(r, c))
        return -1;
    struct tensor layer; // the first tensor behind wte and wpe
    model_tensor(c, 2, &layer);
    q->job.embeddings = (double)layer.off;
    q->job.params = (double)model_nparams(c);
    q->job.bytes_each = (double)dtype_bytes(r->settings.wire);
    q->step = (struct law_step){
        .micro = r->accum,
        .shards = true,
        .kind = (enum shard_level)r->settings.shard,
        .cut = q->blocks,
        .count = shape_blocks(c, q->blocks, MOST_BLOCKS),
        .grain = RULE_BLOCK,
        .sum_bytes = dtype_bytes(r->settings.wire),
        .param_bytes = r->precision == PRECISION_FP32 ? 4 : 2,
    };
    return 0;
}

// The keys of backends that a forecast needs.
static const struct backend asker = {
    .name = "predict",
    .keys = (const char *const[]){"wire", "update", "servers", "bucket_mb",
                                  "first_bucket_mb", "algorithm", "shard",
                                  "staging", "slice_kb", "every", "outer_rule",
                                  "outer_momentum", "squeeze", "density",
                                  "scope", "levels", "feedback", NULL},
};

// Sets the parts of the forecast's job that depend on the backend.
static void read_settings(struct question *q, const struct backend *b,
                          int workers)
{
    struct forecast_job *j = &q->job;
    struct sync_settings set = q->run.settings;
    bool squeezes = set.squeeze != SQUEEZE_NONE;
    if (squeezes)
        q->squeezed = squeeze_law(&set, workers, j->params);
    sync_derive(&set, b, workers, (size_t)j->params);
    j->exchange = (struct law_case){.workers = workers,
                                    .servers = q->run.settings.servers.count,
                                    .held = sync_holds(&set, b),
                                    .algorithm = set.algorithm,
                                    .every = set.every,
                                    .squeezed = squeezes ? &q->squeezed : NULL};
    q->step.world = workers;
    j->step = &q->step;
    j->bucket = set.bucket_mb * 1048576 / sizeof(float);
    j->first_bucket = set.first_bucket_mb * 1048576 / sizeof(float);
}

// With squeeze=, takes only the backends that compress gradients. If the user
// named others, returns -1 after fail().
static int only_squeezed(struct question *q, bool named)
{
    int n = 0;
    for (int i = 0; i < q->sync.n; i++) {
        const struct backend *b = backend_at(q->sync.at[i]);
        if (backend_reads(b, "squeeze"))
            q->sync.at[n++] = q->sync.at[i];
        else if (named)
            return fail("predict: sync=%s cannot compress gradients; try: "
                        "sync=ring, or no squeeze=",
                        b->name);
    }
    q->sync.n = n;
    return 0;
}

// Reads workers= and sync= of the words, which may be lists. Without them, it
// takes the values of an INI file or the defaults.
static int read_lists(struct question *q)
{
    char number[16], all[LIST_TEXT];
    const char *workers = q->workers_asked, *sync = q->sync_asked;
    const struct run *r = &q->run;
    bool one = !strcmp(r->sync, backend_at(0)->name);
    snprintf(number, sizeof number, "%d", r->workers);
    if (!*sync)
        sync = one ? list_all_backends(all) : r->sync;
    bool squeezed = r->settings.squeeze != SQUEEZE_NONE;
    return list_workers(&q->workers, *workers ? workers : number) ||
                   list_backends(&q->sync, sync) ||
                   (squeezed && only_squeezed(q, *q->sync_asked || !one))
               ? -1
               : 0;
}

static int ask(struct question *q, int nwords, char **words)
{
    if (own_words(&keys, q, &q->run, nwords, words))
        return -1;
    if (!config_asked(&q->run, "workers"))
        q->run.workers = 4;
    if (q->run.global_batch)
        return fail("predict: global_batch= needs a single number of workers; "
                    "try: batch= and accum= instead");
    if (q->run.attention == ATTENTION_CUDNN)
        return fail("predict: attention=cudnn: nothing of cuDNN's kernels was "
                    "counted or measured; try: attention=ours");
    if (on_gpu(q) && q->compute_ms > 0)
        return fail("predict: device=%s estimates compute_ms=; try: without "
                    "one of them",
                    q->device);
    if (budget_check(&q->budget, on_gpu(q), q->compute_ms))
        return -1;
    if (on_gpu(q) &&
        (gpu_step_precision(q->device, &q->run) || read_model(q) ||
         gpu_step(q->device, &q->model, q->run.batch, &q->compute_ms)))
        return -1;
    if (on_gpu(q) && !*q->link)
        return 0;
    if (!*q->link)
        return fail("predict: link= is missing; try: link=25gbit");
    return config_check_squeeze(&q->run) || read_lists(q) ||
                   links_read(&q->links, q->link, q->alpha_us * 1e-6) ||
                   read_model(q) || config_check_backend(&q->run, &asker)
               ? -1
               : 0;
}

// ---- the answer

// Writes a time with four digits, in us, ms or s.
static const char *time_text(char buf[32], double s)
{
    double us = s * 1e6;
    snprintf(buf, 32, "%.4g %s",
             us < 1e3   ? us
             : us < 1e6 ? us * 1e-3
                        : s,
             us < 1e3   ? "us"
             : us < 1e6 ? "ms"
                        : "s");
    return buf;
}

static const char *bytes_text(char buf[32], double bytes)
{
    bool many = bytes >= 1e9;
    snprintf(buf, 32, "%.4g %s", bytes * (many ? 1e-9 : 1e-6),
             many ? "GB" : "MB");
    return buf;
}

static void print_question(const struct question *q)
{
    const struct forecast_job *j = &q->job;
    const struct link_fit *tcp = &q->links.fits[0];
    const struct run *r = &q->run;
    char squeeze[CONFIG_PATH];
    char size[32], step[32], backward[32], model[SIZES_TEXT], wire[CONFIG_PATH];
    printf("model:     %s\n", sizes_say(&q->run, &q->model, model));
    printf("gradients: wire=%s, %g bytes each: %s\n",
           key_show(key_find(&run_keys, "wire"), &q->run.settings, wire),
           j->bytes_each, bytes_text(size, j->params * j->bytes_each));
    if (r->settings.squeeze)
        printf("           compressed by squeeze=%s; the time to compress is "
               "not known, and not counted\n",
               key_show(key_find(&run_keys, "squeeze"), &r->settings, squeeze));
    if (tcp->n)
        printf("network:   as measured by %d workers, %s\n", q->links.workers,
               q->link);
    else
        printf("network:   %s, not measured; assumed: %.4g Gbit/s of payload, "
               "%g us a message\n",
               q->link, tcp->link.bytes_per_s * 8e-9, tcp->link.alpha_s * 1e6);
    printf("computing: one worker takes %s for a step of %g tokens, %s of it "
           "for backward (%s)\n",
           time_text(step, j->compute_s), j->tokens,
           time_text(backward, j->backward_s),
           on_gpu(q)             ? "as estimated above"
           : q->budget.flops > 0 ? "flops= and mfu=, backward assumed to be "
                                   "two thirds"
           : q->compute_ms > 0   ? "compute_ms=, backward assumed to be two "
                                   "thirds"
                                 : "measured here");
}

static void print_head(int workers, const struct budget *b)
{
    char head[32];
    snprintf(head, sizeof head, "%d workers", workers);
    printf("\n%-12s %10s %10s %11s %10s %7s %10s %10s", head, "traffic",
           "exchange", "no overlap", "overlap", "error", "tokens/s",
           "efficiency");
    budget_head(b);
    printf("\n");
}

static void print_row(const struct question *q, int workers, const char *name,
                      const struct forecast *f)
{
    char traffic[32], exchange[32], apart[32], overlapped[32];
    printf("%-12s %10s %10s %11s %10s %6.1f%% %10.0f %9.1f%%", name,
           bytes_text(traffic, f->link_bytes),
           time_text(exchange, f->exchange_s), time_text(apart, f->apart_s),
           time_text(overlapped, f->overlapped_s),
           50 * (f->most_s - f->least_s) / f->overlapped_s, f->tokens_per_s,
           f->efficiency * 100);
    budget_row(&q->budget, f->tokens_per_s, workers);
    printf("\n");
}

static void print_legend(void)
{
    printf("\ntraffic     bytes a step on the busiest link, in one "
           "direction\n"
           "exchange    time of the exchange of all gradients alone\n"
           "no overlap  time of a step that computes first, then "
           "exchanges\n"
           "overlap     time of a step that exchanges while backward runs; "
           "shards are\n"
           "            gathered while forward runs\n"
           "error       of the time with overlap, in both directions, "
           "because the\n            network's figures are uncertain\n"
           "tokens/s    of all workers, with overlap\n"
           "efficiency  share of a step with overlap that computes\n");
}

// Selects the backends that train the same thing, into rows[] and of[]. Returns
// how many they are.
static int take_comparable(const struct question *q, const struct forecast *f,
                           int *rows, struct forecast *of)
{
    int n = 0;
    for (int i = 0; i < q->sync.n; i++)
        if (!backend_at(q->sync.at[i])->apart) {
            rows[n] = q->sync.at[i];
            of[n++] = f[i];
        }
    return n;
}

// Names the fastest backend with those that are equal within the error, and
// how much longer each other backend takes.
static void print_winner(const struct question *q, int workers,
                         const struct forecast *all)
{
    struct forecast f[LIST_MOST];
    int rows[LIST_MOST];
    int best = 0, n = take_comparable(q, all, rows, f), equal = 0, named = 0;
    if (n < 2)
        return;
    for (int i = 1; i < n; i++)
        if (f[i].overlapped_s < f[best].overlapped_s)
            best = i;
    for (int i = 0; i < n; i++)
        equal += f[i].least_s <= f[best].most_s;
    printf("%d workers: ", workers);
    for (int i = 0; i < n; i++)
        if (f[i].least_s <= f[best].most_s)
            printf("%s%s",
                   !named++         ? ""
                   : named == equal ? " and "
                                    : ", ",
                   backend_at(rows[i])->name);
    printf(equal > 1 ? " are fastest, too close to tell apart" : " is fastest");
    for (int i = 0; i < n; i++)
        if (f[i].least_s > f[best].most_s)
            printf("; %s takes %.3g times as long", backend_at(rows[i])->name,
                   f[i].overlapped_s / f[best].overlapped_s);
    printf("\n");
}

// Names the backends that are left out of the comparison, and why.
static void print_apart(const struct question *q)
{
    for (int i = 0; i < q->sync.n; i++) {
        const struct backend *b = backend_at(q->sync.at[i]);
        if (b->apart)
            printf("%s exchanges every %d steps; its row is the mean of all "
                   "steps. It is left out of the\ncomparison: its workers "
                   "train apart in between, so they may learn less in as "
                   "many steps.\n",
                   b->name, q->run.settings.every);
    }
}

// Prints the memory of a worker, and of a server, for each backend.
static int print_memory(const struct question *q, int workers)
{
    struct memory worker, server;
    char head[32];
    snprintf(head, sizeof head, "%d workers", workers);
    printf("\n");
    sizes_print_head(head);
    printf("\n");
    for (int i = 0; i < q->sync.n; i++) {
        const struct backend *b = backend_at(q->sync.at[i]);
        if (sizes_memory(&q->run, b, workers, &worker, &server))
            return -1;
        sizes_print_row(b->name, &worker);
        printf("\n");
        if (memory_sum(&server) == 0)
            continue;
        sizes_print_row("  its server", &server);
        printf("\n");
    }
    return 0;
}

static int answer(struct question *q)
{
    struct forecast f[LIST_MOST][LIST_MOST];
    print_question(q);
    for (int w = 0; w < q->workers.n; w++) {
        print_head(q->workers.at[w], &q->budget);
        for (int i = 0; i < q->sync.n; i++) {
            const struct backend *b = backend_at(q->sync.at[i]);
            read_settings(q, b, q->workers.at[w]);
            if (forecast(&q->job, b, &q->links, &f[w][i]))
                return -1;
            print_row(q, q->workers.at[w], b->name, &f[w][i]);
        }
    }
    print_legend();
    for (int w = 0; w < q->workers.n; w++)
        if (print_memory(q, q->workers.at[w]))
            return -1;
    printf("\nThe memory of a worker by part is in MB, with batch=%d%s.\n",
           q->run.batch, q->run.recompute ? " and recompute=1" : "");
    if (on_gpu(q))
        printf(SIZES_GPU);
    printf("\n");
    for (int w = 0; q->sync.n > 1 && w < q->workers.n; w++)
        print_winner(q, q->workers.at[w], f[w]);
    print_apart(q);
    return 0;
}

static int predict(int nwords, char **words)
{
    if (predict_mesh_is_asked(nwords, words))
        return predict_mesh(nwords, words);
    struct question *q = mem_alloc(1, sizeof *q);
    int rc = q ? ask(q, nwords, words) : -1;
    if (!rc) {
        const struct run *r = &q->run;
        struct forecast_job *j = &q->job;
        j->tokens = (double)r->batch * r->accum * q->model.context;
        q->compute_ms *= on_gpu(q) ? r->accum : 1;
        budget_compute(&q->budget, model_flop(&q->model, q->model.context),
                       j->tokens, &q->compute_ms);
        j->compute_s = q->compute_ms * 1e-3;
        j->backward_s = j->compute_s * 2 / 3 / r->accum;
        if (*q->link)
            rc = (q->compute_ms == 0 && measure(q)) || answer(q) ? -1 : 0;
    }
    mem_free(q);
    return rc;
}

const struct command command_predict = {
    .name = "predict",
    .words = "workers=N,.. link=25gbit",
    .help = "predict which backend is fastest on a cluster, by how much",
    .explain = explain,
    .least = 1,
    .run = predict,
};
