// gpm.c - calls the functions nvmlGpm..() of libnvidia-ml.so.1, and keeps the
// last two samples.
//
// Types and numbers are those of NVIDIA's nvml.h. The length of the array of
// metrics depends on the version of the library. The library reads only `count`
// of them, so this longer array is right for every version.

#include "telemetry/gpm.h"

#include "base/base.h"
#include "base/library.h"

#include <math.h>

enum { VERSION = 1, MAX_METRICS = 512 };

enum { SM, OCCUPANCY, TENSOR, DRAM, NVLINK_IN, NVLINK_OUT, METRICS };
static const unsigned ids[METRICS] = {2, 3, 5, 10, 60, 61}; // NVML_GPM_METRIC_*

struct metric { // nvmlGpmMetric_t
    unsigned id;
    int status;
    double value;
    const char *names[3];
};

struct request { // nvmlGpmMetricsGet_t
    unsigned version, count;
    void *before, *after;
    struct metric metrics[MAX_METRICS];
};

struct support { // nvmlGpmSupport_t
    unsigned version, yes;
};

struct gpm {
    void *gpu;
    void *samples[2];
    int taken; // samples so far; the newest is samples[(taken - 1) % 2]
    int (*query)(void *gpu, struct support *out);
    int (*alloc)(void **sample);
    int (*release)(void *sample);
    int (*take)(void *gpu, void *sample);
    int (*get)(struct request *r);
    struct request request;
};

static int start(struct gpm *g, void *library)
{
    struct support support = {.version = VERSION};
    if (library_find(library, "nvmlGpmQueryDeviceSupport", &g->query) ||
        library_find(library, "nvmlGpmSampleAlloc", &g->alloc) ||
        library_find(library, "nvmlGpmSampleFree", &g->release) ||
        library_find(library, "nvmlGpmSampleGet", &g->take) ||
        library_find(library, "nvmlGpmMetricsGet", &g->get))
        return -1;
    if (g->query(g->gpu, &support) || !support.yes)
        return -1;
    return g->alloc(&g->samples[0]) || g->alloc(&g->samples[1]) ? -1 : 0;
}

struct gpm *gpm_open(void *library, void *gpu)
{
    struct gpm *g = mem_alloc(1, sizeof *g);
    if (!g)
        return NULL;
    g->gpu = gpu;
    if (start(g, library))
        gpm_close(&g);
    return g;
}

// Computes the metrics of the time between the two samples. False if there are
// none.
static bool ask(struct gpm *g)
{
    struct request *r = &g->request;
    r->version = VERSION;
    r->count = METRICS;
    r->before = g->samples[g->taken % 2];
    r->after = g->samples[(g->taken - 1) % 2];
    for (int i = 0; i < METRICS; i++)
        r->metrics[i] = (struct metric){.id = ids[i]};
    return g->get(r) == 0;
}

static double value(const struct gpm *g, int i, double unit)
{
    const struct metric *m = &g->request.metrics[i];
    return m->status ? NAN : m->value * unit;
}

void gpm_read(struct gpm *g, struct gpm_sample *out)
{
    const double percent = 0.01, mib = 1048576;
    *out = (struct gpm_sample){NAN, NAN, NAN, NAN, NAN, NAN};
    if (!g || g->take(g->gpu, g->samples[g->taken % 2]))
        return;
    if (++g->taken < 2 || !ask(g))
        return;
    out->sm_share = value(g, SM, percent);
    out->occupancy = value(g, OCCUPANCY, percent);
    out->tensor_share = value(g, TENSOR, percent);
    out->dram_share = value(g, DRAM, percent);
    out->nvlink_in_bps = value(g, NVLINK_IN, mib);
    out->nvlink_out_bps = value(g, NVLINK_OUT, mib);
}

void gpm_close(struct gpm **g)
{
    if (!*g)
        return;
    for (int i = 0; i < 2; i++)
        if ((*g)->samples[i])
            (*g)->release((*g)->samples[i]);
    mem_free(*g);
    *g = NULL;
}
