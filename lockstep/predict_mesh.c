// predict_mesh.c - `lockstep predict hosts=8 memory=16gb ..` predicts which
// mesh of workers trains a model fastest, and the cost of the training.

#include "lockstep/predict_mesh.h"

#include "base/base.h"
#include "config/backends.h"
#include "config/keys.h"
#include "lockstep/gpu_step.h"
#include "lockstep/mesh_search.h"
#include "lockstep/sizes.h"
#include "lockstep/step_time.h"
#include "sync/link.h"

#include <stddef.h>
#include <string.h>

struct question {
    // The values of the command line.
    int hosts, slots;
    double alpha_us, compute_ms, price, tokens;
    char memory[CONFIG_PATH], link[CONFIG_PATH], inner[CONFIG_PATH];
    char device[CONFIG_PATH];
    // Derived from them.
    struct run run;
    struct mesh_question search;
    const char *computing; // where the times of computing come from
};

#define AT(member) offsetof(struct question, member), false

static const struct key rows[] = {
    {"mesh", "hosts", "1", KEY_INT, AT(hosts), .min = 1, .max = 4096,
     .help = "number of machines"},
    {"mesh", "slots", "8", KEY_INT, AT(slots), .min = 1, .max = 4096,
     .unit = "workers", .help = "on each host; mesh= replaces this"},
    {"mesh", "memory", "", KEY_TEXT, AT(memory), .unit = "SIZE",
     .help = "of each worker, as 16gb; empty: no limit"},
    {"mesh", "link", "25gbit", KEY_TEXT, AT(link), .unit = "RATE|FILE",
     .help = "between hosts, shared by all workers of a host"},
    {"mesh", "inner", "", KEY_TEXT, AT(inner), .unit = "RATE|FILE",
     .help = "of each worker within a host; empty: as link"},
    {"mesh", "alpha_us", "25", KEY_NUMBER, AT(alpha_us), .min = 0, .max = 1e6,
     .unit = "us", .help = "latency of a message, with a RATE"},
    {"mesh", "compute_ms", "0", KEY_NUMBER, AT(compute_ms), .min = 1e-6,
     .max = 1e9, .zero = "measured here", .unit = "ms",
     .help = "forward and backward of the model with batch= sequences"},
    {"mesh", "device", "cpu", KEY_TEXT, AT(device), .unit = "NAME",
     .help = "h100: estimate compute_ms for such a GPU"},
    {"mesh", "tokens", "0", KEY_NUMBER, AT(tokens), .min = 1, .max = 1e18,
     .zero = "not asked", .help = "of the whole training, to print days"},
    {"mesh", "price", "0", KEY_NUMBER, AT(price), .min = 1e-9, .max = 1e9,
     .zero = "not asked", .help = "of a worker and hour, to print the cost"},
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
            "precision, recompute,\noptimizer, wire, global_batch (8 for each "
            "worker), batch (of a micro-batch; without it\nthe best one), "
            "sync, shard, mesh, pipeline, chunks, ahead, stages.\n"
            "  lockstep predict model=gpt2-xl hosts=8 memory=16gb link=25gbit "
            "inner=200gbit \\\n      tokens=1e9 price=2.5\n");
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

static bool is_own(const char *word)
{
    for (int k = 0; k < keys.n; k++)
        if (is(word, rows[k].name))
            return true;
    return false;
}

// Reads the words: those of rows[] into *q, all other ones into q->run.
static int read_words(struct question *q, int nwords, char **words)
{
    char **own = mem_alloc(2 * (size_t)nwords + 1, sizeof *own);
    int n = 0, others = 0, rc = own ? 0 : -1;
    for (int i = 0; !rc && i < nwords; i++)
        if (is_own(words[i]))
            own[n++] = words[i];
        else
            own[nwords + others++] = words[i];
    config_defaults(&q->run);
    key_defaults(&keys, q);
    if (!rc)
        rc = key_words(&keys, q, n, own) ||
                     config_parse(&q->run, others, own + nwords)
                 ? -1
                 : 0;
    mem_free(own);
    return rc;
}

