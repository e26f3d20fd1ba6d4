// step_questions.c - predicts a step, or finds the best of several.

#include "forecast/step_questions.h"

#include "base/base.h"
#include "config/backends.h"
#include "config/keys.h"
#include "forecast/answers.h"
#include "forecast/mesh_case.h"
#include "forecast/mesh_links.h"
#include "train/shape.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- a step

// The words of a step that are not those of train.
struct step_words {
    int hosts, slots; // workers on each host
    int measured;     // bool: the links are those of the last "link"
    int cut;          // bool: find the fastest cut into stages
    double enough;    // seconds; see mesh_step()
    double outer_alpha_s, outer_bytes_per_s, inner_alpha_s, inner_bytes_per_s;
    // Seconds of one sequence: of forward and backward of a model of so many
    // layers (mesh_measured()), or of both of the whole model (mesh_divide()).
    // And of the update of one parameter.
    int layers_measured;
    double forward_s, backward_s, compute_s, update_s;
    double disk; // bytes a second of the file of offload=disk
};

static const struct key step_rows[] = {
    {ANSWERS_ROW(step_words, hosts, "1", KEY_INT), .min = 1, .max = 1 << 20},
    {ANSWERS_ROW(step_words, slots, "1", KEY_INT), .min = 1, .max = 1 << 20},
    {ANSWERS_ROW(step_words, measured, "0", KEY_INT), .max = 1},
    {ANSWERS_ROW(step_words, cut, "0", KEY_INT), .max = 1},
    {ANSWERS_ROW(step_words, enough, "1e300", KEY_NUMBER), .max = 1e300},
    {ANSWERS_ROW(step_words, outer_alpha_s, "0", KEY_NUMBER), .max = 1e300},
    {ANSWERS_ROW(step_words, outer_bytes_per_s, "0", KEY_NUMBER), .max = 1e300},
    {ANSWERS_ROW(step_words, inner_alpha_s, "0", KEY_NUMBER), .max = 1e300},
    {ANSWERS_ROW(step_words, inner_bytes_per_s, "0", KEY_NUMBER), .max = 1e300},
    {ANSWERS_ROW(step_words, layers_measured, "0", KEY_INT), .max = 1024},
    {ANSWERS_ROW(step_words, forward_s, "0", KEY_NUMBER), .max = 1e300},
    {ANSWERS_ROW(step_words, backward_s, "0", KEY_NUMBER), .max = 1e300},
    {ANSWERS_ROW(step_words, compute_s, "0", KEY_NUMBER), .max = 1e300},
    {ANSWERS_ROW(step_words, update_s, "0", KEY_NUMBER), .max = 1e300},
    {ANSWERS_ROW(step_words, disk, "0", KEY_NUMBER), .max = 1e300},
};

static const struct key_table step_keys = {step_rows,
                                           sizeof step_rows / sizeof *step_rows,
                                           "forecast/step_questions.c"};

static bool is_own(const char *word)
{
    for (int k = 0; k < step_keys.n; k++) {
        size_t n = strlen(step_keys.rows[k].name);
        if (!strncmp(word, step_keys.rows[k].name, n) && word[n] == '=')
            return true;
    }
    return false;
}

// Sets the words of a step in *w, and all other words, and INI files, in *r.
// 0, or -1 after fail().
static int read_words(struct step_words *w, struct run *r, int nwords,
                      char **words)
{
    char **own = mem_alloc(2 * (size_t)nwords + 1, sizeof *own);
    int n = 0, others = 0;
    if (!own)
        return -1;
    for (int i = 0; i < nwords; i++)
        if (is_own(words[i]))
            own[n++] = words[i];
        else
            own[nwords + others++] = words[i];
    key_defaults(&step_keys, w);
    int rc = key_words(&step_keys, w, n, own) ||
                     config_parse(r, others, own + nwords)
                 ? -1
                 : 0;
    mem_free(own);
    return rc;
}

