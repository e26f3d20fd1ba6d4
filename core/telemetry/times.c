// times.c - computes how long bytes moved, and how long of that nothing was
// computed.
//
// Every lane contributes edges: +1 where an interval begins, -1 where it ends.
// A sweep over all edges, sorted by time, knows at each moment how many
// intervals are open.

#include "telemetry/times.h"

#include "base/base.h"
#include "base/file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH = 1200 };

struct edge {
    uint64_t at_ns;
    // +1 or -1 for an interval of that kind, else 0.
    int comm, compute;
    int gather; // within a gather nothing is computed
};

struct edges {
    struct edge *at;
    size_t n;
    uint64_t oldest_ns; // of the lane being read; UINT64_MAX: no record
};

static const struct edge opens[SPAN_KINDS] = {
    [SPAN_SEND] = {.comm = 1},        [SPAN_RECEIVE] = {.comm = 1},
    [SPAN_ADD] = {.comm = 1},         [SPAN_FORWARD] = {.compute = 1},
    [SPAN_BACKWARD] = {.compute = 1}, [SPAN_UPDATE] = {.compute = 1},
    [SPAN_EVALUATE] = {.compute = 1}, [SPAN_SLOWED] = {.compute = 1},
    [SPAN_GATHER] = {.gather = 1}, // always inside a span that computes
};

static void add_edges(void *ctx, const struct span_record *r)
{
    struct edges *e = ctx;
    const struct edge *o = &opens[r->is_counter ? SPAN_OTHER : r->kind];
    if (r->begin_ns < e->oldest_ns)
        e->oldest_ns = r->begin_ns;
    if (!o->comm && !o->compute && !o->gather)
        return;
    e->at[e->n++] = (struct edge){r->begin_ns, o->comm, o->compute, o->gather};
    e->at[e->n++] = (struct edge){r->end_ns, -o->comm, -o->compute, -o->gather};
}

static int by_time(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;
    return (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns);
}

// Computes the times from `from_ns` on. From then on every lane has all its
// records.
static void sweep(const struct edges *e, uint64_t from_ns, struct times *t)
{
    int comm = 0, compute = 0, gather = 0;
    uint64_t comm_ns = 0, exposed_ns = 0, last = from_ns;
    for (size_t i = 0; i < e->n; i++) {
        uint64_t at = e->at[i].at_ns;
        if (at > last) {
            comm_ns += comm ? at - last : 0;
            exposed_ns += comm && (!compute || gather) ? at - last : 0;
            last = at;
        }
        comm += e->at[i].comm;
        compute += e->at[i].compute;
        gather += e->at[i].gather;
    }
    t->comm_s = (double)comm_ns * 1e-9;
    t->exposed_s = (double)exposed_ns * 1e-9;
    t->kept_s = (double)(last - from_ns) * 1e-9;
}

int times_of(const struct spans *s, struct times *out)
{
    struct edges e = {0};
    uint64_t totals[SPAN_KINDS], from_ns = spans_began(s),
                                 first_ns = UINT64_MAX;
    *out = (struct times){0};
    if (!s)
        return 0;
    spans_since_began(s, totals);
    for (int k = 0; k < SPAN_KINDS; k++)
        out->seconds[k] = (double)totals[k] * 1e-9;
    int lanes = spans_nlanes(s);
    size_t most = 0;
    for (int i = 0; i < lanes; i++)
        most += 2 * span_most(spans_at(s, i));
    e.at = mem_alloc(most, sizeof *e.at);
    if (!e.at)
        return -1;
    for (int i = 0; i < lanes; i++) {
        e.oldest_ns = UINT64_MAX;
        uint64_t lost = span_each(spans_at(s, i), add_edges, &e);
        if (e.oldest_ns < first_ns)
            first_ns = e.oldest_ns;
        if (lost && e.oldest_ns < UINT64_MAX && e.oldest_ns > from_ns)
            from_ns = e.oldest_ns;
    }
    qsort(e.at, e.n, sizeof *e.at, by_time);
    sweep(&e, from_ns > first_ns ? from_ns : first_ns, out);
    mem_free(e.at);
    return 0;
}

