// fit.c - `lockstep fit memory=2gb model=gpt2 workers=4` prints which backends
// fit into a worker's memory, and with how large a batch.

#include "lockstep/commands.h"

#include "base/base.h"
#include "config/backends.h"
#include "config/keys.h"
#include "lockstep/gpu_step.h"
#include "lockstep/list.h"
#include "lockstep/own_words.h"
#include "lockstep/place.h"
#include "lockstep/sizes.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BATCH = 65536, WORKERS = 4 };

struct question {
    // The values of the command line.
    char memory[CONFIG_PATH], workers_asked[CONFIG_PATH];
    char sync_asked[CONFIG_PATH], device[CONFIG_PATH];
    struct place place;
    // Derived from them.
    struct run run;
    struct list workers, sync;
    double bytes; // the memory of a worker or of a server
};

// A row of the table: a backend with one value of shard=.
struct way {
    const struct backend *backend;
    int shard, workers;
    char name[32];
};

#define AT(member) offsetof(struct question, member), false

static const struct key rows[] = {
    {"fit", "memory", "", KEY_TEXT, AT(memory), .unit = "SIZE",
     .help = "of each worker and server, as 2gb, 900mb or 1.5gib"},
    {"fit", "workers", "", KEY_TEXT, AT(workers_asked), .unit = "N,..",
     .help = "numbers of workers, as 4,16; empty: 4, or by mesh="},
    {"fit", "hosts", "0", KEY_INT, AT(place.hosts), .min = 1,
     .max = LIST_WORKERS, .zero = "not asked",
     .help = "number of machines, instead of workers="},
    {"fit", "slots", "0", KEY_INT, AT(place.slots), .min = 1,
     .max = LIST_WORKERS,
     .zero = "8 with hosts=", .help = "workers on each host"},
    {"fit", "sync", "", KEY_TEXT, AT(sync_asked), .unit = "WAY,..",
     .help = "some of the ways below; empty: all"},
    {"fit", "device", "cpu", KEY_TEXT, AT(device), .unit = "NAME",
     .help = "h100: the workers are such GPUs, with precision=bf16"},
};

static const struct key_table keys = {rows, sizeof rows / sizeof *rows,
                                      "lockstep fit --help"};

static void explain(FILE *f)
{
    char all[LIST_TEXT];
    fprintf(f, "lockstep fit memory=SIZE [key=value] ...\n\n"
               "Prints which backends fit into the memory of a worker, and the "
               "largest batch of each.\nIt uses the formulas of "
               "ARCHITECTURE.md, as train does before step 1.\n");
    key_help(f, &keys);
    fprintf(f,
            "\nsync=%s\n\n"
            "These keys of train count as well: model and its sizes, "
            "precision, dropout, threads,\noptimizer, momentum, wire, staging, "
            "servers, update, slice_kb, bucket_mb,\nfirst_bucket_mb, "
            "outer_rule, outer_momentum, mesh, accum, pipeline, chunks, "
            "ahead,\nstages.\n"
            "  lockstep fit memory=2gb model=gpt2 workers=4\n",
            list_all_backends(all));
}

static bool on_gpu(const struct question *q)
{
    return strcmp(q->device, "cpu") != 0;
}

// ---- the settings asked for

// The keys of backends that the answer depends on.
static const struct backend asker = {
    .name = "fit",
    .keys = (const char *const[]){"wire", "staging", "servers", "update",
                                  "slice_kb", "bucket_mb", "first_bucket_mb",
                                  "outer_rule", "outer_momentum", NULL},
};

static int check(const struct question *q)
{
    static const char *const found[] = {"batch", "recompute"};
    struct model_config model;
    for (size_t i = 0; i < sizeof found / sizeof *found; i++)
        if (config_asked(&q->run, found[i]))
            return fail("fit: %s= is what fit looks for; try: without %s=",
                        found[i], found[i]);
    if (!*q->memory)
        return fail("fit: memory= is missing; try: memory=2gb");
    return config_check_backend(&q->run, &asker) || sizes_model(&q->run, &model)
               ? -1
               : 0;
}

// Checks the words for a mesh: workers= must be its number of ranks, and sync=
// must name a backend that can train parts of a model.
static int check_mesh(const struct question *q)
{
    const char *workers = q->workers_asked;
    char mesh[CONFIG_PATH];
    int ranks = mesh_ranks(&q->run.mesh), parts = 0;
    mesh_show(&q->run.mesh, mesh);
    if (*workers && atoi(workers) != ranks)
        return fail("fit: mesh=%s has %d ranks, not workers=%s; try: without "
                    "workers=",
                    mesh, ranks, workers);
    for (int i = 0; i < q->sync.n; i++)
        parts += backend_at(q->sync.at[i])->parts;
    return parts ? 0
                 : fail("fit: sync=%s cannot train parts of a model (mesh=%s); "
                        "try: sync=ring",
                        q->sync_asked, mesh);
}

// Reads the numbers of workers. With hosts= or slots= there is one number, and
// a worker has its share of a host's cores.
static int read_workers(struct question *q)
{
    const char *words = q->workers_asked;
    struct place *p = &q->place;
    int given = q->run.mesh.n ? mesh_ranks(&q->run.mesh) : 0;
    if (*words && list_workers(&q->workers, words))
        return -1;
    if (!given && q->workers.n == 1)
        given = q->workers.at[0];
    if (!p->hosts && !p->slots) {
        if (!*words)
            q->workers = (struct list){1, {given ? given : WORKERS}};
        return 0;
    }
    if (q->workers.n > 1)
        return fail("fit: workers=%s are several numbers, but hosts= and "
                    "slots= make one; try: without workers=",
                    words);
    if (place_workers(p, given, "fit"))
        return -1;
    q->workers = (struct list){1, {p->hosts * p->slots}};
    q->run.threads = place_threads(&q->run, p->slots);
    return 0;
}

