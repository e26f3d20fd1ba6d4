// predict_ways.c - compares backends: times of a step, memory, and which is
// fastest, by how much.

#include "lockstep/predict.h"

#include "base/base.h"
#include "config/backends.h"
#include "config/keys.h"
#include "lockstep/place.h"
#include "lockstep/sizes.h"

#include <string.h>

struct cell {
    struct forecast time;
    struct memory worker, server;
};

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

static void print_question(const struct question *q,
                           const struct mesh_step *step)
{
    const struct run *r = &q->run;
    const struct model_config *m = &q->search.job.model;
    const struct link_fit *tcp = &q->links.fits[0];
    double each = (double)dtype_bytes(r->settings.wire);
    char size[32], times[2][32], model[SIZES_TEXT], wire[CONFIG_PATH];
    printf("model:     %s\n", sizes_say(r, m, model));
    printf("gradients: wire=%s, %g bytes each: %s\n",
           key_show(key_find(&run_keys, "wire"), &r->settings, wire), each,
           bytes_text(size, (double)model_nparams(m) * each));
    if (tcp->n)
        printf("network:   as measured by %d workers, %s\n", q->links.workers,
               q->link);
    else
        printf("network:   %s, not measured; assumed: %.4g Gbit/s of payload, "
               "%g us a message\n",
               q->link, tcp->link.bytes_per_s * 8e-9, tcp->link.alpha_s * 1e6);
    printf("computing: one worker takes %s for a step of %g tokens, %s of it "
           "for backward (%s)\n",
           time_text(times[0], step->compute_s),
           (double)r->batch * r->accum * m->context,
           time_text(times[1], step->backward[0]), q->computing);
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
static int take_comparable(const struct question *q, const struct cell *cells,
                           int *rows, struct forecast *of)
{
    int n = 0;
    for (int i = 0; i < q->sync.n; i++)
        if (!backend_at(q->sync.at[i])->apart) {
            rows[n] = q->sync.at[i];
            of[n++] = cells[i].time;
        }
    return n;
}

// Names the fastest backend with those that are equal within the error, and
// how much longer each other backend takes.
static void print_winner(const struct question *q, int workers,
                         const struct cell *all)
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

// ---- all of it

// Each worker is on a host of its own. They share this machine's cores, which
// decide how much memory their threads take.
static int step_of(const struct question *q, int workers,
                   const struct backend *b, struct mesh_step *out)
{
    struct run r = q->run;
    struct mesh_job job = q->search.job;
    const struct mesh_case way = {
        .mesh = {1, {MESH_DP}, {workers}},
        .backend = b,
        .shard = r.settings.shard,
        .wire = r.settings.wire,
        .batch = r.batch,
        .plan = {PIPELINE_NAIVE, 1, r.accum, 1, 0},
    };
    r.threads = place_threads(&r, workers);
    job.run = &r;
    job.hosts = workers;
    job.slots = 1;
    job.links = &q->links;
    return mesh_step(&job, &way, out);
}

// Prints the times of all backends, into row[] as well.
static int print_times(const struct question *q, int workers, bool first,
                       struct cell *row)
{
    for (int i = 0; i < q->sync.n; i++) {
        const struct backend *b = backend_at(q->sync.at[i]);
        struct mesh_step step;
        if (step_of(q, workers, b, &step))
            return -1;
        row[i] = (struct cell){step.exchange, step.memory, step.server};
        if (first && i == 0)
            print_question(q, &step);
        if (i == 0)
            print_head(workers, &q->budget);
        print_row(q, workers, b->name, &row[i].time);
    }
    return 0;
}

// Prints the memory of a worker, and of a server, for each backend.
static void print_memory(const struct question *q, int workers,
                         const struct cell *row)
{
    char head[32];
    snprintf(head, sizeof head, "%d workers", workers);
    printf("\n");
    sizes_print_head(head);
    printf("\n");
    for (int i = 0; i < q->sync.n; i++)
        sizes_print_both(backend_at(q->sync.at[i])->name, &row[i].worker, "",
                         &row[i].server);
}

int predict_ways(const struct question *q)
{
    static struct cell cells[LIST_MOST][LIST_MOST];
    for (int w = 0; w < q->workers.n; w++)
        if (print_times(q, q->workers.at[w], w == 0, cells[w]))
            return -1;
    print_legend();
    for (int w = 0; w < q->workers.n; w++)
        print_memory(q, q->workers.at[w], cells[w]);
    printf("\nThe memory of a worker by part is in MB, with batch=%d%s.\n",
           q->run.batch, q->run.recompute ? " and recompute=1" : "");
    if (predict_on_gpu(q))
        printf(SIZES_GPU);
    printf("\n");
    for (int w = 0; q->sync.n > 1 && w < q->workers.n; w++)
        print_winner(q, q->workers.at[w], cells[w]);
    print_apart(q);
    return 0;
}
