// trace.c - writes one event on each line, so that files can be merged line by
// line.
//
// Readers expect the events of a thread to nest, and parents before children.
// So a lane is sorted by begin, longest first. Times in microseconds have three
// decimals, so events that nest in the records also nest in the file. Events
// that began before training are left out: Perfetto would drop events of
// negative time.

#include "telemetry/trace.h"

#include "base/base.h"
#include "base/file.h"
#include "telemetry/span.h"
#include "telemetry/trace_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char event_mark[] = "{\"ph\": ", event_time[] = "\"ts\": ";

struct sheet { // the events of one lane since training began
    uint64_t began_ns;
    struct span_record *at;
    size_t n;
};

static void take(void *ctx, const struct span_record *r)
{
    struct sheet *sheet = ctx;
    if (r->begin_ns >= sheet->began_ns)
        sheet->at[sheet->n++] = *r;
}

static int by_begin(const void *a, const void *b)
{
    const struct span_record *x = a, *y = b;
    if (x->begin_ns != y->begin_ns)
        return x->begin_ns < y->begin_ns ? -1 : 1;
    if (x->end_ns != y->end_ns)
        return x->end_ns > y->end_ns ? -1 : 1;
    return (x->depth > y->depth) - (x->depth < y->depth);
}

static int sheet_open(struct sheet *sheet, const struct span_lane *l,
                      uint64_t began_ns)
{
    *sheet = (struct sheet){.began_ns = began_ns};
    sheet->at = mem_alloc(span_most(l), sizeof *sheet->at);
    if (!sheet->at)
        return -1;
    span_each(l, take, sheet);
    qsort(sheet->at, sheet->n, sizeof *sheet->at, by_begin);
    return 0;
}

struct out {
    FILE *f;
    const struct trace_head *head;
    uint64_t zero_ns;
    bool any; // an event was written, so the next needs a comma
    long correlation;
};

// Begins an event, whose name has two parts; its category may be NULL.
static void begin_event(struct out *o, char phase, const char *before,
                        const char *name, const char *category)
{
    fprintf(o->f, "%s%s\"%c\", \"name\": \"%s%s\"", o->any ? ",\n" : "\n",
            event_mark, phase, before, name);
    if (category)
        fprintf(o->f, ", \"cat\": \"%s\"", category);
    fprintf(o->f, ", \"pid\": %d", o->head->pid);
    o->any = true;
}

// Writes a time in microseconds, with nanoseconds as decimals.
static void put_time(struct out *o, const char *key, uint64_t ns)
{
    fprintf(o->f, ", \"%s\": %llu.%03u", key, (unsigned long long)(ns / 1000),
            (unsigned)(ns % 1000));
}

// The name of a process or of a thread, and its place among the others.
static void put_labels(struct out *o, const char *what, int tid,
                       const char *name, int order)
{
    begin_event(o, 'M', what, "_name", NULL);
    fprintf(o->f, ", \"tid\": %d, \"args\": {\"name\": \"%s\"}}", tid, name);
    begin_event(o, 'M', what, "_sort_index", NULL);
    fprintf(o->f, ", \"tid\": %d, \"args\": {\"sort_index\": %d}}", tid, order);
}

// A span, or what a GPU did.
struct event {
    const char *before, *name, *category;
    int tid;
    uint64_t begin_ns, end_ns;
};

// Writes all of an event but its arguments.
static void put_event(struct out *o, const struct event *e)
{
    begin_event(o, 'X', e->before, e->name, e->category);
    fprintf(o->f, ", \"tid\": %d", e->tid);
    put_time(o, "ts", e->begin_ns - o->zero_ns);
    put_time(o, "dur", e->end_ns - e->begin_ns);
}

