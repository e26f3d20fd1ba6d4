// idle.c - computes how long the stages of a run waited for each other, and how
// long they would have waited by the timetable.

#include "train/idle.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "config/mesh.h"
#include "telemetry/times.h"
#include "train/trainer.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// Seconds of a step in each stage, means over its replicas.
struct stage_times {
    const struct trainer *t;
    double forward[PIPELINE_STAGES], backward[PIPELINE_STAGES];
};

static void add_row(void *ctx, const char *who, const char *kind,
                    double seconds, int steps)
{
    struct stage_times *all = ctx;
    const struct trainer *t = all->t;
    if (!isdigit((unsigned char)*who) || atoi(who) >= t->cluster->world)
        return;
    int stage = mesh_at(&t->run.mesh, atoi(who), MESH_PP);
    double each = seconds / steps / t->members->world;
    if (!strcmp(kind, "forward"))
        all->forward[stage] += each;
    if (!strcmp(kind, "backward"))
        all->backward[stage] += each;
}

// Returns the mean over all stages of the seconds in which they compute.
static double busy_of(const struct stage_times *all, int stages)
{
    double busy = 0;
    for (int s = 0; s < stages; s++)
        busy += (all->forward[s] + all->backward[s]) / stages;
    return busy;
}

// Returns the seconds of the timetable; 0 or less: it has none.
static double run_timetable(const struct pipeline *p,
                            const struct stage_times *all)
{
    double f[PIPELINE_STAGES], b[PIPELINE_STAGES];
    int each = p->micro * p->chunks;
    for (int s = 0; s < p->stages; s++) {
        f[s] = all->forward[s] / each;
        b[s] = all->backward[s] / each;
    }
    struct pipeline_times times = {.forward_s = f, .backward_s = b};
    struct timetable_entry *e =
        mem_alloc((size_t)(p->stages * timetable_length(p)), sizeof *e);
    double whole = e ? timetable_run(p, &times, e) : -1;
    mem_free(e);
    return whole;
}

void idle_of(const struct trainer *t, double step_s, double bubble_s,
             struct idle *out)
{
    struct stage_times all = {.t = t};
    *out = (struct idle){bubble_s / step_s, NAN, NAN};
    if (t->slices)
        return;
    times_each(t->run.out, add_row, &all);
    double busy = busy_of(&all, t->plan.stages);
    double whole = busy > 0 ? run_timetable(&t->plan, &all) : -1;
    // What the timetable does not cover: the update, the exchange among
    // replicas, reading data.
    double rest = fmax(0, step_s - bubble_s - busy);
    if (whole <= 0)
        return;
    out->timetable_bubble = (whole - busy) / (whole + rest);
    out->timetable_s = whole + rest;
}
