// explain_runs.c - plays one step of each of several runs on one clock.
//
// Each run becomes a panel of the page. It has the step's events in trace.json,
// the bytes in steps.csv, and the bytes that the law predicts.

#include "lockstep/explain_runs.h"

#include "explain/page.h"
#include "lockstep/csv.h"
#include "lockstep/explain_svg.h"
#include "lockstep/explain_trace.h"

#include "base/base.h"
#include "base/file.h"
#include "config/backends.h"
#include "config/config.h"
#include "config/keys.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_RUNS = 12 };

struct question {
    int step; // 0: the step of median length
    char out[CONFIG_PATH], svg[CONFIG_PATH];
};

#define AT(member) offsetof(struct question, member), false

static const struct key rows[] = {
    {"run", "step", "0", KEY_INT, AT(step), .min = 1, .max = 1 << 30,
     .zero = "the step of median length"},
    {"run", "out", "explain.html", KEY_TEXT, AT(out), .unit = "FILE"},
    {"run", "svg", "", KEY_TEXT, AT(svg), .unit = "FILE"},
};

static const struct key_table keys = {rows, sizeof rows / sizeof *rows,
                                      "lockstep explain --help"};

// ---- a panel

struct copy {
    const struct panel *panel;
    FILE *f;
    bool any;
};

// Prints the parsed event again. So the page gets what was checked.
static int copy_event(void *ctx, const cJSON *event)
{
    struct copy *c = ctx;
    const struct panel *p = c->panel;
    char kind = *event_word(event, "ph");
    double begin = event_number(event, "ts"),
           end = begin + event_number(event, "dur");
    if (kind != 'M' &&
        (kind != 'X' || !(begin < p->end_us) || !(end > p->begin_us)))
        return 0;
    char *text = cJSON_PrintUnformatted(event);
    if (!text)
        return fail("memory: none left to print an event");
    fprintf(c->f, "%s", c->any ? ",\n" : "\n");
    c->any = true;
    for (const char *at = text; *at; at++)
        if (*at == '<')
            fputs("\\u003c", c->f);
        else
            fputc(*at, c->f);
    free(text);
    return 0;
}

static void put_bytes(const struct panel *p, const struct csv *steps, FILE *f)
{
    int rank = csv_column(steps, "rank"), step = csv_column(steps, "step");
    int out = csv_column(steps, "bytes_tx"), in = csv_column(steps, "bytes_rx");
    int n = 0;
    fprintf(f, ",\n\"total\": {");
    for (int i = 0;
         rank >= 0 && step >= 0 && out >= 0 && in >= 0 && i < steps->nrows; i++)
        if ((int)csv_number(steps, i, step) == p->step)
            fprintf(f, "%s\"%d\": {\"out\": %.0f, \"in\": %.0f}",
                    n++ ? ", " : "", (int)csv_number(steps, i, rank),
                    csv_number(steps, i, out), csv_number(steps, i, in));
    fprintf(f, "}");
}

static void put_law(const struct panel *p, FILE *f)
{
    const struct backend *row = p->run.row;
    double bytes = p->run.law_bytes_tx;
    // With every= the law gives the mean of all steps. No single step has it.
    if (!(bytes > 0) || (row && row->apart))
        return;
    fprintf(f, ",\n\"law\": {");
    for (int r = 0; r < p->run.world; r++)
        fprintf(f, "%s\"%d\": {\"out\": %.0f, \"in\": %.0f}", r ? ", " : "", r,
                bytes, bytes);
    fprintf(f, "}");
}

static int put_panel(const struct panel *p, FILE *f)
{
    const struct recorded *r = &p->run;
    struct copy copy = {p, f, false};
    struct csv steps;
    char path[CONFIG_PATH], name[128], text[512];
    if (text_into(path, sizeof path, "%s/steps.csv", p->folder) ||
        csv_open(&steps, path))
        return -1;
    fprintf(f, "{\"name\": ");
    panel_name(p, name);
    page_string(f, name);
    text_into(text, sizeof text, "%s, step %d: %.2f ms, measured%s.", p->folder,
              p->step, (p->end_us - p->begin_us) * 1e-3,
              r->oversubscribed ? " with more workers than cores" : "");
    fprintf(f, ", \"note\": ");
    page_string(f, text);
    if (r->row)
        fprintf(f, ", \"colour\": \"%s\"", r->row->colour);
    fprintf(f, ", \"step\": %d, \"begin_us\": %.3f, \"end_us\": %.3f", p->step,
            p->begin_us, p->end_us);
    put_bytes(p, &steps, f);
    put_law(p, f);
    csv_close(&steps);
    fprintf(f, ",\n\"trace\": {\"traceEvents\": [");
    int rc = trace_each(p->folder, copy_event, &copy);
    fprintf(f, "]}}");
    return rc;
}

static int write_page(const struct panel *panels, int n, const char *path)
{
    FILE *f = page_open(path);
    if (!f)
        return -1;
    int rc = 0;
    fprintf(f, "{\"title\": \"One step, on one clock\", \"lead\": [");
    page_string(f, "Each bar is a span of time that a thread recorded while "
                   "it trained. Communication is hidden where the worker "
                   "computes at the same time, and exposed where it does "
                   "not.");
    fprintf(f, "],\n\"panels\": [");
    for (int i = 0; !rc && i < n; i++) {
        fprintf(f, "%s", i ? ",\n" : "");
        rc = put_panel(&panels[i], f);
    }
    fprintf(f, "]}");
    return page_close(f, path) || rc ? -1 : 0;
}

// ---- the command

bool explain_runs_are_asked(const char *name)
{
    char path[CONFIG_PATH];
    return !text_into(path, sizeof path, "%s/run.json", name) &&
           access(path, R_OK) == 0;
}

int explain_runs(int nwords, char **words)
{
    struct panel panels[MOST_RUNS] = {{0}};
    struct question q;
    int n = 0, rc = 0;
    while (n < nwords && explain_runs_are_asked(words[n]))
        n++;
    if (n > MOST_RUNS)
        return fail("explain: %d runs; try: at most %d", n, MOST_RUNS);
    if (n < nwords && !strchr(words[n], '='))
        return fail("explain: %.200s has no run.json; try: the folder of a run",
                    words[n]);
    key_defaults(&keys, &q);
    if (key_words(&keys, &q, nwords - n, words + n))
        return -1;
    for (int i = 0; !rc && i < n; i++)
        rc = panel_open(&panels[i], words[i], q.step);
    if (!rc)
        rc = write_page(panels, n, q.out);
    if (!rc && *q.svg)
        rc = explain_svg(panels, n, q.svg);
    if (!rc)
        printf("%s%s%s\n", q.out, *q.svg ? "\n" : "", q.svg);
    for (int i = 0; i < n; i++) {
        panel_close(&panels[i]);
    }
    return rc;
}