static void read_job(const struct forecasts *f, const struct run *r,
                     const struct step_words *w, struct mesh_job *job)
{
    *job = (struct mesh_job){
        .run = r,
        .model = f->model,
        .hosts = w->hosts,
        .slots = w->slots,
        .outer = {w->outer_alpha_s, w->outer_bytes_per_s},
        .inner = {w->inner_alpha_s, w->inner_bytes_per_s},
        .links = w->measured ? &f->links : NULL,
        .update = w->update_s,
        .disk = w->disk,
    };
    if (w->layers_measured)
        mesh_measured(job, w->layers_measured, w->forward_s, w->backward_s);
    else
        mesh_divide(job, w->compute_s);
}

static void add_exchange(cJSON *out, const struct forecast *x)
{
    cJSON *e = cJSON_AddObjectToObject(out, "exchange");
    answers_add(e, "link_bytes", x->link_bytes);
    answers_add(e, "exchange_s", x->exchange_s);
    answers_add(e, "apart_s", x->apart_s);
    answers_add(e, "overlapped_s", x->overlapped_s);
    answers_add(e, "tokens_per_s", x->tokens_per_s);
    answers_add(e, "efficiency", x->efficiency);
    answers_add(e, "least_s", x->least_s);
    answers_add(e, "most_s", x->most_s);
}

static void add_step(cJSON *out, const struct mesh_step *s)
{
    int stages = s->stages;
    answers_add(out, "seconds", s->seconds);
    answers_add(out, "bubble", s->bubble);
    answers_add(out, "compute_s", s->compute_s);
    answers_add(out, "pipeline_s", s->pipeline_s);
    answers_add(out, "tied_s", s->tied_s);
    answers_list(out, "bytes", s->bytes, MESH_AXES);
    cJSON_AddBoolToObject(out, "held", s->held);
    answers_memory(out, "worker", &s->memory);
    answers_memory(out, "server", &s->server);
    add_exchange(out, &s->exchange);
    answers_list(out, "forward_s", s->forward, stages);
    answers_list(out, "backward_s", s->backward, stages);
    answers_list(out, "params", s->params, stages);
    answers_counts(out, "layers", s->layers, stages);
    answers_counts(out, "joins_forward", s->joins[0], stages);
    answers_counts(out, "joins_backward", s->joins[1], stages);
    answers_counts(out, "cut", s->cut, s->parts);
    cJSON *of_stage = cJSON_AddObjectToObject(out, "of_stage");
    for (int i = 0; i < stages; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        answers_memory(of_stage, name, &s->of_stage[i]);
    }
}

static int find_step(struct mesh_job *job, struct run *r, bool cut,
                     double enough, struct mesh_step *out)
{
    if (mesh_settle(job, r))
        return -1;
    if (cut && !r->stages.n)
        mesh_cut(job);
    return mesh_step(job, enough, out);
}

int step_answer(struct forecasts *f, int n, char **words, cJSON *out)
{
    struct run r = f->run;
    struct step_words own;
    struct mesh_job job;
    struct mesh_step step;
    if (read_words(&own, &r, n, words))
        return -1;
    read_job(f, &r, &own, &job);
    mesh_links(&job);
    if (find_step(&job, &r, own.cut, own.enough, &step))
        return -1;
    const double times[] = {job.layer_forward, job.layer_backward,
                            job.head_forward, job.head_backward};
    answers_list(out, "times", times, 4);
    add_step(out, &step);
    return 0;
}

// ---- the fastest of several steps

enum { CHOICES = 8 };

// The words of a question, cut at "/": those of all steps, and for each choice
// its alternatives.
struct choices {
    int n, count[CHOICES];
    char **from[CHOICES];
};

struct chosen {
    struct mesh_step step;
    int at[CHOICES]; // the alternatives; step.seconds 0: there is none
};

struct best {
    struct chosen now, fastest, plain, least;
    double memory; // bytes that a worker has; 0: no limit
};

