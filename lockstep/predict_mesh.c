// predict_mesh.c - `lockstep predict hosts=8 memory=16gb ..` predicts which
// mesh of workers trains a model fastest, and the cost of the training.

#include "lockstep/predict_mesh.h"

#include "base/base.h"
#include "config/backends.h"
#include "config/keys.h"
#include "lockstep/budget.h"
#include "lockstep/gpu_step.h"
#include "lockstep/mesh_search.h"
#include "lockstep/mesh_table.h"
#include "lockstep/own_words.h"
#include "lockstep/place.h"
#include "lockstep/sizes.h"
#include "lockstep/step_time.h"
#include "sync/link.h"

#include <stddef.h>
#include <string.h>

struct question {
    // The values of the command line.
    int hosts, slots;
    double alpha_us, compute_ms;
    struct budget budget;
    char memory[CONFIG_PATH], link[CONFIG_PATH], inner[CONFIG_PATH];
    char device[CONFIG_PATH];
    // Derived from them.
    struct run run;
    struct mesh_question search;
    const char *computing; // where the times of computing come from
    const char *inside;    // the link within a host, and where it is from if
    const char *assumed;   // nobody gave it; else NULL
};

#define AT(member) offsetof(struct question, member), false

static const struct key rows[] = {
    {"mesh", "hosts", "1", KEY_INT, AT(hosts), .min = 1, .max = 4096,
     .help =
         "number of machines (for train hosts= is a file with their names)"},
    {"mesh", "slots", "0", KEY_INT, AT(slots), .min = 1, .max = 4096,
     .zero = "8, or by workers= or mesh=", .unit = "workers",
     .help = "on each host"},
    {"mesh", "memory", "", KEY_TEXT, AT(memory), .unit = "SIZE",
     .help = "of each worker, as 16gb; empty: no limit"},
    {"mesh", "link", "", KEY_TEXT, AT(link), .unit = "RATE|FILE",
     .help = "between hosts, shared by all workers of a host; empty: 25gbit"},
    {"mesh", "inner", "", KEY_TEXT, AT(inner), .unit = "RATE|FILE",
     .help = "of each worker within a host; empty: what is assumed for device=,"
             " or link= with one host"},
    {"mesh", "alpha_us", "25", KEY_NUMBER, AT(alpha_us), .min = 0, .max = 1e6,
     .unit = "us", .help = "latency of a message, with a RATE"},
    {"mesh", "compute_ms", "0", KEY_NUMBER, AT(compute_ms), .min = 1e-6,
     .max = 1e9, .zero = "measured here", .unit = "ms",
     .help = "forward and backward of the model with batch= sequences"},
    {"mesh", "device", "cpu", KEY_TEXT, AT(device), .unit = "NAME",
     .help = "h100: estimate compute_ms for such a GPU, with precision=bf16"},
    BUDGET_KEYS("mesh", struct question),
};

static const struct key_table keys = {rows, sizeof rows / sizeof *rows,
                                      "lockstep predict --help"};

void predict_mesh_explain(FILE *f)
{
    fprintf(f,
            "\nWith hosts=, memory= or mesh=, predict tries all ways to divide "
            "the workers into\nreplicas, stages and slices (mesh=dpD,ppP,tpT), "
            "or only the mesh= that you give. It\nprints the fastest ones that "
            "fit into memory=.\n");
    key_help(f, &keys);
    fprintf(f,
            "These keys of train count as well: model and its sizes, "
            "precision, recompute,\noptimizer, wire (without it fp32 and 16 "
            "bits), global_batch (8 for each worker), batch\n(of a "
            "micro-batch; without it the best one), sync, shard, mesh, "
            "pipeline, chunks,\nahead, stages, tp_sequence, workers.\n"
            "  lockstep predict model=gpt2-xl hosts=8 memory=16gb link=25gbit "
            "inner=200gbit \\\n      tokens=1e9 price=2.5\n");
}

static bool on_gpu(const struct question *q)
{
    return strcmp(q->device, "cpu") != 0;
}

