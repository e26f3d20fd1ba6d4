// main.c - `explain_way`: runs one exchange on a virtual cluster and explains
// it message by message, as text and as a page. `lockstep explain` starts it.

#include "explain/tell.h"
#include "explain/ways.h"

#include "base/base.h"
#include "config/backends.h"
#include "config/keys.h"
#include "config/suggest.h"
#include "config/value.h"
#include "optim/rule.h"
#include "textbook/schedule.h"

#include <string.h>

enum { MOST_WORKERS = 16, MOST_SERVERS = 16, MOST_ELEMENTS = 1 << 18 };

struct question {
    int workers, servers, algorithm, update, text;
    size_t n, piece;
    double mb_per_s, alpha_us;
    char out[CONFIG_PATH];
};

#define AT(member) offsetof(struct question, member), false

static const char *const updates[] = {"server", "worker", NULL};

static const struct key rows[] = {
    {"way", "workers", "4", KEY_INT, AT(workers), .min = 2, .max = MOST_WORKERS,
     .help = "number of workers"},
    {"way", "n", "0", KEY_INT64, AT(n), .min = 1, .max = MOST_ELEMENTS,
     .zero = "chosen", .unit = "elements",
     .help = "length of the vector, 4 bytes an element"},
    {"way", "servers", "0", KEY_INT, AT(servers), .min = 1, .max = MOST_SERVERS,
     .zero = "usual", .help = "number of servers, for backends with servers"},
    {"way", "update", "server", KEY_CHOICE, AT(update), .words = updates,
     .help = "who updates, for backends with servers"},
    {"way", "algorithm", "own", KEY_CHOICE, AT(algorithm),
     .words = way_algorithms,
     .help = "of a collective: our ring, or a textbook's algorithm"},
    {"way", "piece", "2", KEY_INT64, AT(piece), .min = 1, .max = MOST_ELEMENTS,
     .unit = "elements", .help = "size of a message with algorithm=chain"},
    {"way", "mb_per_s", "1", KEY_NUMBER, AT(mb_per_s), .min = 1e-3, .max = 1e6,
     .unit = "MB/s", .help = "rate of every link, each way"},
    {"way", "alpha_us", "2", KEY_NUMBER, AT(alpha_us), .min = 0, .max = 1e6,
     .unit = "us", .help = "latency of a message"},
    {"way", "text", "1", KEY_INT, AT(text), .min = 0, .max = 1,
     .help = "print every message, too"},
    {"way", "out", "explain.html", KEY_TEXT, AT(out),
     .check = key_check_not_empty, .unit = "FILE",
     .help = "the HTML page to write"},
};

static const struct key_table keys = {rows, sizeof rows / sizeof *rows,
                                      "lockstep explain --help"};

static int help(FILE *f)
{
    fprintf(f, "lockstep explain WAY [KEY=VALUE ..]: run one exchange on a "
               "virtual cluster and show it\nmessage by message\n\n");
    for (int i = 0; backend_at(i); i++)
        if (backend_at(i)->traffic == TRAFFIC_RING ||
            backend_at(i)->traffic == TRAFFIC_OWNER ||
            backend_at(i)->traffic == TRAFFIC_SERVERS)
            fprintf(f, "  %-15s %s\n", backend_at(i)->name,
                    backend_at(i)->help);
    for (int v = 0; v < GROUP_SEND; v++)
        fprintf(f, "  %-15s %s\n", group_verb_name((enum group_verb)v),
                "a collective of group.h");
    fprintf(f,
            "  %-15s with algorithm=linear or tree; broadcast and reduce "
            "take chain, too\n\n",
            "scatter, gather");
    key_help(f, &keys);
    return 0;
}