// Writes an event with an index, unless that is -1, and the bytes that it
// moved, unless these are 0.
static void put_moving(struct out *o, const struct event *e, const char *label,
                       int index, double bytes)
{
    put_event(o, e);
    if (index >= 0 || bytes > 0)
        fputs(", \"args\": {", o->f);
    if (index >= 0)
        fprintf(o->f, "\"%s\": %d%s", label, index, bytes > 0 ? ", " : "");
    if (bytes > 0)
        fprintf(o->f, "\"bytes\": %.0f", bytes);
    fputs(index >= 0 || bytes > 0 ? "}}" : "}", o->f);
}

// Writes a kernel on a stream. HTA expects two events for it: the launch on the
// host's thread, and the kernel itself.
static void put_kernel(struct out *o, const struct event *e)
{
    const struct event launch = {.before = "",
                                 .name = "cudaLaunchKernel",
                                 .category = "cuda_runtime",
                                 .tid = 1,
                                 .begin_ns = e->begin_ns,
                                 .end_ns = e->begin_ns};
    o->correlation++;
    put_event(o, &launch);
    fprintf(o->f, ", \"args\": {\"correlation\": %ld}}", o->correlation);
    put_event(o, e);
    fprintf(o->f,
            ", \"args\": {\"device\": %d, \"stream\": %d, \"correlation\": "
            "%ld}}",
            o->head->pid, e->tid, o->correlation);
}

// ---- what the threads did, by lane

// `index` is a micro-batch in the outer spans of forward and backward, and a
// layer in the spans inside them.
static const char *index_name(const struct span_record *r)
{
    bool outer = r->depth <= 1;
    switch ((enum span_kind)r->kind) {
    case SPAN_STEP:
    case SPAN_EVALUATE:
    case SPAN_CHECKPOINT:
        return "step";
    case SPAN_FORWARD:
    case SPAN_BACKWARD:
        return outer ? "micro" : "layer";
    case SPAN_BUBBLE:
        return "micro";
    case SPAN_READY:
        return "bucket";
    case SPAN_GATHER:
        return "block";
    case SPAN_COMPRESS:
        return "unit";
    case SPAN_JOIN:
        return "join";
    default:
        return "part";
    }
}

static bool moves_bytes(enum span_kind kind)
{
    return kind == SPAN_SEND || kind == SPAN_RECEIVE || kind == SPAN_ADD;
}

static const char *category(enum span_kind kind)
{
    if (moves_bytes(kind))
        return "communication";
    if (kind == SPAN_FORWARD || kind == SPAN_BACKWARD || kind == SPAN_UPDATE)
        return "compute";
    return "loop";
}

static void put_counter(struct out *o, const struct span_record *r)
{
    const char *name = span_counter_name(r->kind);
    begin_event(o, 'C', "", name, NULL);
    put_time(o, "ts", r->begin_ns - o->zero_ns);
    fprintf(o->f, ", \"args\": {\"%s\": %.9g}}", name, r->value);
}

static struct event span_event(const struct span_record *r, int tid)
{
    return (struct event){.before = "",
                          .name = span_kind_name(r->kind),
                          .category = category(r->kind),
                          .tid = tid,
                          .begin_ns = r->begin_ns,
                          .end_ns = r->end_ns};
}

static void put_lane(struct out *o, int tid, const char *name,
                     const struct sheet *sheet)
{
    put_labels(o, "thread", tid, name, tid);
    for (size_t i = 0; i < sheet->n; i++) {
        const struct span_record *r = &sheet->at[i];
        if (r->is_counter) {
            put_counter(o, r);
            continue;
        }
        const struct event e = span_event(r, tid);
        put_moving(o, &e, index_name(r), r->index, r->value);
    }
}

static void put_profiler_step(struct out *o, const struct span_record *r)
{
    char name[32];
    struct event e = span_event(r, 1);
    snprintf(name, sizeof name, "ProfilerStep#%d", r->index);
    e.name = name;
    e.category = "user_annotation";
    put_event(o, &e);
    fputs(", \"args\": {}}", o->f);
}

static void put_span_kernel(struct out *o, int stream,
                            const struct span_record *r)
{
    struct event e = span_event(r, stream);
    if (moves_bytes(r->kind))
        e.before = "nccl_compat_Kernel:";
    e.category = "kernel";
    put_kernel(o, &e);
}

