// predict.c - `lockstep predict model=gpt2 workers=64 link=25gbit` predicts
// which backend, or which mesh of workers, is fastest, and by how much.

#include "lockstep/predict.h"

#include "base/base.h"
#include "config/backends.h"
#include "config/keys.h"
#include "lockstep/commands.h"
#include "lockstep/gpu_step.h"
#include "lockstep/mesh_table.h"
#include "lockstep/own_words.h"
#include "lockstep/place.h"
#include "lockstep/sizes.h"
#include "lockstep/step_time.h"

#include <stddef.h>
#include <string.h>

#define AT(member) offsetof(struct question, member), false

// The first WAYS_ONLY keys are lists, of the form that compares backends. With
// a mesh they are keys of train.
enum { WAYS_ONLY = 2 };

static const struct key rows[] = {
    {"predict", "workers", "", KEY_TEXT, AT(workers_asked), .unit = "N,..",
     .help = "numbers of workers, as 4,16,64"},
    {"predict", "sync", "", KEY_TEXT, AT(sync_asked), .unit = "WAY,..",
     .help = "some of the ways below; empty: all"},
    {"predict", "link", "", KEY_TEXT, AT(link), .unit = "RATE|FILE",
     .help =
         "rate of a network that was not measured, as 25gbit, or as 3MB/s "
         "of payload; or a file with measurements: of the network by "
         "lockstep bench link out=FILE, or of each way on it by lockstep "
         "bench sync workers=2 out=FILE. With a mesh: between hosts, shared "
         "by all workers of a host; empty: 25gbit"},
    {"predict", "alpha_us", "25", KEY_NUMBER, AT(alpha_us), .min = 0,
     .max = 1e9, .unit = "us", .help = "latency of a message, with a RATE"},
    {"predict", "compute_ms", "0", KEY_NUMBER, AT(compute_ms), .min = 1e-6,
     .max = 1e9, .zero = "measured here", .unit = "ms",
     .help = "forward, backward and update of one worker's step; with a mesh: "
             "forward and backward of the model with batch= sequences; "
             "measuring takes minutes for a large model"},
    {"predict", "device", "cpu", KEY_TEXT, AT(device), .unit = "NAME",
     .help = "h100: estimate compute_ms for such a GPU, part by part, with "
             "precision=bf16"},
    BUDGET_KEYS("predict", struct question),
    {"mesh", "hosts", "1", KEY_INT, AT(hosts), .min = 1, .max = 4096,
     .help =
         "number of machines (for train hosts= is a file with their names)"},
    {"mesh", "slots", "0", KEY_INT, AT(slots), .min = 1, .max = 4096,
     .zero = "8, or by workers= or mesh=", .unit = "workers",
     .help = "on each host"},
    {"mesh", "memory", "", KEY_TEXT, AT(memory), .unit = "SIZE",
     .help = "of each worker, as 16gb; empty: no limit"},
    {"mesh", "inner", "", KEY_TEXT, AT(inner), .unit = "RATE|FILE",
     .help = "of each worker within a host; empty: what is assumed for device=,"
             " or link= with one host"},
};

enum { ROWS = sizeof rows / sizeof *rows };

static const char help[] = "lockstep predict --help";
static const struct key_table ways_keys = {rows, ROWS, help};
static const struct key_table mesh_keys = {rows + WAYS_ONLY, ROWS - WAYS_ONLY,
                                           help};

