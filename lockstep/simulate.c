// simulate.c - `lockstep simulate`: an exchange on more workers than there are.
//
// For each number of workers it writes the platform (one switch, every host on
// a link of its own), lets SimGrid's smpirun run simulate_job on it, and sets
// the simulated time beside the law. docs/scale.md has what came out.

#include "lockstep/commands.h"
#include "lockstep/list.h"
#include "lockstep/simulate_op.h"
#include "lockstep/simulate_pipeline.h"
#include "lockstep/simulation.h"

#include "base/base.h"
#include "base/file.h"
#include "config/backends.h"
#include "config/config.h"
#include "config/suggest.h"
#include "config/value.h"
#include "model/model.h"
#include "sync/link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_MB = 8000 };

struct question {
    struct list workers, sync;
    struct simulation sim; // all but workers and sync
    const char *out;
};

static void explain(FILE *f)
{
    char all[LIST_TEXT];
    fprintf(
        f,
        "lockstep simulate [key=value] ...\n\n"
        "Simulated seconds of one exchange of all gradients, beside the law, "
        "on clusters of\nany size: every host on a link of its own to one "
        "switch. Needs SimGrid.\n\n"
        "  workers    2,4,8,16    2 .. %d\n"
        "  model, mb  gpt2        whose fp32 gradients; or megabytes of "
        "them\n"
        "  link       25gbit      rate of every link, or as 3MB/s of payload; "
        "or a fitted link\n                         (lockstep bench link "
        "out=FILE)\n"
        "  alpha_us   25          latency of a message, with link=RATE\n"
        "  sync       %s\n"
        "  update     server      with servers: who updates, server or "
        "worker\n"
        "  algorithm  ring        of the library: ring or halving\n"
        "  bucket_mb  0           between workers: in pieces; 0: whole\n"
        "  slice_kb   0           0: around a ring: a message a chunk; with "
        "servers: 256\n"
        "  network    ideal       ideal: links as the law has them; smpi: "
        "SimGrid's default\n"
        "  payload    0           1: real sums, which are looked at\n"
        "  timeout    600 s       of each simulation\n"
        "  out        runs/simulate\n\n"
        "The law is the textbook's time of the exchange, without contention; "
        "ratio is\nsimulated / law. took and memory are those of the "
        "simulation itself.\n"
        "  lockstep simulate workers=2,16,128 model=gpt2 link=10gbit\n",
        LIST_WORKERS, list_all_backends(all));
    simulate_op_explain(f);
    simulate_pipeline_explain(f);
}

// ---- the question

static const char *const keys[] = {
    "workers",   "model",    "mb",      "link",    "alpha_us",
    "sync",      "update",   "network", "payload", "algorithm",
    "bucket_mb", "slice_kb", "timeout", "out",
};

enum { NKEYS = sizeof keys / sizeof *keys };

struct words {
    int n;
    char **at;
};

static int check_keys(const struct words *w)
{
    for (int i = 0; i < w->n; i++) {
        size_t len = strcspn(w->at[i], "=");
        char key[CONFIG_WORD];
        int k = 0;
        while (k < NKEYS &&
               (strlen(keys[k]) != len || strncmp(w->at[i], keys[k], len) != 0))
            k++;
        snprintf(key, sizeof key, "%.*s", (int)len, w->at[i]);
        if (k == NKEYS || w->at[i][len] != '=')
            return fail("simulate: %s: not a setting; nearest: %s=; all: "
                        "lockstep simulate --help",
                        w->at[i], suggest_nearest(key, keys, NKEYS));
    }
    return 0;
}

// The last one wins.
static const char *text(const struct words *w, const char *key,
                        const char *otherwise)
{
    size_t len = strlen(key);
    for (int i = w->n - 1; i >= 0; i--)
        if (!strncmp(w->at[i], key, len) && w->at[i][len] == '=')
            return w->at[i] + len + 1;
    return otherwise;
}

static int number(const struct words *w, const char *key, double otherwise,
                  double min, double max, double *out)
{
    const char *value = text(w, key, NULL);
    *out = otherwise;
    if (value && (value_real(value, out) || !(*out >= min && *out <= max)))
        return fail("simulate: %s=%s: want a number, %g .. %g", key, value, min,
                    max);
    return 0;
}

static int read_word(const struct words *w, const char *key,
                     const char *const *choices, int *out)
{
    *out = value_word(key, text(w, key, choices[0]), choices);
    return *out < 0 ? -1 : 0;
}

static int read_size(const struct words *w, struct simulation *s)
{
    struct model_config c;
    double mb;
    if (number(w, "mb", 0, 1e-5, MAX_MB, &mb))
        return -1;
    if (mb > 0) {
        s->n = (size_t)(mb * 1e6 / sizeof(float));
    } else {
        if (model_preset(text(w, "model", "gpt2"), &c))
            return -1;
        if (c.vocab == 0)
            c.vocab = 256; // bytes
        s->n = model_nparams(&c);
    }
    return 0;
}

static int read_link(const struct words *w, struct simulation *s)
{
    double alpha_us;
    struct links links;
    const struct link_fit *fit;
    if (number(w, "alpha_us", 25, 0, 1e6, &alpha_us) ||
        links_read(&links, text(w, "link", "25gbit"), alpha_us * 1e-6) ||
        !(fit = links_find(&links, "tcp")))
        return -1;
    s->link = fit->link;
    return 0;
}

