// simulate_mesh.c - `lockstep simulate mesh=dp16,pp8,tp8` simulates a step of a
// model on a mesh of workers (simulate/mesh_step.c), and prints the law's time.
//
// The law is mesh_case.h's, without overlap: the timetable with each stage's
// times, joins and hops, then the tied embedding and the norm, then the ring of
// the replicas. Every worker has a link of its own.

#include "lockstep/simulate_kinds.h"

#include "lockstep/mesh_case.h"
#include "lockstep/simulation_table.h"
#include "lockstep/sizes.h"

#include "base/base.h"
#include "config/backends.h"
#include "config/key_parts.h"
#include "model/part.h"
#include "sync/law_mesh.h"

#include <math.h>
#include <string.h>

enum { WORDS = 12, WORD = CONFIG_PATH + 16 };

struct question {
    struct simulation_words words;
    // The values of the command line.
    struct mesh mesh;
    struct stage_layers stages;
    int pipeline, micro, ahead, batch;
    double compute_ms;
    char model[CONFIG_WORD];
    // Derived from them.
    struct run run;
    struct mesh_job job;
    struct mesh_case way;
    struct mesh_step step;
    struct list workers;
    struct simulation sim;
    double params[PIPELINE_STAGES];
    int layers[PIPELINE_STAGES];
};

#define AT(member) offsetof(struct question, member), false

static const struct key rows[] = {
    {"mesh=", "mesh", "", KEY_PARTS, AT(mesh), .read = mesh_read,
     .show = mesh_show, .help = "replicas, stages and slices, as dp16,pp8,tp8"},
    {"mesh=", "model", "gpt2", KEY_WORD, AT(model), .unit = "PRESET",
     .help = "the model, in fp32"},
    {"mesh=", "batch", "1", KEY_INT, AT(batch), .min = 1, .max = 65536,
     .unit = "sequences", .help = "of a micro-batch"},
    {"mesh=", "micro", "8", KEY_INT, AT(micro), .min = 1, .max = PIPELINE_MICRO,
     .help = "micro-batches of a step"},
    {"mesh=", "pipeline", "1f1b", KEY_CHOICE, AT(pipeline),
     .words = pipeline_names, .help = "the schedule"},
    {"mesh=", "ahead", "0", KEY_INT, AT(ahead), .min = 0,
     .max = PIPELINE_STAGES,
     .help = "1f1b: further forwards a stage runs ahead for each hop"},
    {"mesh=", "stages", "", KEY_PARTS, AT(stages), .read = stages_read,
     .show = stages_show, .help = "layers of each stage; empty: evenly"},
    {"mesh=", "compute_ms", "1000", KEY_NUMBER, AT(compute_ms), .min = 0,
     .max = 1e9, .unit = "ms",
     .help = "of a micro-batch through the whole model on one worker"},
    SIMULATION_KEYS("mesh="),
};

static const struct key_table keys = {rows, sizeof rows / sizeof *rows,
                                      "lockstep simulate --help"};

static void explain(FILE *f)
{
    fprintf(f, "\nWith mesh= it simulates a step of a model in replicas, "
               "stages and slices. The\nexchange is done by the trainer's own "
               "code. Every worker has a link of its own.\n");
    key_help(f, &keys);
    fprintf(f, "  lockstep simulate mesh=dp16,pp8,tp8 model=gpt2-xl "
               "link=25gbit\n");
}

// ---- the question

static int read_model(struct question *q)
{
    struct run *r = &q->run;
    struct mesh_job *j = &q->job;
    config_defaults(r);
    if (text_into(r->model, sizeof r->model, "%s", q->model) ||
        sizes_model(r, &j->model))
        return -1;
    j->run = r;
    j->hosts = mesh_ranks(&q->mesh);
    j->slots = 1;
    j->outer = j->inner = q->sim.link;
    mesh_divide(j, q->compute_ms * 1e-3 / q->batch);
    return 0;
}

// Returns the backend that sums the replicas' gradients around a ring.
static const struct backend *replicas(void)
{
    for (int i = 0; backend_at(i); i++)
        if (backend_at(i)->traffic == TRAFFIC_RING && backend_at(i)->parts)
            return backend_at(i);
    return NULL;
}

static int read_way(struct question *q)
{
    int stages = mesh_size(&q->mesh, MESH_PP);
    q->way = (struct mesh_case){
        .mesh = q->mesh,
        .backend = replicas(),
        .batch = q->batch,
        .plan = {(enum pipeline_kind)q->pipeline, stages, q->micro, 1,
                 q->ahead},
    };
    if (q->stages.n && q->stages.n != stages)
        return fail("simulate: stages= has %d stages, mesh= has %d; try: "
                    "without stages=",
                    q->stages.n, stages);
    memcpy(q->way.layers, q->stages.layers, sizeof q->way.layers);
    if (pipeline_check(&q->way.plan) || mesh_step(&q->job, &q->way, &q->step))
        return -1;
    for (int s = 0; s < stages; s++) {
        struct model_config part = q->job.model;
        if (stages > 1 &&
            part_cut(&q->job.model, stages, s, 1,
                     q->stages.n ? q->stages.layers : NULL, &part))
            return -1;
        q->layers[s] = part.layers;
        q->params[s] = ceil(sizes_slice(&part, mesh_size(&q->mesh, MESH_TP)));
    }
    return 0;
}

