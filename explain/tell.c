// tell.c - writes a story (story.h) as text, or as an HTML page.

#include "explain/tell.h"

#include "explain/page.h"

static int ranks(const struct story *s)
{
    return s->workers + s->servers;
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
        fprintf(f, "%-12s %12llu %12llu %12llu %12llu\n",
                story_rank(s, r, name), (unsigned long long)is->bytes_out,
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
        story_words(s, &s->messages[i], words);
        fprintf(f, "%10.2f  %s\n", s->messages[i].begin_s * 1e6, words);
    }
    tell_bytes(s, f);
}

// ---- the page

// virtual_trace() writes an event for each message. This adds fields to the
// event's JSON object: what the message says, and which cells it holds.
static void add_message(const void *ctx, FILE *f, size_t number)
{
    const struct story *s = ctx;
    size_t i = 0;
    while (s->messages[i].number != number)
        i++;
    const struct story_message *m = &s->messages[i];
    char words[512];
    story_words(s, m, words);
    fprintf(f, ", \"says\": ");
    page_string(f, words);
    if (m->place.vector < 0)
        return;
    fprintf(f, ", \"vector\": %d, \"cells\": [", m->place.vector);
    for (int c = 0; c < m->ncells; c++)
        fprintf(f, "%s[%d,%u]", c ? "," : "", m->first + c, m->holds[c]);
    fprintf(f, "]");
}

static const char *name_rank(const void *ctx, int rank, char name[32])
{
    return story_rank(ctx, rank, name);
}

static void put_vector(const struct story *s, const struct story_vector *v,
                       FILE *f)
{
    fprintf(f, "{\"name\": ");
    page_string(f, v->name);
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
    const struct virtual_telling telling = {name_rank, add_message, s};
    fprintf(f, "{\"title\": ");
    page_string(f, s->title);
    fprintf(f, ", \"lead\": [");
    page_string(f, s->note);
    fprintf(f, ", ");
    page_string(f, "The code of training ran on a virtual cluster with a "
                   "simulated clock: a message occupies the sender's outgoing "
                   "link and the receiver's incoming link for bytes/B "
                   "seconds, and arrives alpha seconds later. Computing takes "
                   "no time.");
    fprintf(f, "],\n\"panels\": [{\"name\": ");
    page_string(f, s->title);
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
    FILE *f = page_open(path);
    if (!f)
        return -1;
    int rc = put_panel(s, f);
    return page_close(f, path) || rc ? -1 : 0;
}