static int tell_verb(struct story *s, const char *name,
                     const struct question *q)
{
    if (q->algorithm != WAY_OWN)
        return way_textbook(s, name, (enum way_algorithm)q->algorithm,
                            q->piece);
    for (int v = 0; v < GROUP_SEND; v++)
        if (!strcmp(group_verb_name((enum group_verb)v), name))
            return way_verb(s, (enum group_verb)v);
    if (value_known(name, schedule_op_names))
        return fail("explain %s: our ring cannot do it; try: "
                    "algorithm=linear, or tree",
                    name);
    char nearest[SUGGEST_TEXT];
    int ways = 0;
    while (backend_names[ways])
        ways++;
    return fail("explain %.60s: neither the folder of a run nor an exchange "
                "that can be explained%s; try: lockstep explain --help",
                name,
                suggest_text(nearest, "; nearest: ", name, backend_names,
                             ways));
}

static int tell(struct story *s, const char *name, const struct question *q)
{
    const struct backend *b = backend_find(name);
    bool halves = !b && q->algorithm == WAY_HALVING;
    size_t n = b && b->shards ? (size_t)RULE_BLOCK * (size_t)q->workers
               : halves       ? (size_t)q->workers
                              : 10;
    int servers = b && b->servers > 0 ? b->servers : q->servers;
    s->workers = q->workers;
    s->link = (struct link){q->alpha_us * 1e-6, q->mb_per_s * 1e6};
    s->vectors[0].n = q->n ? q->n : n;
    text_into(s->title, sizeof s->title, "%s, %d workers, %zu elements", name,
              s->workers, s->vectors[0].n);
    if (!b)
        return tell_verb(s, name, q);
    if (b->traffic == TRAFFIC_RING || b->traffic == TRAFFIC_OWNER)
        return way_strategy(s, b);
    if (b->traffic == TRAFFIC_SERVERS)
        return way_servers(s, b, servers ? servers : s->workers, q->update);
    return fail("explain %s: %s", name,
                b->traffic == TRAFFIC_NONE ? "it sends no messages"
                : b->traffic == TRAFFIC_LIBRARY
                    ? "the library does not show its messages; try: lockstep "
                      "explain all_reduce algorithm=tree"
                    : "its messages are not known; try: lockstep explain "
                      "--help");
}

// Refuses a key that has no effect on this exchange.
static int check_keys(const char *name, const struct question *q)
{
    const struct backend *b = backend_find(name);
    bool serves = b && b->traffic == TRAFFIC_SERVERS;
    const struct {
        const char *key;
        bool is_read;
        const char *other;
    } some[] = {
        {"servers", serves && b->servers < 0, "a backend with several servers"},
        {"update", serves, "a backend with servers"},
        {"algorithm", !b, "a collective, as in lockstep explain all_reduce"},
        {"piece", q->algorithm == WAY_CHAIN, "algorithm=chain"},
    };
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        char text[CONFIG_PATH];
        const struct key *k = key_find(&keys, some[i].key);
        const char *value = key_show(k, q, text);
        if (!some[i].is_read && strcmp(value, key_default(k)) != 0)
            return fail("%s=%s: %s has no such setting; try: leave it out, or "
                        "%s",
                        k->name, value, name, some[i].other);
    }
    return 0;
}

static int run(int nwords, char **words)
{
    struct question q = {0};
    struct story *s = mem_alloc(1, sizeof *s);
    key_defaults(&keys, &q);
    int rc = !s || key_words(&keys, &q, nwords - 1, words + 1) ||
                     tell(s, words[0], &q) || check_keys(words[0], &q) ||
                     (!s->messages && story_follow(s))
                 ? -1
                 : 0;
    if (!rc) // first, for nothing is printed if it cannot be written
        rc = tell_page(s, q.out);
    if (!rc && q.text)
        tell_text(s, stdout);
    if (!rc)
        printf("\n%s\n", q.out);
    if (s)
        story_close(s);
    mem_free(s);
    return rc;
}

int main(int argc, char **argv)
{
    log_as_lockstep();
    streams_begin();
    if (argc < 2 || !strcmp(argv[1], "--help"))
        return help(argc < 2 ? stderr : stdout) || argc < 2;
    if (run(argc - 1, argv + 1))
        die("%s", fail_message());
    return 0;
}