static void explain(FILE *f)
{
    char all[LIST_TEXT];
    fprintf(f, "lockstep predict workers=N,.. link=LINK [key=value] ...\n\n"
               "Predicts the time of an exchange and of a step for each "
               "backend, from its law and\nthe network's latency and rate, "
               "and says how uncertain the prediction is.\n\n"
               "With hosts=, slots=, memory=, inner= or mesh=, it tries all "
               "ways to divide the\nworkers into replicas, stages and slices "
               "(mesh=dpD,ppP,tpT), or only the mesh= that\nyou give. It "
               "prints the fastest ones that fit into memory=.\n");
    key_help(f, &ways_keys);
    fprintf(
        f,
        "\nsync=%s\n\n"
        "These keys of train count as well: model and its sizes, batch, "
        "accum, precision, wire,\nservers (on hosts of their own), update, "
        "algorithm, every, shard, bucket_mb,\nfirst_bucket_mb; and for "
        "memory only: optimizer, recompute, threads, outer_rule,\n"
        "outer_momentum, staging, slice_kb. With a mesh: model and its "
        "sizes, precision,\nrecompute, optimizer, wire (without it fp32 and "
        "16 bits), global_batch (8 for each\nworker), batch (of a "
        "micro-batch; without it the best one), sync, shard, mesh,\n"
        "pipeline, chunks, ahead, stages, workers.\n"
        "  lockstep predict model=gpt2 workers=16,64 link=25gbit "
        "compute_ms=900\n"
        "  lockstep predict model=gpt2 workers=64 link=25gbit flops=312e12 "
        "mfu=0.4 tokens=1e10\n"
        "  lockstep predict model=gpt2-xl hosts=8 memory=16gb link=25gbit "
        "inner=200gbit \\\n      tokens=1e9 price=2.5\n",
        list_all_backends(all));
}

static bool asks_for_mesh(int nwords, char **words)
{
    static const char *const keys[] = {"hosts=", "slots=", "memory=", "inner=",
                                       "mesh="};
    for (int i = 0; i < nwords; i++)
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
            if (!strncmp(words[i], keys[k], strlen(keys[k])))
                return true;
    return false;
}

// ---- the form that compares backends

// The keys of backends that a forecast needs.
static const struct backend asker = {
    .name = "predict",
    .keys = (const char *const[]){"wire", "update", "servers", "bucket_mb",
                                  "first_bucket_mb", "algorithm", "shard",
                                  "staging", "slice_kb", "every", "outer_rule",
                                  "outer_momentum", NULL},
};

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
    return list_workers(&q->workers, *workers ? workers : number) ||
                   list_backends(&q->sync, sync)
               ? -1
               : 0;
}

static int check_ways(struct question *q)
{
    if (!config_asked(&q->run, "workers"))
        q->run.workers = 4;
    if (q->run.global_batch)
        return fail("predict: global_batch= needs a single number of workers; "
                    "try: batch= and accum= instead");
    if (q->run.attention == ATTENTION_CUDNN)
        return fail("predict: attention=cudnn: nothing of cuDNN's kernels was "
                    "counted or measured; try: attention=ours");
    if (!*q->link)
        return predict_on_gpu(q)
                   ? 0
                   : fail("predict: link= is missing; try: link=25gbit");
    return read_lists(q) ||
                   links_read(&q->links, q->link, q->alpha_us * 1e-6) ||
                   config_check_backend(&q->run, &asker)
               ? -1
               : 0;
}

// ---- the form with a mesh

// Sets the number of hosts, and of workers on each.
static int place(struct question *q)
{
    struct place p = {q->hosts, q->slots};
    bool asked = config_asked(&q->run, "workers");
    int ranks = q->run.mesh.n ? mesh_ranks(&q->run.mesh) : 0;
    if (ranks && asked && q->run.workers != ranks)
        return fail("predict: mesh= has %d ranks, not workers=%d; try: without "
                    "workers=",
                    ranks, q->run.workers);
    if (place_workers(&p, asked ? q->run.workers : ranks, "predict"))
        return -1;
    q->search.job.hosts = p.hosts;
    q->search.job.slots = p.slots;
    return 0;
}

// Reads a link, and the relative error of its figures.
static int read_link(const struct question *q, const char *text,
                     struct link *out, double *error)
{
    struct links links = {.n = 0};
    if (links_read(&links, text, q->alpha_us * 1e-6))
        return -1;
    const struct link_fit *fit = links_find(&links, "tcp");
    if (!fit)
        return -1;
    *out = fit->link;
    *error = links_error(fit, (double)model_nparams(&q->search.job.model) *
                                  sizeof(float));
    return 0;
}