static int ask(struct question *q, int nwords, char **words)
{
    key_defaults(&keys, q);
    if (key_words(&keys, q, nwords, words))
        return -1;
    if (mesh_ranks(&q->mesh) < 2)
        return fail("simulate: mesh= has one worker, which exchanges nothing; "
                    "try: mesh=dp2,pp2");
    if (q->words.payload)
        return fail("simulate: payload=1 does not work with mesh=; try: "
                    "without payload=");
    q->sim.n = LIST_WORKERS; // so that simulation_read() accepts any workers=
    q->sim.backend = replicas();
    q->sim.name = "mesh";
    if (simulation_read(&q->words, &q->sim, &q->workers) || read_model(q) ||
        read_way(q))
        return -1;
    q->sim.workers = mesh_ranks(&q->mesh);
    return 0;
}

// ---- the words of simulate/mesh_step.c

struct job_words {
    char at[WORDS][WORD];
    char *words[WORDS];
    int n;
};

static char *next(struct job_words *w)
{
    char *word = w->words[w->n] = w->at[w->n];
    w->n++;
    return word;
}

static void add_number(struct job_words *w, const char *key, double v)
{
    snprintf(next(w), WORD, "%s=%.0f", key, v);
}

// Adds KEY= with one value for each stage.
static void add_list(struct job_words *w, const char *key, const double *v,
                     int n)
{
    char *text = next(w);
    int at = snprintf(text, WORD, "%s=", key);
    for (int s = 0; s < n && at < WORD; s++)
        at += snprintf(text + at, WORD - (size_t)at, "%s%.6g", s ? "," : "",
                       v[s]);
}

// Adds lists by stage: the times without joins, which are simulated; the
// numbers of joins; the parameters.
static void add_stages(struct job_words *w, const struct question *q)
{
    const struct mesh_job *j = &q->job;
    int n = q->way.plan.stages, slices = mesh_size(&q->mesh, MESH_TP);
    double v[4][PIPELINE_STAGES];
    for (int s = 0; s < n; s++) {
        const struct law_mesh law = {.stages = n,
                                     .stage = s,
                                     .layers = q->layers[s],
                                     .slices = slices};
        double each = (double)q->batch / slices;
        bool last = s == n - 1;
        v[0][s] =
            each * (q->layers[s] * j->layer_forward + last * j->head_forward);
        v[1][s] =
            each * (q->layers[s] * j->layer_backward + last * j->head_backward);
        v[2][s] = law_mesh_joins(&law, false);
        v[3][s] = law_mesh_joins(&law, true);
    }
    add_list(w, "forward_s", v[0], n);
    add_list(w, "backward_s", v[1], n);
    add_list(w, "joins_forward", v[2], n);
    add_list(w, "joins_backward", v[3], n);
    add_list(w, "params", q->params, n);
}

static void list_words(struct job_words *w, const struct question *q)
{
    const struct model_config *m = &q->job.model;
    double tokens = (double)q->batch * m->context;
    char mesh[CONFIG_PATH];
    mesh_show(&q->mesh, mesh);
    snprintf(next(w), WORD, "mesh=%s", mesh);
    snprintf(next(w), WORD, "pipeline=%s", pipeline_names[q->pipeline]);
    add_number(w, "micro", q->micro);
    add_number(w, "ahead", q->ahead);
    add_number(w, "stream", tokens * m->channels * sizeof(float));
    add_number(w, "join", tokens * m->channels);
    add_number(w, "tied",
               (double)m->vocab * m->channels / mesh_size(&q->mesh, MESH_TP));
    add_stages(w, q);
}

// ---- the answer

// Returns the seconds from the end of the pipeline until all replicas have the
// sum of their gradients.
static double exchange_s(const struct question *q)
{
    int w = mesh_size(&q->mesh, MESH_DP);
    struct law ring = law_ring(w);
    double most = 0;
    for (int s = 0; s < q->way.plan.stages; s++)
        most = fmax(most, law_seconds(&ring, &q->sim.link,
                                      q->params[s] * sizeof(float)));
    return w > 1 ? most : 0;
}

static int answer(struct question *q)
{
    struct simulation_table t;
    struct job_words *w = mem_alloc(1, sizeof *w);
    char name[CONFIG_PATH], csv[CONFIG_PATH];
    double law_s = q->step.pipeline_s + q->step.tied_s + exchange_s(q);
    if (!w)
        return -1;
    list_words(w, q);
    q->sim.mesh = w->words;
    q->sim.mesh_words = w->n;
    mesh_show(&q->mesh, name);
    snprintf(csv, sizeof csv, "%s", name);
    for (char *p = csv; *p; p++)
        *p = *p == ',' ? ' ' : *p;
    q->sim.n = (size_t)q->params[0];
    int rc = simulation_table_open(&t, &q->sim, "mesh.csv", "mesh");
    if (!rc)
        rc = simulation_table_close(&t, simulation_table_row(&t, &q->sim, csv,
                                                             law_s));
    if (!rc)
        printf("the law: %.6g s for the timetable (bubble %.1f%%), %.6g s for "
               "the tied embedding and the norm,\n%.6g s for the replicas' "
               "ring\n",
               q->step.pipeline_s, 100 * q->step.bubble, q->step.tied_s,
               exchange_s(q));
    mem_free(w);
    return rc;
}

static int simulate(int nwords, char **words)
{
    struct question *q = mem_alloc(1, sizeof *q);
    int rc =
        !q || ask(q, nwords, words) || simulation_check() || answer(q) ? -1 : 0;
    mem_free(q);
    return rc;
}

const struct simulate_kind simulate_mesh = {"mesh=", explain, simulate};