static int ask(struct question *q, const struct words *w)
{
    static const char *const updates[] = {"server", "worker", NULL};
    static const char *const networks[] = {"ideal", "smpi", NULL};
    static const char *const library[] = {ALGORITHM_WORDS};
    const char *const algorithms[] = {library[ALGORITHM_RING],
                                      library[ALGORITHM_HALVING], NULL};
    static const char *const flags[] = {"0", "1", NULL};
    struct simulation *s = &q->sim;
    int update, network, algorithm, payload;
    double slice_kb;
    char all[LIST_TEXT];
    if (check_keys(w) ||
        list_workers(&q->workers, text(w, "workers", "2,4,8,16")) ||
        list_backends(&q->sync, text(w, "sync", list_all_backends(all))) ||
        read_size(w, s) || read_link(w, s) ||
        read_word(w, "update", updates, &update) ||
        read_word(w, "network", networks, &network) ||
        read_word(w, "algorithm", algorithms, &algorithm) ||
        read_word(w, "payload", flags, &payload) ||
        number(w, "bucket_mb", 0, 0.001, 1e6, &s->bucket_mb) ||
        number(w, "slice_kb", 0, 1, 65536, &slice_kb) ||
        number(w, "timeout", 600, 1, 1e6, &s->timeout_s))
        return -1;
    s->slice_kb = (long)slice_kb;
    s->worker_updates = update;
    s->default_network = network;
    s->halving = algorithm;
    s->payload = payload;
    q->out = s->folder = text(w, "out", "runs/simulate");
    for (int i = 0; i < q->workers.n; i++)
        if (s->n < (size_t)q->workers.at[i])
            return fail("simulate: %zu gradients for %d workers; try: mb=1",
                        s->n, q->workers.at[i]);
    return 0;
}

// ---- the answer

static double law_s(const struct question *q, const struct backend *b,
                    int workers)
{
    struct law_case is = {.workers = workers,
                          .held = !q->sim.worker_updates,
                          .algorithm = q->sim.halving ? ALGORITHM_HALVING
                                                      : ALGORITHM_RING};
    struct law law = law_of(b, &is);
    return law_seconds(&law, &q->sim.link, (double)q->sim.n * sizeof(float));
}

static int row(const struct question *q, int workers, const struct backend *b,
               FILE *f)
{
    struct simulation s = q->sim;
    struct simulated r;
    double law = law_s(q, b, workers);
    double mb = (double)s.n * sizeof(float) * 1e-6;
    s.workers = workers;
    s.backend = b;
    s.name = b->name;
    if (simulation_run(&s, &r))
        return -1;
    printf("%7d  %-10s %13.6g %12.6g %8.4f %9.1f %12.0f\n", workers, b->name,
           r.seconds, law, r.seconds / law, r.wall_s, r.memory_mb);
    fflush(stdout);
    fprintf(f, "%d,%s,%.9g,%.9g,%.9g,%.6f,%.2f,%.0f\n", workers, b->name, mb,
            r.seconds, law, r.seconds / law, r.wall_s, r.memory_mb);
    return fflush(f) ? fail("%s: %s", q->out, strerror(errno)) : 0;
}

// What is being simulated, on standard error: some take minutes.
static void say_turn(const struct question *q, int turn, int workers,
                     const char *sync)
{
    log_line("simulation %d of %d: %s, %d workers", turn,
             q->workers.n * q->sync.n, sync, workers);
}

static int answer(const struct question *q)
{
    char path[CONFIG_PATH];
    const struct simulation *s = &q->sim;
    if (file_make_folder(q->out) < 0 ||
        text_into(path, sizeof path, "%s/simulate.csv", q->out))
        return -1;
    FILE *f = fopen(path, "we");
    if (!f)
        return fail("%s: %s", path, strerror(errno));
    int rc = 0;
    fprintf(f, "workers,backend,mb,simulated_s,law_s,ratio,wall_s,memory_mb\n");
    printf("%.4g MB of gradients; links of %.4g Gbit/s of payload, %g us\n\n"
           "%7s  %-10s %13s %12s %8s %9s %12s\n",
           (double)s->n * sizeof(float) * 1e-6, s->link.bytes_per_s * 8e-9,
           s->link.alpha_s * 1e6, "workers", "sync", "simulated (s)", "law (s)",
           "ratio", "took (s)", "memory (MB)");
    for (int i = 0; !rc && i < q->workers.n; i++)
        for (int k = 0; !rc && k < q->sync.n; k++) {
            const struct backend *b = backend_at(q->sync.at[k]);
            say_turn(q, i * q->sync.n + k + 1, q->workers.at[i], b->name);
            rc = row(q, q->workers.at[i], b, f);
        }
    if (fclose(f) && !rc)
        rc = fail("%s: %s", path, strerror(errno));
    if (!rc)
        printf("\n%s; plots/scale.gp draws it\n", path);
    return rc;
}

static int simulate(int nwords, char **words)
{
    if (simulate_op_is_asked(nwords, words))
        return simulate_op(nwords, words);
    if (simulate_pipeline_is_asked(nwords, words))
        return simulate_pipeline(nwords, words);
    struct words w = {nwords, words};
    struct question *q = mem_alloc(1, sizeof *q);
    int rc = q ? 0 : -1;
    if (!rc)
        rc = ask(q, &w) || simulation_check() || answer(q) ? -1 : 0;
    mem_free(q);
    return rc;
}

const struct command command_simulate = {
    .name = "simulate",
    .words = "workers=2,64,1024",
    .help = "an exchange on a thousand workers, in simulated time",
    .explain = explain,
    .run = simulate,
};
