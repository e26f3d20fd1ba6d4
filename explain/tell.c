// tell.c - writes a story (story.h) as text, or as an HTML page: the template
// core/virtual/page.html with the data of animated panels in it. It needs no
// other file. `lockstep explain FOLDER` has panels of a run.
//
//     {"title": .., "lead": [..], "panels": [{"name": .., "note": ..,
//      "colour": .., "trace": {"traceEvents": [..]},      Trace Event JSON
//      "begin_us": .., "end_us": .., "step": ..,          the part to show
//      "law": {PID: {"out": bytes, "in": bytes}},         bytes by the law
//      "total": {PID: {..}},                              bytes counted, if
//                                                         events have none
//      "cells": {"ranks": .., "vectors": [..], "states": [..]}}, ..]}

#include "explain/tell.h"

#include "base/base.h"
#include "base/file.h"

#include <string.h>
#include <unistd.h>

static int ranks(const struct story *s)
{
    return s->workers + s->servers;
}

// ---- messages in words

// Writes "worker 2" or "server 0" into `name`, and returns it.
static const char *name_of(const void *story, int rank, char name[32])
{
    const struct story *s = story;
    bool serves = rank >= s->workers;
    snprintf(name, 32, "%s %d", serves ? "server" : "worker",
             serves ? rank - s->workers : rank);
    return name;
}

// "the sum of workers 0, 2"
static void say_holds(const struct story *s, unsigned holds, char text[160])
{
    int count = 0, at;
    for (int r = 0; r < s->workers; r++)
        count += holds >> r & 1;
    if (count == s->workers && count > 1) {
        snprintf(text, 160, "the sum of all");
        return;
    }
    at = snprintf(text, 160, count > 1 ? "the sum of workers" : "worker");
    for (int r = 0, more = 0; r < s->workers; r++)
        if (holds >> r & 1)
            at += snprintf(text + at, (size_t)(160 - at), "%s %d",
                           more++ ? "," : "", r);
    if (count == 1)
        snprintf(text + at, (size_t)(160 - at), "'s own numbers");
}

static bool is_even(const unsigned *x, int n)
{
    for (int i = 1; i < n; i++)
        if (x[i] != x[0])
            return false;
    return true;
}

// Writes a message in words into `text`.
static void say(const struct story *s, const struct story_message *m,
                char text[512])
{
    char from[32], to[32], what[160] = "";
    name_of(s, m->is->from, from);
    name_of(s, m->is->to, to);
    if (m->place.vector < 0) {
        snprintf(text, 512, "%s sends %s %zu bytes: %s", from, to, m->is->bytes,
                 s->other ? s->other : "of a vector that is not shown");
        return;
    }
    const struct story_vector *v = &s->vectors[m->place.vector];
    const char *then = "keeps them";
    if (is_even(m->holds, m->ncells))
        say_holds(s, m->holds[0], what);
    if (m->before[0] && !(m->before[0] & m->holds[0]))
        then = m->is->to < s->workers ? "adds its own numbers" : "adds them";
    char range[64];
    snprintf(range, sizeof range,
             m->place.n > 1 ? "elements %zu to %zu" : "element %zu",
             m->place.off, m->place.off + m->place.n - 1);
    snprintf(text, 512, "%s sends %s %s of the %s (%s%s%zu bytes%s); %s %s",
             from, to, range, v->name, what, *what ? "; " : "", m->is->bytes,
             m->is->is_free ? " that cross no link" : "", to, then);
}

// ---- text

// Writes the law's time. It is for chunks of equal length; if a vector does not
// divide, the longest chunk decides.
static void tell_law(const struct story *s, FILE *f)
{
    size_t n = s->vectors[0].n;
    size_t chunks = (size_t)(s->servers ? s->servers : s->workers);
    if (s->law_s > 0)
        fprintf(f, "; the law: %.2f us", s->law_s * 1e6);
    if (s->law_s > 0 && n % chunks && s->v->seconds > s->law_s * (1 + 1e-6))
        fprintf(f,
                "\nThe law is for chunks of %g elements each; here the "
                "longest has %zu.",
                (double)n / (double)chunks, n / chunks + 1);
}

static void tell_bytes(const struct story *s, FILE *f)
{
    fprintf(f, "\n%-12s %12s %12s %12s %12s\n", "", "bytes out", "the law",
            "bytes in", "the law");
    for (int r = 0; r < ranks(s); r++) {
        const struct virtual_rank_result *is = &s->v->rank[r];
        char name[32];
        fprintf(f, "%-12s %12llu %12llu %12llu %12llu\n", name_of(s, r, name),
                (unsigned long long)is->bytes_out,
                (unsigned long long)s->law[OUT][r],
                (unsigned long long)is->bytes_in,
                (unsigned long long)s->law[IN][r]);
    }
    fprintf(f, "\n%.2f us on links of %g MB/s, %g us a message",
            s->v->seconds * 1e6, s->link.bytes_per_s * 1e-6,
            s->link.alpha_s * 1e6);
    tell_law(s, f);
    fprintf(f, "\n");
}