// Sets the number of hosts, and of workers on each. With mesh= its ranks are
// divided among the hosts.
static int place(struct question *q)
{
    struct mesh_job *j = &q->search.job;
    int ranks = mesh_ranks(&q->run.mesh);
    j->hosts = q->hosts;
    j->slots = q->slots;
    if (!q->run.mesh.n)
        return 0;
    if (ranks % q->hosts)
        return fail("predict: the %d ranks of mesh= cannot be divided evenly "
                    "among hosts=%d; try: hosts=1",
                    ranks, q->hosts);
    j->slots = ranks / q->hosts;
    return 0;
}

static int read_link(const struct question *q, const char *text,
                     struct link *out)
{
    struct links links = {.n = 0};
    if (links_read(&links, text, q->alpha_us * 1e-6))
        return -1;
    const struct link_fit *fit = links_find(&links, "tcp");
    if (fit)
        *out = fit->link;
    return fit ? 0 : -1;
}

static int check(const struct question *q)
{
    static const char *const no[] = {"accum", "workers", NULL};
    const struct mesh_job *j = &q->search.job;
    int workers = j->hosts * j->slots;
    for (int i = 0; no[i]; i++)
        if (config_asked(&q->run, no[i]))
            return fail("predict: %s= follows from hosts=, slots= and "
                        "global_batch=; try: without %s=",
                        no[i], no[i]);
    if (workers > 4096)
        return fail("predict: hosts=%d with slots=%d are %d workers; at most "
                    "4096 are possible",
                    j->hosts, j->slots, workers);
    if (mesh_size(&q->run.mesh, MESH_TP) > j->model.heads ||
        mesh_size(&q->run.mesh, MESH_PP) > PIPELINE_STAGES)
        return fail("predict: mesh=: tp is more than the model's %d heads, or "
                    "pp is more than %d",
                    j->model.heads, PIPELINE_STAGES);
    return 0;
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
    log_line("measuring how long one worker computes here: %d steps of %s, %d "
             "of its layers; to skip this, give compute_ms=",
             STEP_TIME_STEPS, r.model, few.layers);
    if (step_time(&r, &few, &t))
        return -1;
    mesh_divide(j, few.layers, (t.forward_s + t.backward_s) / r.batch);
    j->update = t.update_s / (double)model_nparams(&few);
    return 0;
}

