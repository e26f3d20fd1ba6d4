// explain_svg.c - draws one step of each of several runs as an animated SVG.
//
//     worker 0   [forward|backward    |   |update]     computing
//                     [send|receive|add|              communication
//                     ====hidden====~~exposed~~
//
// A clip path becomes wider and uncovers all runs at the same speed. It is
// animated with SMIL, which also works inside an <img>. A viewer without
// animation shows the whole picture. Spans of one kind that are less than a
// third of a pixel apart are drawn as one.

#include "lockstep/explain_svg.h"

#include "base/base.h"
#include "config/backends.h"
#include "telemetry/span.h"
#include "telemetry/trace.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    WIDTH = 860,
    LEFT = 76, // where the time axis begins
    ROW = 11,
    SHADE = 4,
    HEAD = 24,
    PLAY_S = 9,
    REST_S = 3
};

static const char *const colours[SPAN_KINDS] = {
    [SPAN_FORWARD] = "#4f86c6", [SPAN_BACKWARD] = "#2b5c9e",
    [SPAN_UPDATE] = "#7e57c2",  [SPAN_SEND] = "#e39b30",
    [SPAN_RECEIVE] = "#c9752b", [SPAN_ADD] = "#8f5a2a",
    [SPAN_GATHER] = "#d9d9d9",
};

struct bar {
    int rank;
    enum span_kind kind;
    double begin, end; // pixels
};

struct picture {
    FILE *f;
    double us_per_pixel;
    const struct panel *panel;
    struct bar *bars;
    size_t n, capacity;
    double y;
};

// Writes text with <, > and & escaped.
static void put_text(FILE *f, const char *text)
{
    for (; *text; text++) {
        if (*text == '<')
            fputs("&lt;", f);
        else if (*text == '>')
            fputs("&gt;", f);
        else if (*text == '&')
            fputs("&amp;", f);
        else
            fputc(*text, f);
    }
}

static bool computes(enum span_kind k)
{
    return k == SPAN_FORWARD || k == SPAN_BACKWARD || k == SPAN_UPDATE;
}

// ---- the spans of a step that are drawn

static int find_kind(const char *name)
{
    for (int k = 0; k < SPAN_KINDS; k++)
        if (colours[k] && !strcmp(span_kind_name((enum span_kind)k), name))
            return k;
    return -1;
}

static int take_bar(void *ctx, const cJSON *event)
{
    struct picture *s = ctx;
    const struct panel *p = s->panel;
    double begin = event_number(event, "ts") - p->begin_us;
    double end = begin + event_number(event, "dur");
    double most = p->end_us - p->begin_us, rank = event_number(event, "pid");
    int kind = find_kind(event_word(event, "name"));
    if (kind < 0 || *event_word(event, "ph") != 'X' || rank >= TRACE_SERVER ||
        !(begin < most) || !(end > 0))
        return 0;
    if (s->n == s->capacity) {
        size_t capacity = s->capacity ? 2 * s->capacity : 1024;
        struct bar *more = realloc(s->bars, capacity * sizeof *more);
        if (!more)
            return fail("svg: no memory for %zu spans", capacity);
        s->bars = more;
        s->capacity = capacity;
    }
    s->bars[s->n++] = (struct bar){.rank = (int)rank,
                                   .kind = (enum span_kind)kind,
                                   .begin = fmax(begin, 0) / s->us_per_pixel,
                                   .end = fmin(end, most) / s->us_per_pixel};
    return 0;
}

