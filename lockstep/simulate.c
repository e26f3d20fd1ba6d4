// simulate.c - `lockstep simulate` runs an exchange on many simulated workers.
//
// For each number of workers it writes a platform (one switch, and a link for
// each host) and lets SimGrid's smpirun run simulate_job on it. It prints the
// simulated time and the law's. docs/scale.md has results.

#include "lockstep/commands.h"
#include "lockstep/simulate_kinds.h"
#include "lockstep/simulation_table.h"

#include "base/base.h"
#include "config/backends.h"
#include "model/model.h"

#include <string.h>

enum { MAX_MB = 8000, KINDS = 3 };

// The first one that is asked for counts: mesh= has a key pipeline=, too.
static const struct simulate_kind *const kinds[KINDS] = {&simulate_op,
                                                         &simulate_mesh,
                                                         &simulate_pipeline};

struct question {
    struct simulation_words words;
    // The values of the command line.
    int update, algorithm;
    double mb, bucket_mb;
    int slice_kb;
    char model[CONFIG_WORD], sync_text[CONFIG_PATH];
    // Derived from them.
    struct list workers, sync;
    struct simulation sim; // row() sets the workers and the backend
};

static const char *const updates[] = {"server", "worker", NULL};
static const char *const algorithms[] = {ALGORITHM_WORDS, NULL};

#define AT(member) offsetof(struct question, member), false

static const struct key rows[] = {
    SIMULATION_KEYS("simulate"),
    {"simulate", "model", "gpt2", KEY_WORD, AT(model), .unit = "PRESET",
     .help = "the model whose fp32 gradients are exchanged"},
    {"simulate", "mb", "0", KEY_NUMBER, AT(mb), .min = 1e-5, .max = MAX_MB,
     .zero = "the model's", .unit = "MB", .help = "size of the gradients"},
    {"simulate", "sync", "all", KEY_TEXT, AT(sync_text), .unit = "NAME,..",
     .help = "the backends to simulate"},
    {"simulate", "update", "server", KEY_CHOICE, AT(update), .words = updates,
     .help = "with servers: who updates the parameters"},
    {"simulate", "algorithm", NULL, KEY_CHOICE, AT(algorithm),
     .words = algorithms,
     .help = "of sync=allreduce: ring, or halving; auto is ring"},
    {"simulate", "bucket_mb", "0", KEY_NUMBER, AT(bucket_mb), .min = 0.001,
     .max = 1e6, .zero = "whole", .unit = "MiB",
     .help = "without servers: size of a bucket, or all gradients"},
    {"simulate", "slice_kb", "0", KEY_INT, AT(slice_kb), .min = 1, .max = 65536,
     .zero = "auto", .unit = "KiB",
     .help = "size of a message; auto: a chunk in a ring, 256 with servers"},
};

static const struct key_table keys = {rows, sizeof rows / sizeof *rows,
                                      "lockstep simulate --help"};

static void explain(FILE *f)
{
    char all[LIST_TEXT];
    fprintf(f, "lockstep simulate [key=value] ...\n\n"
               "Simulates one exchange of all gradients on a cluster of any "
               "size, and prints its\nseconds beside the law's. Every host has "
               "a link of its own to one switch. It needs\nSimGrid.\n");
    key_help(f, &keys);
    fprintf(f,
            "\nsync=%s\n\n"
            "The law is the textbooks' time of the exchange, without "
            "contention. ratio is\nsimulated / law. took and memory are the "
            "time and the memory of the simulation itself.\n"
            "  lockstep simulate workers=2,16,128 model=gpt2 link=10gbit\n",
            list_simulated_backends(all));
    for (int k = 0; k < KINDS; k++)
        kinds[k]->explain(f);
}

// ---- the question

static int read_size(const struct question *q, size_t *n)
{
    struct model_config c;
    *n = (size_t)(q->mb * 1e6 / sizeof(float));
    if (q->mb > 0)
        return 0;
    if (model_preset(q->model, &c))
        return -1;
    if (c.vocab == 0)
        c.vocab = 256; // symbols=bytes
    *n = model_nparams(&c);
    return 0;
}

static int ask(struct question *q, int nwords, char **words)
{
    struct simulation *s = &q->sim;
    char all[LIST_TEXT];
    key_defaults(&keys, q);
    if (key_words(&keys, q, nwords, words) || read_size(q, &s->n) ||
        simulation_read(&q->words, s, &q->workers))
        return -1;
    s->slice_kb = q->slice_kb;
    s->bucket_mb = q->bucket_mb;
    s->worker_updates = q->update;
    s->halving = q->algorithm == ALGORITHM_HALVING;
    if (q->algorithm > ALGORITHM_HALVING)
        return fail("simulate: algorithm=%s: must be auto, ring or halving",
                    algorithms[q->algorithm]);
    if (list_backends(&q->sync, strcmp(q->sync_text, "all")
                                    ? q->sync_text
                                    : list_simulated_backends(all)))
        return -1;
    for (int i = 0; i < q->sync.n; i++)
        if (!backend_is_simulated(backend_at(q->sync.at[i])))
            return fail("simulate: sync=%s has a law but no simulation; try: "
                        "lockstep predict",
                        backend_at(q->sync.at[i])->name);
    return 0;
}

// ---- the answer

static int row(const struct simulation_table *t, const struct question *q,
               int workers, const struct backend *b)
{
    struct simulation s = q->sim;
    struct law_case is = {.workers = workers,
                          .held =
                              !s.worker_updates || b->traffic == TRAFFIC_OWNER,
                          .algorithm =
                              s.halving ? ALGORITHM_HALVING : ALGORITHM_RING};
    struct law law = law_of(b, &is);
    s.workers = workers;
    s.backend = b;
    s.name = b->name;
    return simulation_table_row(t, &s, b->name, simulation_law(&s, &law));
}

// Logs which simulation begins: some take minutes.
static void say_begin(const struct question *q, int number, int workers,
                      const char *sync)
{
    log_line("simulation %d of %d: %s, %d workers", number,
             q->workers.n * q->sync.n, sync, workers);
}

static int answer(const struct question *q)
{
    struct simulation_table t;
    if (simulation_table_open(&t, &q->sim, "simulate.csv", "backend"))
        return -1;
    int rc = 0;
    for (int i = 0; !rc && i < q->workers.n; i++)
        for (int k = 0; !rc && k < q->sync.n; k++) {
            const struct backend *b = backend_at(q->sync.at[k]);
            say_begin(q, i * q->sync.n + k + 1, q->workers.at[i], b->name);
            rc = row(&t, q, q->workers.at[i], b);
        }
    return simulation_table_close(&t, rc);
}

static int simulate(int nwords, char **words)
{
    for (int k = 0; k < KINDS; k++)
        for (int i = 0; i < nwords; i++)
            if (!strncmp(words[i], kinds[k]->key, strlen(kinds[k]->key)))
                return kinds[k]->run(nwords, words);
    struct question *q = mem_alloc(1, sizeof *q);
    int rc =
        !q || ask(q, nwords, words) || simulation_check() || answer(q) ? -1 : 0;
    mem_free(q);
    return rc;
}

const struct command command_simulate = {
    .name = "simulate",
    .words = "workers=2,64,1024",
    .help = "simulate an exchange on up to thousands of workers",
    .explain = explain,
    .run = simulate,
};