static int read_times(struct question *q)
{
    struct mesh_job *j = &q->search.job;
    double ms = q->compute_ms;
    q->computing = "compute_ms=";
    if (strcmp(q->device, "cpu")) {
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
    if (read_words(q, nwords, words) || place(q) ||
        sizes_model(&q->run, &j->model) || check(q) ||
        read_link(q, q->link, &j->outer) ||
        read_link(q, *q->inner ? q->inner : q->link, &j->inner) ||
        (*q->memory && sizes_bytes("memory", q->memory, &q->search.memory)))
        return -1;
    q->search.global_batch =
        q->run.global_batch ? q->run.global_batch : 8 * j->hosts * j->slots;
    return read_times(q);
}

// ---- the answer

static void print_question(const struct question *q)
{
    const struct mesh_job *j = &q->search.job;
    const struct model_config *m = &j->model;
    printf("model:     %s, %.4g M parameters, %d layers\n"
           "workers:   %d on each of %d hosts, %s each\n"
           "links:     %s between hosts, %s within a host; %g us a message\n"
           "computing: ms for one sequence: a layer %.4g forward, %.4g "
           "backward; the head %.4g, %.4g\n"
           "           (%s, divided by FLOP)\n"
           "step:      %d sequences of %d tokens\n\n",
           q->run.model, (double)model_nparams(m) * 1e-6, m->layers, j->slots,
           j->hosts, *q->memory ? q->memory : "unlimited memory", q->link,
           *q->inner ? q->inner : q->link, q->alpha_us, j->layer_forward * 1e3,
           j->layer_backward * 1e3, j->head_forward * 1e3,
           j->head_backward * 1e3, q->computing, q->search.global_batch,
           m->context);
}

static void print_head(const struct question *q)
{
    printf("%-16s %-12s %5s %5s %10s %7s %9s %9s %9s %9s %9s", "mesh", "sync",
           "batch", "accum", "step s", "bubble", "memory MB", "dp MB", "pp MB",
           "tp MB", "tokens/s");
    if (q->tokens > 0)
        printf(" %8s", "days");
    if (q->tokens > 0 && q->price > 0)
        printf(" %10s", "cost");
    printf("\n");
}

static void print_row(const struct question *q, const struct mesh_answer *a)
{
    const struct mesh_job *j = &q->search.job;
    const struct mesh_case *c = &a->way;
    char mesh[CONFIG_PATH], sync[64];
    double tokens = (double)q->search.global_batch * j->model.context;
    double rate = tokens / a->step.seconds, hours = q->tokens / rate / 3600;
    mesh_show(&c->mesh, mesh);
    snprintf(sync, sizeof sync, "%s", c->backend->name);
    if (c->backend->shards)
        snprintf(sync, sizeof sync, "%s shard=%d", c->backend->name, c->shard);
    printf("%-16s %-12s %5d %5d %10.4g %6.1f%% %9.0f %9.5g %9.5g %9.5g %9.0f",
           mesh, sync, c->batch, c->plan.micro, a->step.seconds,
           100 * a->step.bubble, (double)memory_sum(&a->step.memory) * 1e-6,
           a->step.bytes[MESH_DP] * 1e-6, a->step.bytes[MESH_PP] * 1e-6,
           a->step.bytes[MESH_TP] * 1e-6, rate);
    if (q->tokens > 0)
        printf(" %8.4g", hours / 24);
    if (q->tokens > 0 && q->price > 0)
        printf(" %10.0f", hours * j->hosts * j->slots * q->price);
    printf("\n");
}

// Prints the settings of train for this way.
static void print_words(const struct mesh_answer *a)
{
    const struct mesh_case *c = &a->way;
    char mesh[CONFIG_PATH];
    mesh_show(&c->mesh, mesh);
    printf("mesh=%s sync=%s", mesh, c->backend->name);
    if (c->backend->shards)
        printf(" shard=%d", c->shard);
    printf(" batch=%d accum=%d", c->batch, c->plan.micro);
    if (c->plan.ahead)
        printf(" ahead=%d", c->plan.ahead);
    for (int s = 0; c->layers[0] && s < c->plan.stages; s++)
        printf("%s%d", s ? "," : " stages=", c->layers[s]);
    printf("\n");
}

// Prints the memory and the times of each stage.
static void print_stages(const struct mesh_answer *a)
{
    char head[32];
    printf("\n");
    sizes_print_head("stage");
    printf(" %11s %11s\n", "forward ms", "backward ms");
    for (int s = 0; s < a->way.plan.stages; s++) {
        snprintf(head, sizeof head, "%d", s);
        sizes_print_row(head, &a->step.of_stage[s]);
        printf(" %11.4g %11.4g\n", a->step.forward[s] * 1e3,
               a->step.backward[s] * 1e3);
    }
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
        print_head(q);
        for (int i = 0; i < a->n; i++)
            print_row(q, &a->best[i]);
        printf("\n%d of %d ways fit. The fastest: ", a->tried - a->too_large,
               a->tried);
        print_words(&a->best[0]);
        print_stages(&a->best[0]);
        printf("\nbubble         share of the stages' time in which they wait "
               "for each other\n"
               "memory MB      of the worker that needs most\n"
               "dp, pp, tp MB  sent by the busiest worker in a step, along "
               "each axis\n");
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