// Reads the links. Workers of one host have inner=, or with one host link=, or
// what is assumed for the device.
static int read_links(struct question *q)
{
    struct mesh_question *s = &q->search;
    struct mesh_job *j = &s->job;
    bool one = j->hosts == 1;
    q->inside = *q->inner ? q->inner : one ? q->link : "";
    if (!*q->link && !one && text_into(q->link, sizeof q->link, "25gbit"))
        return -1;
    if (*q->link && read_link(q, q->link, &j->outer, &s->outer_error))
        return -1;
    if (*q->inside)
        return read_link(q, q->inside, &j->inner, &s->inner_error);
    if (j->slots == 1)
        return 0;
    if (!predict_on_gpu(q))
        return fail("predict: inner= is missing, the rate between the %d "
                    "workers of a host; try: inner=200gbit",
                    j->slots);
    const struct gpu_link *assumed = gpu_step_inner(q->device);
    if (!assumed)
        return -1;
    j->inner = assumed->link;
    s->inner_error = links_error(&(struct link_fit){.n = 0}, 0);
    q->assumed = assumed->source;
    return 0;
}

static int check_mesh(struct question *q)
{
    const struct mesh_job *j = &q->search.job;
    int workers = j->hosts * j->slots;
    if (place(q))
        return -1;
    if (config_asked(&q->run, "accum"))
        return fail("predict: accum= follows from hosts=, slots= and "
                    "global_batch=; try: without accum=");
    if (workers > 4096)
        return fail("predict: hosts=%d with slots=%d are %d workers; at most "
                    "4096 are possible",
                    j->hosts, j->slots, workers);
    if (mesh_size(&q->run.mesh, MESH_TP) > j->model.heads ||
        mesh_size(&q->run.mesh, MESH_PP) > PIPELINE_STAGES)
        return fail("predict: mesh=: tp is more than the model's %d heads, or "
                    "pp is more than %d",
                    j->model.heads, PIPELINE_STAGES);
    if ((q->run.mesh.n && sizes_check_stages(&q->run, &q->run.mesh)) ||
        read_links(q) ||
        (*q->memory && sizes_bytes("memory", q->memory, &q->search.memory)))
        return -1;
    q->search.global_batch =
        q->run.global_batch ? q->run.global_batch : 8 * j->hosts * j->slots;
    return 0;
}

// ---- computing

// Measures a step of one worker here. With a mesh it is a model of the same
// width with few layers, which fits into this machine's memory.
static int measure(struct question *q, bool mesh)
{
    enum { FEW = 2 };
    struct mesh_job *j = &q->search.job;
    struct model_config part = j->model;
    struct step_time t;
    struct run r = q->run;
    if (mesh) {
        r.accum = 1;
        r.batch = config_asked(&q->run, "batch") ? r.batch : 1;
        part.layers = part.layers < FEW ? part.layers : FEW;
    }
    log_line("measuring how long one worker computes here: %d steps of %d "
             "layers; to skip this, give compute_ms=",
             STEP_TIME_STEPS, part.layers);
    if (step_time(&r, &part, &t))
        return -1;
    double sequences = (double)r.batch * r.accum;
    mesh_measured(j, part.layers, t.forward_s / sequences,
                  t.backward_s / sequences);
    j->update = t.update_s / (double)model_nparams(&part);
    q->computing = mesh ? "measured here, divided by FLOP" : "measured here";
    return 0;
}

static int check_device(struct question *q)
{
    if (!predict_on_gpu(q))
        return 0;
    return q->compute_ms > 0
               ? fail("predict: device=%s estimates compute_ms=; try: without "
                      "one of them",
                      q->device)
               : gpu_step_precision(q->device, &q->run);
}