// The part of the time `held` (waiting or moving bytes) in which bytes moved.
// Its share is measured on the part of the run whose records are kept, and
// taken for all of the run. All of `held` if no lane records communication.
static double exposed_of(const struct times *t, double held)
{
    double all = 0;
    for (int k = 0; k < SPAN_KINDS; k++)
        all += t->seconds[k];
    if (t->comm_s <= 0 || t->kept_s <= 0)
        return held;
    double share = held > 0 ? t->exposed_s / t->kept_s * all / held : 0;
    return share < 1 ? held * share : held;
}

void times_each(const char *out, times_visit *fn, void *ctx)
{
    char path[PATH], line[256], who[16], kind[16];
    double seconds;
    int steps;
    if (text_into(path, sizeof path, "%s/breakdown.csv", out))
        return;
    FILE *f = access(path, F_OK) ? NULL : file_open(path);
    while (f && file_line(line, sizeof line, f))
        if (sscanf(line, "%15[^,],%15[^,],%lf,%*f,%d", who, kind, &seconds,
                   &steps) == 4)
            fn(ctx, who, kind, seconds, steps);
    if (f)
        fclose(f);
}

struct row {
    const char *kind;
    double seconds;
};

enum { HOST_ROWS = 11, GPU_ROWS = 4, ROWS = HOST_ROWS + GPU_ROWS };

// The times of a process, and those of the run's earlier parts.
struct sum {
    struct row *rows; // ROWS of them
    const char *who;
    int steps; // of the earlier parts
};

static void add_earlier(void *ctx, const char *who, const char *kind,
                        double seconds, int steps)
{
    struct sum *s = ctx;
    if (strcmp(s->who, who))
        return;
    s->steps = steps;
    for (int i = 0; i < ROWS; i++)
        s->rows[i].seconds += strcmp(s->rows[i].kind, kind) ? 0 : seconds;
}

int times_write(const struct times *t, const char *out, const char *who,
                bool goes_on)
{
    const double *s = t->seconds;
    double held = s[SPAN_READY] + s[SPAN_GATHER] + s[SPAN_WAIT] + s[SPAN_SEND] +
                  s[SPAN_RECEIVE] + s[SPAN_ADD];
    double exposed = exposed_of(t, held);
    double parts = s[SPAN_BUBBLE] + s[SPAN_JOIN]; // no lane has their messages
    struct row rows[ROWS] = {
        {"data", s[SPAN_DATA]},
        {"forward", s[SPAN_FORWARD]},
        {"backward", s[SPAN_BACKWARD]},
        {"exposed", exposed},
        {"compress", s[SPAN_COMPRESS]},
        {"update", s[SPAN_UPDATE]},
        {"wait", held - exposed + parts},
        {"checkpoint", s[SPAN_CHECKPOINT]},
        {"evaluate", s[SPAN_EVALUATE]},
        {"slowed", s[SPAN_SLOWED]},
        {"other", s[SPAN_OTHER] + s[SPAN_STEP]},
        {"gpu_compute", t->gpu.compute},
        {"gpu_comm", t->gpu.comm},
        {"gpu_down", t->gpu.down},
        {"gpu_up", t->gpu.up},
    };
    char path[PATH];
    double all = 0;
    if (text_into(path, sizeof path, "%s/breakdown.%s.csv", out, who))
        return -1;
    struct sum sum = {.rows = rows, .who = who};
    if (goes_on)
        times_each(out, add_earlier, &sum);
    int steps = t->steps + sum.steps;
    for (int i = 0; i < HOST_ROWS; i++)
        all += rows[i].seconds;
    int n = rows[HOST_ROWS].seconds > 0 ? ROWS : HOST_ROWS;
    FILE *f = file_create(path);
    if (!f)
        return -1;
    fputs("rank,kind,seconds,share,steps\n", f);
    for (int i = 0; i < n; i++)
        fprintf(f, "%s,%s,%.6f,%.6f,%d\n", who, rows[i].kind, rows[i].seconds,
                all > 0 ? rows[i].seconds / all : 0, steps);
    return file_close(f, path);
}
