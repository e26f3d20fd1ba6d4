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

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char event_mark[] = "{\"ph\": ", event_time[] = "\"ts\": ";

struct sheet { // the events of one lane since training began
    uint64_t began_ns;
    struct span_record *at;
    size_t n, capacity;
};

static void take(void *ctx, const struct span_record *r)
{
    struct sheet *sheet = ctx;
    if (sheet->n < sheet->capacity && r->begin_ns >= sheet->began_ns)
        sheet->at[sheet->n++] = *r;
}

static void count(void *ctx, const struct span_record *r)
{
    (void)r;
    ++*(size_t *)ctx;
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
    span_each(l, count, &sheet->capacity);
    if (!sheet->capacity)
        return 0;
    sheet->at = mem_alloc(sheet->capacity, sizeof *sheet->at);
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

static void begin_event(struct out *o)
{
    fputs(o->any ? ",\n" : "\n", o->f);
    o->any = true;
}

// Writes a time in microseconds, with nanoseconds as decimals.
static void put_time(struct out *o, const char *key, uint64_t ns)
{
    fprintf(o->f, ", \"%s\": %llu.%03u", key, (unsigned long long)(ns / 1000),
            (unsigned)(ns % 1000));
}

static void put_name(struct out *o, const char *what, int tid, const char *name)
{
    begin_event(o);
    fprintf(o->f,
            "%s\"M\", \"name\": \"%s\", \"pid\": %d, \"tid\": %d, "
            "\"args\": {\"name\": \"%s\"}}",
            event_mark, what, o->head->pid, tid, name);
}

static void put_order(struct out *o, const char *what, int tid, int order)
{
    begin_event(o);
    fprintf(o->f,
            "%s\"M\", \"name\": \"%s\", \"pid\": %d, \"tid\": %d, "
            "\"args\": {\"sort_index\": %d}}",
            event_mark, what, o->head->pid, tid, order);
}

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
    case SPAN_READY:
        return "bucket";
    case SPAN_GATHER:
        return "block";
    case SPAN_BUBBLE:
        return "micro";
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
    begin_event(o);
    fprintf(o->f, "%s\"C\", \"name\": \"%s\", \"pid\": %d", event_mark, name,
            o->head->pid);
    put_time(o, "ts", r->begin_ns - o->zero_ns);
    fprintf(o->f, ", \"args\": {\"%s\": %.9g}}", name, r->value);
}

static void put_span(struct out *o, int tid, const struct span_record *r)
{
    begin_event(o);
    fprintf(
        o->f,
        "%s\"X\", \"name\": \"%s\", \"cat\": \"%s\", \"pid\": %d, \"tid\": %d",
        event_mark, span_kind_name(r->kind), category(r->kind), o->head->pid,
        tid);
    put_time(o, "ts", r->begin_ns - o->zero_ns);
    put_time(o, "dur", r->end_ns - r->begin_ns);
    bool carries = r->value > 0;
    if (r->index >= 0 || carries)
        fputs(", \"args\": {", o->f);
    if (r->index >= 0)
        fprintf(o->f, "\"%s\": %d%s", index_name(r), r->index,
                carries ? ", " : "");
    if (carries)
        fprintf(o->f, "\"bytes\": %.0f", r->value);
    fputs(r->index >= 0 || carries ? "}}" : "}", o->f);
}

static void put_lane(struct out *o, int tid, const char *name,
                     const struct sheet *sheet)
{
    put_name(o, "thread_name", tid, name);
    put_order(o, "thread_sort_index", tid, tid);
    for (size_t i = 0; i < sheet->n; i++) {
        if (sheet->at[i].is_counter)
            put_counter(o, &sheet->at[i]);
        else
            put_span(o, tid, &sheet->at[i]);
    }
}

// A kernel on a stream. HTA expects two events for it: the launch on the host's
// thread, and the kernel itself.
struct kernel {
    const char *before, *name, *category;
    uint64_t begin_ns, end_ns;
    int stream;
};

static void put_kernel(struct out *o, const struct kernel *k)
{
    uint64_t begin = k->begin_ns - o->zero_ns;
    o->correlation++;
    begin_event(o);
    fprintf(o->f,
            "%s\"X\", \"cat\": \"cuda_runtime\", \"name\": "
            "\"cudaLaunchKernel\", \"pid\": %d, \"tid\": 1",
            event_mark, o->head->pid);
    put_time(o, "ts", begin);
    put_time(o, "dur", 0);
    fprintf(o->f, ", \"args\": {\"correlation\": %ld}}", o->correlation);
    begin_event(o);
    fprintf(o->f,
            "%s\"X\", \"cat\": \"%s\", \"name\": \"%s%s\", \"pid\": %d, "
            "\"tid\": %d",
            event_mark, k->category, k->before, k->name, o->head->pid,
            k->stream);
    put_time(o, "ts", begin);
    put_time(o, "dur", k->end_ns - k->begin_ns);
    fprintf(o->f,
            ", \"args\": {\"device\": %d, \"stream\": %d, \"correlation\": "
            "%ld}}",
            o->head->pid, k->stream, o->correlation);
}

static void put_span_kernel(struct out *o, int stream,
                            const struct span_record *r)
{
    const struct kernel k = {
        .before = moves_bytes(r->kind) ? "nccl_compat_Kernel:" : "",
        .name = span_kind_name(r->kind),
        .category = "kernel",
        .begin_ns = r->begin_ns,
        .end_ns = r->end_ns,
        .stream = stream,
    };
    put_kernel(o, &k);
}