// Finds the times of a layer and of the head. compute_ms= is the time of all
// micro-batches, or with a mesh of one.
static int read_times(struct question *q, bool mesh)
{
    struct mesh_job *j = &q->search.job;
    const struct run *r = &q->run;
    double ms = q->compute_ms,
           sequences = (double)r->batch * (mesh ? 1 : r->accum);
    double flop = model_flop(&j->model, j->model.context);
    q->computing = q->budget.flops > 0 ? "flops= and mfu=, divided by FLOP"
                                       : "compute_ms=, divided by FLOP";
    budget_compute(&q->budget, flop, sequences * j->model.context, &ms);
    if (predict_on_gpu(q)) {
        q->computing = "estimated for this device, divided by FLOP";
        if (gpu_step(q->device, &j->model, r->batch, &ms))
            return -1;
        sequences = r->batch;
        if (!mesh && !*q->link)
            return 0; // only the estimate was asked for
    }
    if (ms == 0)
        return measure(q, mesh);
    mesh_divide(j, ms * 1e-3 / sequences);
    return 0;
}

static int ask(struct question *q, bool mesh, int nwords, char **words)
{
    q->search.job.run = &q->run;
    return own_words(mesh ? &mesh_keys : &ways_keys, q, &q->run, nwords,
                     words) ||
                   check_device(q) ||
                   budget_check(&q->budget, predict_on_gpu(q), q->compute_ms) ||
                   sizes_model(&q->run, &q->search.job.model) ||
                   (mesh ? check_mesh(q) : check_ways(q)) || read_times(q, mesh)
               ? -1
               : 0;
}

// ---- the answer about a mesh

static void print_links(const struct question *q)
{
    const struct mesh_job *j = &q->search.job;
    const char *where = j->hosts > 1 ? "within a host" : "between workers";
    const char *label = "links:     ", *next = "           ";
    if (j->hosts > 1) {
        printf("%s%s between hosts, %g us a message\n", label, q->link,
               q->alpha_us);
        label = next;
    }
    if (j->slots > 1 && q->assumed)
        printf("%s%s, %s\n", label, where, q->assumed);
    else if (j->slots > 1)
        printf("%s%s %s, %g us a message\n", label, q->inside, where,
               q->alpha_us);
}

static void print_question(const struct question *q)
{
    const struct mesh_job *j = &q->search.job;
    const struct model_config *m = &j->model;
    char model[SIZES_TEXT];
    printf("model:     %s\n"
           "workers:   %d on %s%d host%s, %s each\n",
           sizes_say(&q->run, m, model), j->slots,
           j->hosts > 1 ? "each of " : "", j->hosts, j->hosts > 1 ? "s" : "",
           *q->memory ? q->memory : "unlimited memory");
    print_links(q);
    printf("computing: ms for one sequence: a layer %.4g forward, %.4g "
           "backward; the head %.4g, %.4g\n"
           "           (%s)\n"
           "step:      %d sequences of %d tokens\n\n",
           j->layer_forward * 1e3, j->layer_backward * 1e3,
           j->head_forward * 1e3, j->head_backward * 1e3, q->computing,
           q->search.global_batch, m->context);
}

static int answer_mesh(const struct question *q)
{
    struct mesh_answers *a = mem_alloc(1, sizeof *a);
    if (!a || mesh_search(&q->search, a)) {
        mem_free(a);
        return -1;
    }
    print_question(q);
    int rc = a->n ? 0 : -1;
    if (rc && a->too_large)
        fail("memory=%s: none of %d ways fits; the smallest takes %.0f MB; "
             "try: recompute=1, precision=bf16 or more hosts",
             q->memory, a->tried,
             (double)memory_sum(&a->least.step.memory) * 1e-6);
    else if (rc)
        fail("predict: no mesh can divide a step of %d sequences; try: another "
             "global_batch=, batch= or mesh=",
             q->search.global_batch);
    if (!rc) {
        const struct mesh_table t = {&q->search, &q->budget, predict_on_gpu(q)};
        mesh_table(&t, a);
    }
    mem_free(a);
    return rc;
}

static int predict(int nwords, char **words)
{
    bool mesh = asks_for_mesh(nwords, words);
    struct question *q = mem_alloc(1, sizeof *q);
    int rc = q ? ask(q, mesh, nwords, words) : -1;
    if (!rc && mesh)
        rc = answer_mesh(q);
    else if (!rc && *q->link)
        rc = predict_ways(q);
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