static int by_begin(const void *a, const void *b)
{
    const struct bar *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

// ---- drawing

static void rect(const struct picture *s, double begin, double end, double y,
                 int height, const char *colour)
{
    fprintf(s->f,
            "<rect x='%.1f' y='%.0f' width='%.1f' height='%d' fill='%s'/>",
            LEFT + begin, y, fmax(end - begin, .4), height, colour);
}

static void draw_row(const struct picture *s, int rank, bool computing,
                     double y)
{
    struct bar last = {.end = -1};
    for (size_t i = 0; i < s->n; i++) {
        const struct bar *b = &s->bars[i];
        if (b->rank != rank || b->kind == SPAN_GATHER ||
            computes(b->kind) != computing)
            continue;
        if (last.end >= 0 && b->kind == last.kind &&
            b->begin - last.end < .34) {
            last.end = fmax(last.end, b->end);
            continue;
        }
        if (last.end >= 0)
            rect(s, last.begin, last.end, y, ROW, colours[last.kind]);
        last = *b;
    }
    if (last.end >= 0)
        rect(s, last.begin, last.end, y, ROW, colours[last.kind]);
    // Waiting for weights within forward or backward is not computing.
    for (size_t i = 0; computing && i < s->n; i++)
        if (s->bars[i].rank == rank && s->bars[i].kind == SPAN_GATHER)
            rect(s, s->bars[i].begin, s->bars[i].end, y, ROW,
                 colours[SPAN_GATHER]);
}

// Marks the time in which this worker communicates: hidden where it computes at
// the same time, else exposed.
static void draw_shade(const struct picture *s, int rank, double y)
{
    enum { FREE, HIDDEN, EXPOSED };
    static const char *const shades[] = {NULL, "#2ba58d", "#c02f1d"};
    int width = WIDTH - LEFT, from = 0, state = FREE;
    for (int x = 0; x <= width; x++) {
        bool moves = false, busy = false, waits = false;
        for (size_t i = 0; i < s->n && x < width; i++) {
            const struct bar *b = &s->bars[i];
            if (b->rank != rank || b->begin > x + .5 || b->end < x + .5)
                continue;
            busy = busy || computes(b->kind);
            waits = waits || b->kind == SPAN_GATHER;
            moves = moves || (!computes(b->kind) && b->kind != SPAN_GATHER);
        }
        int now = !moves ? FREE : busy && !waits ? HIDDEN : EXPOSED;
        if (now == state)
            continue;
        if (state != FREE)
            rect(s, from, x, y, SHADE, shades[state]);
        from = x;
        state = now;
    }
}

static int draw_panel(struct picture *s, const struct panel *p)
{
    double bytes = p->run.bytes_tx;
    char name[128];
    s->panel = p;
    s->n = 0;
    if (trace_each(p->folder, take_bar, s))
        return -1;
    if (s->n > 0)
        qsort(s->bars, s->n, sizeof *s->bars, by_begin);
    panel_name(p, name);
    fprintf(s->f, "<text x='0' y='%.0f' font-weight='bold' fill='%s'>",
            s->y + 17, p->run.row ? p->run.row->colour : "#222");
    put_text(s->f, name);
    fprintf(s->f,
            "</text><text x='%d' y='%.0f' text-anchor='end' fill='#555'>"
            "%.2f ms",
            WIDTH, s->y + 17, (p->end_us - p->begin_us) * 1e-3);
    if (bytes > 0)
        fprintf(s->f, ", each worker sends %.2f MB", bytes * 1e-6);
    fprintf(s->f, "</text>\n");
    s->y += HEAD;
    for (int r = 0; r < p->run.world; r++) {
        fprintf(s->f, "<text x='0' y='%.0f' fill='#555'>worker %d</text>",
                s->y + 11, r);
        fprintf(s->f, "<g clip-path='url(#played)'>");
        draw_row(s, r, true, s->y);
        draw_row(s, r, false, s->y + ROW + 1);
        draw_shade(s, r, s->y + 2 * ROW + 2);
        fprintf(s->f, "</g>\n");
        s->y += p->run.world > 1 ? 2 * ROW + SHADE + 8 : ROW + 6;
    }
    return 0;
}

static void draw_legend(const struct picture *s)
{
    static const struct {
        const char *colour, *name;
    } keys[] = {{"#4f86c6", "forward"}, {"#2b5c9e", "backward"},
                {"#7e57c2", "update"},  {"#e39b30", "send"},
                {"#c9752b", "receive"}, {"#8f5a2a", "add"},
                {"#d9d9d9", "gather"},  {"#2ba58d", "hidden"},
                {"#c02f1d", "exposed"}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        fprintf(s->f,
                "<rect x='%zu' y='%.0f' width='10' height='10' fill='%s'/>"
                "<text x='%zu' y='%.0f' fill='#555'>%s</text>",
                LEFT + i * 86, s->y + 8, keys[i].colour, LEFT + 15 + i * 86,
                s->y + 17, keys[i].name);
}

// Plays for PLAY_S, stands still for REST_S, and begins again.
static void put_animation(FILE *f, const char *attribute, double from,
                          double to)
{
    fprintf(f,
            "<animate attributeName='%s' values='%.0f;%.0f;%.0f' "
            "keyTimes='0;%.2f;1' dur='%ds' repeatCount='indefinite'/>",
            attribute, from, to, to, (double)PLAY_S / (PLAY_S + REST_S),
            PLAY_S + REST_S);
}

static int draw(struct picture *s, const struct panel *panels, int n)
{
    double height = 40;
    for (int i = 0; i < n; i++)
        height += HEAD +
                  panels[i].run.world *
                      (panels[i].run.world > 1 ? 2 * ROW + SHADE + 8 : ROW + 6);
    fprintf(s->f,
            "<svg xmlns='http://www.w3.org/2000/svg' viewBox='-10 -6 %d %.0f' "
            "font-family='sans-serif' font-size='12'>\n<title>One step of each "
            "run, on one clock</title>\n<rect x='-10' y='-6' "
            "width='100%%' height='100%%' rx='8' fill='#fff'/>\n<clipPath "
            "id='played'><rect x='%d' y='0' width='%d' height='%.0f'>",
            WIDTH + 20, height, LEFT, WIDTH - LEFT, height);
    put_animation(s->f, "width", 0, WIDTH - LEFT);
    fprintf(s->f, "</rect></clipPath>\n");
    for (int i = 0; i < n; i++)
        if (draw_panel(s, &panels[i]))
            return -1;
    draw_legend(s);
    fprintf(s->f,
            "\n<rect x='%d' y='0' width='1' height='%.0f' fill='#c02f1d'>",
            WIDTH, s->y);
    put_animation(s->f, "x", LEFT, WIDTH);
    fprintf(s->f, "</rect>\n</svg>\n");
    return 0;
}

int explain_svg(const struct panel *panels, int n, const char *path)
{
    double longest = 0;
    if (access(path, F_OK) == 0)
        log_line("%s: replacing the existing file", path);
    struct picture s = {.f = fopen(path, "we")};
    if (!s.f)
        return fail("%s: %s", path, strerror(errno));
    for (int i = 0; i < n; i++)
        longest = fmax(longest, panels[i].end_us - panels[i].begin_us);
    s.us_per_pixel = longest / (WIDTH - LEFT);
    int rc = draw(&s, panels, n);
    free(s.bars);
    bool written = !ferror(s.f);
    if (fclose(s.f) || !written)
        rc = fail("%s: %s", path, strerror(errno));
    return rc;
}