void tell_text(const struct story *s, FILE *f)
{
    fprintf(f, "%s\n%s\n\n%10s\n", s->title, s->note, "us");
    for (size_t i = 0; i < s->n_messages; i++) {
        char words[512];
        say(s, &s->messages[i], words);
        fprintf(f, "%10.2f  %s\n", s->messages[i].is->begin_s * 1e6, words);
    }
    tell_bytes(s, f);
}

// ---- the page

// The build makes it from core/virtual/page.html.
extern const char page_template[];

// Writes `text` as a JSON string that is safe inside HTML.
static void put_string(FILE *f, const char *text)
{
    fputc('"', f);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(f, "\\%c", c);
        else if (c < 0x20 || c == '<')
            fprintf(f, "\\u%04x", c);
        else
            fputc(c, f);
    }
    fputc('"', f);
}

// virtual_trace() writes an event for each message. This adds fields to the
// event's JSON object: what the message says, and which cells it holds.
static void add_message(const void *ctx, FILE *f, size_t number)
{
    const struct story *s = ctx;
    const struct story_message *m = s->messages;
    while (m->is != &s->v->messages[number])
        m++;
    char words[512];
    say(s, m, words);
    fprintf(f, ", \"says\": ");
    put_string(f, words);
    if (m->place.vector < 0)
        return;
    fprintf(f, ", \"vector\": %d, \"cells\": [", m->place.vector);
    for (int c = 0; c < m->ncells; c++)
        fprintf(f, "%s[%d,%u]", c ? "," : "", m->first + c, m->holds[c]);
    fprintf(f, "]");
}

static void put_vector(const struct story *s, const struct story_vector *v,
                       FILE *f)
{
    fprintf(f, "{\"name\": ");
    put_string(f, v->name);
    fprintf(f, ", \"n\": %zu, \"cuts\": [", v->n);
    for (int c = 0; c < v->ncells; c++)
        fprintf(f, "%s%zu", c ? "," : "", v->cuts[c]);
    fprintf(f, "], \"lanes\": [");
    for (int r = 0, n = 0; r < ranks(s); r++)
        if (v->shown[r])
            fprintf(f, "%s%d", n++ ? "," : "", r);
    fprintf(f, "]}");
}

static void put_cells(const struct story *s, FILE *f)
{
    fprintf(f, ",\n\"cells\": {\"ranks\": %d, \"vectors\": [", s->workers);
    for (int k = 0; k < s->nvectors; k++) {
        fprintf(f, "%s", k ? ", " : "");
        put_vector(s, &s->vectors[k], f);
    }
    fprintf(f, "], \"states\": [");
    for (size_t i = 0; i < s->n_states; i++) {
        const struct story_state *t = &s->states[i];
        fprintf(f, "%s[%.6f,%d,%d,%d,%u]", i ? "," : "", t->s * 1e6, t->rank,
                t->vector, t->cell, t->holds);
    }
    fprintf(f, "]}");
}

static void put_law(const struct story *s, FILE *f)
{
    fprintf(f, ",\n\"law\": {");
    for (int r = 0; r < ranks(s); r++)
        fprintf(f, "%s\"%d\": {\"out\": %llu, \"in\": %llu}", r ? ", " : "", r,
                (unsigned long long)s->law[OUT][r],
                (unsigned long long)s->law[IN][r]);
    fprintf(f, "}");
}

static int put_panel(const struct story *s, FILE *f)
{
    const struct virtual_telling telling = {name_of, add_message, s};
    fprintf(f, "{\"title\": ");
    put_string(f, s->title);
    fprintf(f, ", \"lead\": [");
    put_string(f, s->note);
    fprintf(f, ", ");
    put_string(f, "The code of training ran on a virtual cluster with a "
                  "simulated clock: a message occupies the sender's outgoing "
                  "link and the receiver's incoming link for bytes/B "
                  "seconds, and arrives alpha seconds later. Computing takes "
                  "no time.");
    fprintf(f, "],\n\"panels\": [{\"name\": ");
    put_string(f, s->title);
    fprintf(f, ", \"end_us\": %.6f,\n\"trace\": ", s->v->seconds * 1e6);
    if (virtual_trace(s->v, &telling, f))
        return -1;
    put_law(s, f);
    put_cells(s, f);
    fprintf(f, "}]}");
    return 0;
}

int tell_page(const struct story *s, const char *path)
{
    static const char mark[] = "{{DATA}}";
    const char *at = strstr(page_template, mark);
    CHECK(at != NULL);
    FILE *f = file_next(path);
    if (!f)
        return -1;
    bool old = access(path, F_OK) == 0;
    fwrite(page_template, 1, (size_t)(at - page_template), f);
    int rc = put_panel(s, f);
    fputs(at + strlen(mark), f);
    rc = file_finish(f, path, rc);
    if (!rc && old)
        log_line("%s: replacing the existing file", path);
    return rc;
}
