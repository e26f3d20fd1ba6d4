// samples.c - reads util.csv, whose rows are t_s,rank,metric,value.
//
// The time in which a worker computes but has no processor was taken by other
// processes. In each sample it is compute_share - cpu_share. Two things do not
// count: a worker that is slowed down on purpose sleeps while it "computes"
// (slowed_share), and a worker with a GPU waits for it.

#include "lockstep/samples.h"

#include "base/base.h"
#include "config/config.h"
#include "lockstep/csv.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

struct mean {
    double sum;
    int n;
};

struct pass {
    struct samples *out;
    struct mean cpu, switches, gpu_util, gpu_power;
    const char *t, *rank; // of the sample being read
    double computing;     // its compute_share, without slowed_share
    double computed, taken;
    bool gpu;
};

static void add(struct mean *m, double v)
{
    m->sum += v;
    m->n++;
}

static double value_of(const struct mean *m)
{
    return m->n ? m->sum / m->n : NAN;
}

static void take_worker(struct pass *p, const char *metric, double v)
{
    struct samples *s = p->out;
    p->gpu |= !strncmp(metric, "gpu_", 4);
    if (!strcmp(metric, "compute_share")) {
        p->computing = v;
    } else if (!strcmp(metric, "slowed_share")) {
        p->computing -= v;
    } else if (!strcmp(metric, "cpu_share")) {
        add(&p->cpu, v);
        p->computed += p->computing;
        p->taken += fmax(0, p->computing - v);
    } else if (!strcmp(metric, "resident_bytes")) {
        s->worker_bytes = fmax(s->worker_bytes, v);
    } else if (!strcmp(metric, "involuntary_switches_per_s")) {
        add(&p->switches, v);
    } else if (!strcmp(metric, "gpu_util_share")) {
        add(&p->gpu_util, v);
    } else if (!strcmp(metric, "gpu_power_w")) {
        add(&p->gpu_power, v);
    } else if (!strcmp(metric, "gpu_memory_bytes")) {
        s->gpu_bytes = fmax(s->gpu_bytes, v);
    }
}

static void take(struct pass *p, const struct csv *c, int row, const int col[4])
{
    const char *t = csv_text(c, row, col[0]), *rank = csv_text(c, row, col[1]);
    const char *metric = csv_text(c, row, col[2]);
    double v = csv_number(c, row, col[3]);
    if (*rank == 's') {
        if (!strcmp(metric, "resident_bytes"))
            p->out->server_bytes = fmax(p->out->server_bytes, v);
        return;
    }
    if (!p->t || strcmp(t, p->t) || strcmp(rank, p->rank))
        p->computing = 0;
    p->t = t;
    p->rank = rank;
    take_worker(p, metric, v);
}

void samples_read(struct samples *s, const char *dir)
{
    char path[CONFIG_PATH];
    struct csv c;
    struct pass p = {.out = s};
    *s = (struct samples){NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    if (text_into(path, sizeof path, "%s/util.csv", dir) || csv_open(&c, path))
        return;
    const int col[] = {csv_column(&c, "t_s"), csv_column(&c, "rank"),
                       csv_column(&c, "metric"), csv_column(&c, "value")};
    for (int i = 0; i < c.nrows; i++)
        take(&p, &c, i, col);
    s->cpu_share = value_of(&p.cpu);
    s->switches_per_s = value_of(&p.switches);
    s->gpu_util = value_of(&p.gpu_util);
    s->gpu_power_w = value_of(&p.gpu_power);
    if (p.computed > 0 && !p.gpu)
        s->taken_share = p.taken / p.computed;
    csv_close(&c);
}