static void put_profiler_step(struct out *o, const struct span_record *r)
{
    begin_event(o);
    fprintf(o->f,
            "%s\"X\", \"cat\": \"user_annotation\", \"name\": "
            "\"ProfilerStep#%d\", \"pid\": %d, \"tid\": 1",
            event_mark, r->index, o->head->pid);
    put_time(o, "ts", r->begin_ns - o->zero_ns);
    put_time(o, "dur", r->end_ns - r->begin_ns);
    fputs(", \"args\": {}}", o->f);
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

static int put_lanes(struct out *o, const struct spans *s, bool hta)
{
    for (int i = 0; i < spans_nlanes(s); i++) {
        struct sheet sheet;
        const struct span_lane *l = spans_at(s, i);
        if (sheet_open(&sheet, l, spans_began(s)))
            return -1;
        if (hta)
            put_stream(o, i, &sheet);
        else
            put_lane(o, i, span_lane_name(l), &sheet);
        mem_free(sheet.at);
    }
    return 0;
}

// ---- what the GPU did, by stream

static void put_activity(struct out *o, const struct activity_record *r)
{
    const struct kernel k = {
        .before = "",
        .name = r->name,
        .category = r->bytes ? "gpu_memcpy" : "kernel",
        .begin_ns = r->begin_ns,
        .end_ns = r->end_ns,
        .stream = (int)r->stream,
    };
    put_kernel(o, &k);
}

static void put_stream_event(struct out *o, int tid,
                             const struct activity_record *r)
{
    begin_event(o);
    fprintf(
        o->f,
        "%s\"X\", \"name\": \"%s\", \"cat\": \"%s\", \"pid\": %d, \"tid\": %d",
        event_mark, r->name, r->bytes ? "gpu_memcpy" : "kernel", o->head->pid,
        tid);
    put_time(o, "ts", r->begin_ns - o->zero_ns);
    put_time(o, "dur", r->end_ns - r->begin_ns);
    if (r->bytes)
        fprintf(o->f, ", \"args\": {\"bytes\": %llu}",
                (unsigned long long)r->bytes);
    fputs("}", o->f);
}

static void put_device(struct out *o, uint64_t began_ns, bool hta)
{
    const struct activity_record *r = o->head->activity;
    int tid = SPAN_LANES - 1;
    for (size_t i = 0; i < o->head->nactivity; i++, r++) {
        char name[48];
        if (i == 0 || r[-1].stream != r->stream) {
            snprintf(name, sizeof name, "GPU stream %u", r->stream);
            tid++;
            if (!hta) {
                put_name(o, "thread_name", tid, name);
                put_order(o, "thread_sort_index", tid, tid);
            }
        }
        if (r->begin_ns < began_ns)
            continue;
        if (hta)
            put_activity(o, r);
        else
            put_stream_event(o, tid, r);
    }
}

static int write_file(const struct spans *s, const char *path,
                      const struct trace_head *head, bool hta)
{
    struct out o = {.head = head, .zero_ns = spans_zero(s)};
    char next[PARTS_PATH];
    if (text_into(next, sizeof next, "%s.next", path))
        return -1;
    o.f = file_create(next);
    if (!o.f)
        return -1;
    if (hta)
        fprintf(o.f,
                "{\"schemaVersion\": 1, \"distributedInfo\": {\"rank\": %d}, "
                "\"traceEvents\": [",
                head->pid);
    else
        fputs("{\"displayTimeUnit\": \"ms\", \"traceEvents\": [", o.f);
    put_name(&o, "process_name", 0, head->name);
    put_order(&o, "process_sort_index", 0, head->pid);
    int rc = put_lanes(&o, s, hta);
    put_device(&o, spans_began(s), hta);
    fputs("\n]}\n", o.f);
    if (file_close(o.f, path))
        rc = -1;
    if (!rc && rename(next, path))
        rc = fail("%s: %s", path, strerror(errno));
    if (rc)
        unlink(next);
    return rc;
}

int trace_write(const struct spans *s, const char *path,
                const struct trace_head *head)
{
    return write_file(s, path, head, false);
}

int trace_write_hta(const struct spans *s, const char *path,
                    const struct trace_head *head)
{
    return write_file(s, path, head, true);
}

// Copies a line without its comma if it is an event.
static void copy_events(struct parts *p, char *line)
{
    size_t n = strcspn(line, "\n");
    const char *ts = strstr(line, event_time);
    if (strncmp(line, event_mark, sizeof event_mark - 1) ||
        (p->cut && ts &&
         strtod(ts + strlen(event_time), NULL) > p->until_s * 1e6))
        return;
    if (line[n - 1] == ',')
        n--;
    fprintf(p->to, "%s%.*s", p->lines++ ? ",\n" : "\n", (int)n, line);
}

static int merge(const char *out, bool servers, bool cut, double until_s)
{
    struct parts p = {
        .name = "trace",
        .suffix = "json",
        .before = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [",
        .after = "\n]}\n",
        .servers = servers,
        .cut = cut,
        .until_s = until_s,
        .copy = copy_events,
    };
    return parts_merge(&p, out);
}

int trace_merge(const char *out, bool servers)
{
    return merge(out, servers, false, 0);
}

int trace_cut(const char *out, double until_s)
{
    return merge(out, false, true, until_s);
}
