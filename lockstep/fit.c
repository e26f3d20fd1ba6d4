// fit.c - `lockstep fit memory=2gb model=gpt2 workers=4` prints which backends
// fit into a worker's memory, and with how large a batch.

#include "lockstep/commands.h"

#include "base/base.h"
#include "config/backends.h"
#include "config/keys.h"
#include "config/value.h"
#include "lockstep/gpu_step.h"
#include "lockstep/list.h"
#include "lockstep/place.h"
#include "lockstep/sizes.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BATCH = 65536, WORKERS = 4 };

struct question {
    struct run run;
    struct list workers, sync;
    double bytes; // the memory of a worker or of a server
    struct place place;
    const char *gpu; // NULL: the workers are no GPUs
};

// A row of the table: a backend with one value of shard=.
struct way {
    const struct backend *backend;
    int shard, workers;
    char name[32];
};

static void explain(FILE *f)
{
    char all[LIST_TEXT];
    fprintf(f,
            "lockstep fit memory=SIZE [key=value] ...\n\n"
            "Prints which backends fit into the memory of a worker, and the "
            "largest batch of each.\nIt uses the formulas of ARCHITECTURE.md, "
            "as train does before step 1.\n\n"
            "  memory      of each worker and server, as 2gb, 900mb or 1.5gib\n"
            "  workers     numbers of workers, as 4,16 (%d)\n"
            "  hosts       number of machines, instead of workers=\n"
            "  slots       workers on each host (%d)\n"
            "  sync        %s\n"
            "  device      h100: the workers are such GPUs, with "
            "precision=bf16\n\n"
            "These keys of train count as well: model and its sizes, "
            "precision, dropout, threads,\noptimizer, momentum, wire, staging, "
            "servers, update, slice_kb, bucket_mb,\nfirst_bucket_mb, "
            "outer_rule, outer_momentum, mesh, accum, pipeline, chunks, "
            "ahead,\nstages.\n"
            "  lockstep fit memory=2gb model=gpt2 workers=4\n",
            WORKERS, PLACE_SLOTS, list_all_backends(all));
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
    if (q->bytes == 0)
        return fail("fit: memory= is missing; try: memory=2gb");
    return config_check_backend(&q->run, &asker) || sizes_model(&q->run, &model)
               ? -1
               : 0;
}

// Checks the words for a mesh: workers= must be its number of ranks, and sync=
// must name a backend that can train parts of a model.
static int check_mesh(const struct question *q, const char *workers,
                      const char *sync)
{
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
                        sync, mesh);
}

// Reads the numbers of workers. With hosts= or slots= there is one number, and
// a worker has its share of a host's cores.
static int read_workers(struct question *q, const char *words)
{
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

static int read_count(const char *word, int *out)
{
    const char *value = strchr(word, '=') + 1;
    int64_t n;
    if (value_whole(value, &n) || n < 1 || n > LIST_WORKERS)
        return fail("%s: must be a whole number, 1 .. %d", word, LIST_WORKERS);
    *out = (int)n;
    return 0;
}

static int ask(struct question *q, int nwords, char **words)
{
    char all[LIST_TEXT];
    const char *workers = "", *sync = list_all_backends(all);
    char **rest = mem_alloc((size_t)nwords, sizeof *rest);
    int n = 0, rc = rest ? 0 : -1;
    config_defaults(&q->run);
    for (int i = 0; !rc && i < nwords; i++) {
        if (!strncmp(words[i], "memory=", 7))
            rc = sizes_bytes("memory", words[i] + 7, &q->bytes);
        else if (!strncmp(words[i], "workers=", 8))
            workers = words[i] + 8;
        else if (!strncmp(words[i], "hosts=", 6))
            rc = read_count(words[i], &q->place.hosts);
        else if (!strncmp(words[i], "slots=", 6))
            rc = read_count(words[i], &q->place.slots);
        else if (!strncmp(words[i], "device=", 7) &&
                 strcmp(words[i] + 7, "cpu"))
            q->gpu = words[i] + 7;
        else if (!strncmp(words[i], "sync=", 5))
            sync = words[i] + 5;
        else
            rest[n++] = words[i];
    }
    rc = rc || config_parse(&q->run, n, rest) ||
         (q->gpu && gpu_step_precision(q->gpu, &q->run)) || check(q);
    rc = rc || list_backends(&q->sync, sync) ||
         (q->run.mesh.n && check_mesh(q, workers, sync)) ||
         read_workers(q, workers);
    mem_free(rest);
    return rc ? -1 : 0;
}

// ---- the answer

static int measure(const struct question *q, const struct way *w, int batch,
                   int recompute, struct memory *worker, struct memory *server)
{
    struct run r = q->run;
    r.batch = batch;
    r.recompute = recompute;
    r.settings.shard = w->shard;
    if (r.mesh.n) {
        *server = (struct memory){.params = 0};
        return sizes_mesh(&r, w->backend, worker);
    }
    return sizes_memory(&r, w->backend, w->workers, worker, server);
}

// Finds the largest batch that fits; 0: none does.
static int largest(const struct question *q, const struct way *w, int recompute,
                   int *out)
{
    int fits = 0, over = MOST_BATCH + 1;
    while (over - fits > 1) {
        struct memory worker, server;
        int batch = fits + (over - fits) / 2;
        if (measure(q, w, batch, recompute, &worker, &server))
            return -1;
        bool enough = (double)memory_sum(&worker) <= q->bytes &&
                      (double)memory_sum(&server) <= q->bytes;
        *(enough ? &fits : &over) = batch;
    }
    *out = fits;
    return 0;
}

static void print_batch(int batch)
{
    char text[16];
    snprintf(text, sizeof text, batch ? "%d" : "-", batch);
    printf(" %9s", text);
}

static int print_way(const struct question *q, const struct way *w)
{
    struct memory worker, server;
    int batch[2];
    if (measure(q, w, 1, 0, &worker, &server) || largest(q, w, 0, &batch[0]) ||
        largest(q, w, 1, &batch[1]))
        return -1;
    sizes_print_row(w->name, &worker);
    print_batch(batch[0]);
    print_batch(batch[1]);
    printf("\n");
    if (memory_sum(&server) == 0)
        return 0;
    sizes_print_row("  its server", &server);
    printf("\n");
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
    if (q->gpu)
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