// Kernels of a stream do not nest, so only innermost spans become kernels.
static void put_stream(struct out *o, int lane, const struct sheet *sheet)
{
    for (size_t i = 0; i < sheet->n; i++) {
        const struct span_record *r = &sheet->at[i];
        bool leaf = i + 1 == sheet->n || r[1].begin_ns >= r->end_ns;
        if (!r->is_counter && r->kind == SPAN_STEP)
            put_profiler_step(o, r);
        else if (!r->is_counter && leaf && !o->head->nactivity &&
                 strcmp(category(r->kind), "loop"))
            put_span_kernel(o, 7 + lane, r);
    }
}

static int put_lanes(struct out *o, const struct spans *s)
{
    for (int i = 0; i < spans_nlanes(s); i++) {
        struct sheet sheet;
        const struct span_lane *l = spans_at(s, i);
        if (sheet_open(&sheet, l, spans_began(s)))
            return -1;
        if (o->head->hta)
            put_stream(o, i, &sheet);
        else
            put_lane(o, i, span_lane_name(l), &sheet);
        mem_free(sheet.at);
    }
    return 0;
}

// ---- what the GPU did, by stream

static void put_device(struct out *o, uint64_t began_ns)
{
    const struct activity_record *r = o->head->activity;
    bool hta = o->head->hta;
    int tid = SPAN_LANES - 1;
    for (size_t i = 0; i < o->head->nactivity; i++, r++) {
        char name[48];
        if (i == 0 || r[-1].stream != r->stream) {
            snprintf(name, sizeof name, "GPU stream %u", r->stream);
            tid++;
            if (!hta)
                put_labels(o, "thread", tid, name, tid);
        }
        if (r->begin_ns < began_ns)
            continue;
        const struct event e = {.before = "",
                                .name = r->name,
                                .category = r->bytes ? "gpu_memcpy" : "kernel",
                                .tid = hta ? (int)r->stream : tid,
                                .begin_ns = r->begin_ns,
                                .end_ns = r->end_ns};
        if (hta)
            put_kernel(o, &e);
        else
            put_moving(o, &e, "", -1, (double)r->bytes);
    }
}

int trace_write(const struct spans *s, const char *path,
                const struct trace_head *head)
{
    struct out o = {.head = head, .zero_ns = spans_zero(s)};
    o.f = file_next(path);
    if (!o.f)
        return -1;
    if (head->hta)
        fprintf(o.f,
                "{\"schemaVersion\": 1, \"distributedInfo\": {\"rank\": %d}, "
                "\"traceEvents\": [",
                head->pid);
    else
        fputs("{\"displayTimeUnit\": \"ms\", \"traceEvents\": [", o.f);
    put_labels(&o, "process", 0, head->name, head->pid);
    int rc = put_lanes(&o, s);
    put_device(&o, spans_began(s));
    fputs("\n]}\n", o.f);
    return file_finish(o.f, path, rc);
}

// Copies a line without its comma if it is an event.
static void copy_events(struct parts *p, char *line)
{
    size_t n = strcspn(line, "\n");
    const char *ts = strstr(line, event_time);
    if (strncmp(line, event_mark, sizeof event_mark - 1) ||
        (ts && strtod(ts + strlen(event_time), NULL) > p->until_s * 1e6))
        return;
    if (line[n - 1] == ',')
        n--;
    fprintf(p->to, "%s%.*s", p->lines++ ? ",\n" : "\n", (int)n, line);
}

static int merge(const char *out, bool servers, double until_s)
{
    struct parts p = {
        .name = "trace",
        .suffix = "json",
        .before = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [",
        .after = "\n]}\n",
        .servers = servers,
        .until_s = until_s,
        .copy = copy_events,
    };
    return parts_merge(&p, out);
}

int trace_merge(const char *out, bool servers)
{
    return merge(out, servers, INFINITY);
}

int trace_cut(const char *out, double until_s)
{
    return merge(out, false, until_s);
}
