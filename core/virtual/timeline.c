// timeline.c - writes the messages of a run as Trace Event JSON, which Perfetto
// and chrome://tracing draw. The trace.json of a real run has the same format.

#include "virtual/virtual.h"

#include "base/base.h"

#include <errno.h>
#include <string.h>

static void name_row(FILE *f, int rank, int row, const char *name)
{
    fprintf(f,
            "{\"ph\": \"M\", \"pid\": %d, \"tid\": %d, \"name\": "
            "\"thread_name\", \"args\": {\"name\": \"%s\"}},\n",
            rank, row, name);
}

// Writes one bar, as long as the message holds its links: in the sender's row
// "out" from its begin on, or in the receiver's row "in" until its arrival.
static void bar(FILE *f, const struct virtual_result *v, size_t i, bool out,
                const struct virtual_telling *t)
{
    const struct virtual_message *m = &v->messages[i];
    double length_s = m->end_s - m->begin_s;
    double begin_s = out ? m->begin_s : m->arrived_s - length_s;
    fprintf(f,
            "{\"ph\": \"X\", \"pid\": %d, \"tid\": %d, \"ts\": %.3f, \"dur\": "
            "%.3f, \"cat\": \"communication\", \"name\": \"%s %d\", "
            "\"args\": {\"bytes\": %zu, \"message\": %zu, \"%s\": %d",
            out ? m->from : m->to, out ? 0 : 1, begin_s * 1e6, length_s * 1e6,
            out ? "to" : "from", out ? m->to : m->from, m->bytes, i,
            out ? "to" : "from", out ? m->to : m->from);
    if (m->is_free)
        fprintf(f, ", \"free\": true");
    if (t && t->message && out)
        t->message(t->ctx, f, i);
    fprintf(f, "}},\n");
}

int virtual_trace(const struct virtual_result *v,
                  const struct virtual_telling *telling, FILE *f)
{
    fprintf(f, "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n");
    for (int r = 0; r < v->ranks; r++) {
        char name[32];
        snprintf(name, sizeof name, "rank %d", r);
        fprintf(f,
                "{\"ph\": \"M\", \"pid\": %d, \"name\": \"process_name\", "
                "\"args\": {\"name\": \"%s\"}},\n",
                r,
                telling && telling->rank ? telling->rank(telling->ctx, r, name)
                                         : name);
        name_row(f, r, 0, "out");
        name_row(f, r, 1, "in");
    }
    for (size_t i = 0; i < v->n_messages; i++) {
        if (v->messages[i].is_envelope)
            continue;
        bar(f, v, i, true, telling);
        bar(f, v, i, false, telling);
    }
    fprintf(f, "{\"ph\": \"M\", \"pid\": 0, \"name\": \"process_sort_index\", "
               "\"args\": {\"sort_index\": 0}}\n]}\n");
    return fflush(f) ? fail("trace: %s", strerror(errno)) : 0;
}