// Returns how many words come before the first choice, or -1 after fail().
static int cut_choices(int n, char **words, struct choices *c)
{
    int first = n;
    *c = (struct choices){.n = 0};
    for (int i = 0; i < n; i++) {
        if (strcmp(words[i], "/")) {
            if (c->n)
                c->count[c->n - 1]++;
            continue;
        }
        if (c->n == CHOICES)
            return fail("tell: more than %d choices", CHOICES);
        first = c->n ? first : i;
        c->from[c->n++] = words + i + 1;
    }
    return first;
}

// Sets the words of an alternative, which blanks separate.
static int choose(struct run *r, const char *alternative)
{
    char text[CONFIG_PATH], *rest = text, *word;
    if (text_into(text, sizeof text, "%s", alternative))
        return -1;
    while ((word = strsep(&rest, " ")))
        if (config_parse(r, 1, &word))
            return -1;
    return 0;
}

static bool is_faster(const struct chosen *a, const struct chosen *b)
{
    return b->step.seconds == 0 || a->step.seconds < b->step.seconds;
}

// A step that is slower than the fastest, and than the fastest in fp32 if it is
// one, need not be worked out.
static double enough_of(const struct best *b, bool plain)
{
    double fast = b->fastest.step.seconds, same = b->plain.step.seconds;
    if (fast == 0 || (plain && same == 0))
        return INFINITY;
    return plain ? fmax(fast, same) : fast;
}

static int try_step(struct mesh_job *job, struct run *r, bool cut,
                    struct best *b)
{
    bool plain = r->settings.wire == DTYPE_F32;
    double enough = enough_of(b, plain);
    struct chosen *now = &b->now;
    if (shape_check_slices(r, &job->model))
        return 0; // training would refuse it
    if (find_step(job, r, cut, enough, &now->step))
        return -1;
    if (now->step.seconds > enough)
        return 0;
    size_t need = memory_sum(&now->step.memory);
    if (b->least.step.seconds == 0 || need < memory_sum(&b->least.step.memory))
        b->least = *now;
    if (b->memory > 0 && (double)need > b->memory)
        return 0;
    if (is_faster(now, &b->fastest))
        b->fastest = *now;
    if (plain && is_faster(now, &b->plain))
        b->plain = *now;
    return 0;
}

static int try_all(struct mesh_job *job, const struct run *r, bool cut,
                   const struct choices *c, struct best *b)
{
    int *at = b->now.at, k;
    do {
        struct run one = *r;
        for (int i = 0; i < c->n; i++)
            if (choose(&one, c->from[i][at[i]]))
                return -1;
        if (try_step(job, &one, cut, b))
            return -1;
        for (k = c->n - 1; k >= 0 && ++at[k] == c->count[k]; k--)
            at[k] = 0;
    } while (k >= 0);
    return 0;
}

static void add_chosen(cJSON *out, const char *name, const struct chosen *s,
                       int choices)
{
    if (s->step.seconds == 0)
        return;
    cJSON *one = cJSON_AddObjectToObject(out, name);
    add_step(one, &s->step);
    answers_counts(one, "at", s->at, choices);
}

int step_answer_best(struct forecasts *f, int n, char **words, cJSON *out)
{
    struct run r = f->run;
    struct step_words own;
    struct mesh_job job;
    struct choices c;
    int first = cut_choices(n, words, &c);
    if (first < 1 || read_words(&own, &r, first - 1, words + 1))
        return -1;
    struct best *b = mem_alloc(1, sizeof *b);
    if (!b)
        return -1;
    b->memory = atof(words[0]);
    read_job(f, &r, &own, &job);
    mesh_links(&job);
    int rc = try_all(&job, &r, own.cut, &c, b);
    if (!rc) {
        add_chosen(out, "fastest", &b->fastest, c.n);
        add_chosen(out, "plain", &b->plain, c.n);
        add_chosen(out, "least", &b->least, c.n);
        if (b->least.step.seconds == 0)
            cJSON_AddStringToObject(out, "refused", fail_message());
    }
    mem_free(b);
    return rc;
}