static int ask(struct question *q, int nwords, char **words)
{
    char all[LIST_TEXT];
    if (own_words(&keys, q, &q->run, nwords, words) ||
        (*q->memory && sizes_bytes("memory", q->memory, &q->bytes)) ||
        (on_gpu(q) && gpu_step_precision(q->device, &q->run)) || check(q) ||
        list_backends(&q->sync,
                      *q->sync_asked ? q->sync_asked : list_all_backends(all)))
        return -1;
    if (q->run.mesh.n && check_mesh(q))
        return -1;
    return read_workers(q);
}

// ---- the answer

// The memory of a worker, and of its server if it has one.
static int measure(const struct question *q, const struct way *w, int batch,
                   int recompute, struct sizes *out)
{
    const struct mesh replicas = {1, {MESH_DP}, {w->workers}};
    struct run r = q->run;
    r.batch = batch;
    r.recompute = recompute;
    r.settings.shard = w->shard;
    return sizes_mesh(&r, w->backend, r.mesh.n ? &r.mesh : &replicas, out);
}

// Finds the largest batch that fits; 0: none does.
static int largest(const struct question *q, const struct way *w, int recompute,
                   int *out)
{
    int fits = 0, over = MOST_BATCH + 1;
    while (over - fits > 1) {
        struct sizes is;
        int batch = fits + (over - fits) / 2;
        if (measure(q, w, batch, recompute, &is))
            return -1;
        bool enough = (double)memory_sum(&is.worker) <= q->bytes &&
                      (double)memory_sum(&is.server) <= q->bytes;
        *(enough ? &fits : &over) = batch;
    }
    *out = fits;
    return 0;
}

static int print_way(const struct question *q, const struct way *w)
{
    struct sizes is;
    char text[2][16], more[40];
    if (measure(q, w, 1, 0, &is))
        return -1;
    for (int k = 0; k < 2; k++) {
        int batch;
        if (largest(q, w, k, &batch))
            return -1;
        snprintf(text[k], sizeof text[k], batch ? "%d" : "-", batch);
    }
    snprintf(more, sizeof more, " %9s %9s", text[0], text[1]);
    sizes_print_both(w->name, &is.worker, more, &is.server);
    return 0;
}

// Prints the rows of a backend: one, or one for each value of shard=.
static int print_backend(const struct question *q, const struct backend *b,
                         int workers)
{
    const struct key *k = key_find(&run_keys, "shard");
    int last = b->shards ? (int)k->max : (int)k->min;
    if (q->run.mesh.n && !b->parts)
        return 0;
    if (mesh_size(&q->run.mesh, MESH_PP) * mesh_size(&q->run.mesh, MESH_TP) > 1)
        last = SHARD_STATE; // a part of a model supports no other value
    for (int shard = (int)k->min; shard <= last; shard++) {
        struct way w = {.backend = b, .shard = shard, .workers = workers};
        int rc = b->shards ? text_into(w.name, sizeof w.name, "%s shard=%d",
                                       b->name, shard)
                           : text_into(w.name, sizeof w.name, "%s", b->name);
        if (rc || print_way(q, &w))
            return -1;
    }
    return 0;
}

static int answer(const struct question *q)
{
    struct model_config model;
    char text[SIZES_TEXT], wire[CONFIG_PATH];
    if (sizes_model(&q->run, &model))
        return -1;
    printf("%s, wire=%s\n\n", sizes_say(&q->run, &model, text),
           key_show(key_find(&run_keys, "wire"), &q->run.settings, wire));
    for (int i = 0; i < q->workers.n; i++) {
        char head[32], mesh[CONFIG_PATH];
        snprintf(head, sizeof head, "%d workers", q->workers.at[i]);
        if (q->run.mesh.n)
            mesh_show(&q->run.mesh, mesh);
        printf("%s", i ? "\n" : "");
        sizes_print_head(q->run.mesh.n ? mesh : head);
        printf(" %9s %9s\n", "batch", "recompute");
        for (int k = 0; k < q->sync.n; k++)
            if (print_backend(q, backend_at(q->sync.at[k]), q->workers.at[i]))
                return -1;
    }
    printf("\nThe memory of a worker is in MB, with batch=1%s.\nbatch: the "
           "largest batch within memory=; recompute: the same with "
           "recompute=1.\n-: batch=1 does not fit into a worker or into its "
           "server.\n",
           q->run.mesh.n ? ", for the rank that needs most" : "");
    if (on_gpu(q))
        printf(SIZES_GPU);
    return 0;
}

static int fit(int nwords, char **words)
{
    struct question *q = mem_alloc(1, sizeof *q);
    int rc = q && !ask(q, nwords, words) ? answer(q) : -1;
    mem_free(q);
    return rc;
}

const struct command command_fit = {
    .name = "fit",
    .words = "memory=2gb model=gpt2 ..",
    .help = "which backends fit into a worker's memory, with which batch",
    .explain = explain,
    .least = 1,
    .run = fit,
};