static bool is(const char *word, const char *key)
{
    size_t n = strlen(key);
    return !strncmp(word, key, n) && word[n] == '=';
}

bool predict_mesh_is_asked(int nwords, char **words)
{
    for (int i = 0; i < nwords; i++)
        if (is(words[i], "hosts") || is(words[i], "memory") ||
            is(words[i], "mesh"))
            return true;
    return false;
}

// ---- the settings asked for

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
    if (!on_gpu(q))
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

static int check(const struct question *q)
{
    const struct mesh_job *j = &q->search.job;
    int workers = j->hosts * j->slots;
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
    return q->run.mesh.n ? sizes_check_stages(&q->run, &q->run.mesh) : 0;
}

// ---- computing

// Measures a model of the same width with few layers, which fits into this
// machine's memory.
static int by_steps(struct question *q)
{
    enum { FEW = 2 };
    struct mesh_job *j = &q->search.job;
    struct model_config few = j->model;
    struct step_time t;
    struct run r = q->run;
    r.accum = 1;
    r.batch = config_asked(&q->run, "batch") ? r.batch : 1;
    few.layers = few.layers < FEW ? few.layers : FEW;
    log_line("measuring how long one worker computes here: %d steps of %d "
             "layers; to skip this, give compute_ms=",
             STEP_TIME_STEPS, few.layers);
    if (step_time(&r, &few, &t))
        return -1;
    mesh_divide(j, few.layers, (t.forward_s + t.backward_s) / r.batch);
    j->update = t.update_s / (double)model_nparams(&few);
    return 0;
}

// A GPU's estimate decides the precision.
static int check_device(struct question *q)
{
    if (!on_gpu(q))
        return 0;
    return q->compute_ms > 0
               ? fail("predict: device=%s estimates compute_ms=; try: without "
                      "one of them",
                      q->device)
               : gpu_step_precision(q->device, &q->run);
}

static int read_times(struct question *q)
{
    struct mesh_job *j = &q->search.job;
    double ms = q->compute_ms;
    q->computing = q->budget.flops > 0 ? "flops= and mfu=" : "compute_ms=";
    int tokens = j->model.context;
    budget_compute(&q->budget, model_flop(&j->model, tokens),
                   (double)q->run.batch * tokens, &ms);
    if (on_gpu(q)) {
        q->computing = "estimated for this device";
        if (gpu_step(q->device, &j->model, q->run.batch, &ms))
            return -1;
    }
    if (ms > 0)
        mesh_divide(j, j->model.layers, ms * 1e-3 / q->run.batch);
    else {
        q->computing = "measured here";
        return by_steps(q);
    }
    return 0;
}

static int ask(struct question *q, int nwords, char **words)
{
    struct mesh_job *j = &q->search.job;
    j->run = &q->run;
    if (own_words(&keys, q, &q->run, nwords, words) || place(q) ||
        check_device(q) || budget_check(&q->budget, on_gpu(q), q->compute_ms) ||
        sizes_model(&q->run, &j->model) || check(q) || read_links(q) ||
        (*q->memory && sizes_bytes("memory", q->memory, &q->search.memory)))
        return -1;
    q->search.global_batch =
        q->run.global_batch ? q->run.global_batch : 8 * j->hosts * j->slots;
    return read_times(q);
}

// ---- the answer

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
           "           (%s, divided by FLOP)\n"
           "step:      %d sequences of %d tokens\n\n",
           j->layer_forward * 1e3, j->layer_backward * 1e3,
           j->head_forward * 1e3, j->head_backward * 1e3, q->computing,
           q->search.global_batch, m->context);
}

static int answer(const struct question *q)
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
        const struct mesh_table t = {&q->search, &q->budget, on_gpu(q)};
        mesh_table(&t, a);
    }
    mem_free(a);
    return rc;
}

int predict_mesh(int nwords, char **words)
{
    struct question *q = mem_alloc(1, sizeof *q);
    int rc = !q || ask(q, nwords, words) || answer(q) ? -1 : 0;
    mem_free(q);
    return rc;
}
