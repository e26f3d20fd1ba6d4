// result_stages.c - computes how long the stages of a run waited, and how long
// they would have waited by the law and by the timetable.

#include "lockstep/result_stages.h"

#include "base/base.h"
#include "config/mesh.h"
#include "lockstep/csv.h"
#include "pipeline/timetable.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// Seconds of a step. Those of a stage are means over its replicas.
struct stage_times {
    double forward[PIPELINE_STAGES], backward[PIPELINE_STAGES];
    double bubble, step; // means over all ranks
};

static int setting(const struct result *r, const char *key)
{
    char text[64];
    result_setting(r, key, text, sizeof text);
    return atoi(text);
}

static int plan_of(const struct result *r, struct pipeline *p)
{
    char kind[32];
    *p = (struct pipeline){.stages = r->stages,
                           .micro = setting(r, "accum"),
                           .chunks = setting(r, "chunks"),
                           .ahead = setting(r, "ahead")};
    result_setting(r, "pipeline", kind, sizeof kind);
    for (; pipeline_names[p->kind]; p->kind++)
        if (!strcmp(kind, pipeline_names[p->kind]))
            return pipeline_check(p);
    return -1;
}

static int open_file(struct csv *c, const char *dir, const char *name)
{
    char path[CONFIG_PATH];
    return text_into(path, sizeof path, "%s/%s", dir, name) || csv_open(c, path)
               ? -1
               : 0;
}

// Returns the mean of a column over all rows.
static double mean_us(const struct csv *c, const char *column)
{
    int k = csv_column(c, column);
    double sum = 0;
    for (int i = 0; i < c->nrows; i++)
        sum += k < 0 ? NAN : csv_number(c, i, k);
    return sum / c->nrows;
}

static int read_steps(struct stage_times *t, const char *dir)
{
    struct csv c;
    if (open_file(&c, dir, "steps.csv"))
        return -1;
    t->bubble = mean_us(&c, "t_bubble_us") * 1e-6;
    t->step = mean_us(&c, "t_step_us") * 1e-6;
    csv_close(&c);
    return 0;
}

static int read_times(struct stage_times *t, const struct result *r,
                      const char *dir)
{
    struct mesh mesh;
    struct csv c;
    char text[64];
    result_setting(r, "mesh", text, sizeof text);
    if (mesh_read(&mesh, "mesh", text) || open_file(&c, dir, "breakdown.csv"))
        return -1;
    int rank = csv_column(&c, "rank"), kind = csv_column(&c, "kind");
    int seconds = csv_column(&c, "seconds"), steps = csv_column(&c, "steps");
    double of_stage = (double)r->world / r->stages;
    for (int i = 0; steps >= 0 && i < c.nrows; i++) {
        const char *who = csv_text(&c, i, rank), *what = csv_text(&c, i, kind);
        int stage = mesh_at(&mesh, atoi(who), MESH_PP);
        double s = csv_number(&c, i, seconds) / csv_number(&c, i, steps);
        if (isdigit((unsigned char)*who) && !strcmp(what, "forward"))
            t->forward[stage] += s / of_stage;
        if (isdigit((unsigned char)*who) && !strcmp(what, "backward"))
            t->backward[stage] += s / of_stage;
    }
    csv_close(&c);
    return 0;
}

// Returns the seconds of a step that the timetable does not cover: the update,
// the exchange among replicas, reading data.
static double rest_of(const struct stage_times *t, int stages)
{
    double busy = 0;
    for (int s = 0; s < stages; s++)
        busy += (t->forward[s] + t->backward[s]) / stages;
    return fmax(0, t->step - t->bubble - busy);
}

static void run_timetable(struct result *r, const struct pipeline *p,
                          const struct stage_times *t)
{
    double f[PIPELINE_STAGES], b[PIPELINE_STAGES], idle = 0;
    double rest = rest_of(t, p->stages);
    int each = p->micro * p->chunks;
    for (int s = 0; s < p->stages; s++) {
        f[s] = t->forward[s] / each;
        b[s] = t->backward[s] / each;
    }
    struct pipeline_times times = {.forward_s = f, .backward_s = b};
    struct timetable_entry *e =
        mem_alloc((size_t)(p->stages * timetable_length(p)), sizeof *e);
    double whole = e ? timetable_run(p, &times, e) : -1;
    mem_free(e);
    if (whole <= 0)
        return;
    for (int s = 0; s < p->stages; s++)
        idle += (whole - t->forward[s] - t->backward[s]) / p->stages;
    r->value[METRIC_BUBBLE_TIMETABLE] = idle / (whole + rest);
    r->value[METRIC_STEP_TIMETABLE] = whole + rest;
}

static bool has_slices(const struct result *r)
{
    struct mesh mesh;
    char text[64];
    result_setting(r, "mesh", text, sizeof text);
    return !mesh_read(&mesh, "mesh", text) && mesh_size(&mesh, MESH_TP) > 1;
}

void result_stages(struct result *r, const char *dir)
{
    struct stage_times t = {.step = 0};
    struct pipeline p;
    if (r->stages < 2 || r->stages > PIPELINE_STAGES || plan_of(r, &p) ||
        read_steps(&t, dir))
        return;
    r->value[METRIC_BUBBLE] = t.bubble / t.step;
    r->value[METRIC_BUBBLE_LAW] = timetable_bubble(&p);
    // breakdown.csv does not count joins of slices as forward or backward.
    if (!has_slices(r) && !read_times(&t, r, dir) &&
        t.forward[0] + t.backward[0] > 0)
        run_timetable(r, &p, &t);
}
