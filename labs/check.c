// check.c - runs one test of a lab, in a process of its own.
//
// The program is built from grade.c and the virtual cluster. labs/grade starts
// it as `program TEST RESULT TRACE CSV FILE SEED`; RESULT, TRACE and CSV are
// descriptors, and FILE is the program around the student's file, which runs in
// other processes (ask.h). SEED draws the hidden cases; 0: there are none. The
// result is one line of JSON on RESULT. `program --list` prints the tests.

#include "labs/check.h"

#include "base/base.h"
#include "base/rng.h"
#include "labs/ask.h"
#include "labs/machine.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

struct lab_case {
    const struct lab_test *test;
    bool failed, logged;
    double part; // the share of the points, 0 .. 1, of a failed test
    char said[512];
    uint64_t seed, hidden; // hidden cases so far
    char fault[256];       // of the run's messages; "": none
    FILE *trace, *csv;     // NULL: none wanted
    struct virtual_result *v;
    struct lab_run run;
    int *missing;
    void **memory; // list of lab_memory() blocks: each begins with the next
};

static void close_run(struct lab_case *k)
{
    virtual_close(&k->v);
    free(k->missing);
    k->missing = NULL;
}

struct start { // the argument of every rank's function
    const struct lab_world *world;
    lab_body *body;
    void *arg;
    int *missing;
};

static int run_rank(struct virtual_rank *r, void *arg)
{
    const struct start *s = arg;
    int id = virtual_id(r), ranks = s->world->workers + s->world->servers;
    int thread = id / ranks;
    struct lab_machine machine = {r, thread * ranks, &s->missing[id]};
    struct lab l = {.rank = id % ranks,
                    .thread = thread,
                    .workers = s->world->workers,
                    .servers = s->world->servers,
                    .alpha_s = s->world->alpha_s,
                    .bytes_per_s = s->world->bytes_per_s,
                    .ops = &lab_machine_ops,
                    .state = &machine};
    return s->body(&l, s->arg);
}

const struct lab_run *lab_virtual(struct lab_case *k, const struct lab_world *w,
                                  lab_body *body, void *arg)
{
    struct lab_world world = *w;
    if (!(world.bytes_per_s > 0)) {
        world.alpha_s = 20e-6;
        world.bytes_per_s = 1.25e8;
    }
    int ranks = world.workers + world.servers;
    struct virtual_setup setup = {.ranks =
                                      world.threads == 2 ? 2 * ranks : ranks,
                                  .hosts = ranks,
                                  .alpha_s = world.alpha_s,
                                  .bytes_per_s = world.bytes_per_s,
                                  .eager = world.eager,
                                  .deadline_s = world.deadline_s,
                                  .seed = world.seed,
                                  .kill = world.kill,
                                  .slow = world.slow};
    close_run(k);
    k->missing = malloc((size_t)setup.ranks * sizeof *k->missing);
    if (!lab_want(k, k->missing, "no memory for %d ranks", setup.ranks))
        return NULL;
    for (int i = 0; i < setup.ranks; i++)
        k->missing[i] = -1;
    struct start start = {&world, body, arg, k->missing};
    k->v = virtual_run(&setup, run_rank, &start);
    ask_reset(k->fault);
    if (!lab_want(k, k->v, "%s", fail_message()))
        return NULL;
    k->run = (struct lab_run){k->v, k->missing};
    return &k->run;
}

bool lab_hidden(struct lab_case *k)
{
    k->hidden++;
    return k->seed != 0;
}

size_t lab_pick(const struct lab_case *k, size_t least, size_t most)
{
    uint64_t test = (uint64_t)(k->test - lab_about.tests), key = k->seed;
    uint64_t names[] = {(uint64_t)lab_about.number, test, k->hidden, least};
    for (int i = 0; i < 4; i++)
        key = rng_key(key, names[i]);
    return least + rng_below(key, most, most - least + 1);
}

size_t lab_draw(const struct lab_case *k, uint64_t i, size_t n)
{
    return rng_below(lab_pick(k, 0, UINT32_MAX), i, n);
}

struct lab_world lab_drawn(const struct lab_case *k, int workers)
{
    return (struct lab_world){.workers = workers,
                              .alpha_s = 1e-6 * (double)lab_pick(k, 1, 900),
                              .bytes_per_s =
                                  1e6 * (double)lab_pick(k, 20, 9000)};
}

void *lab_memory(struct lab_case *k, size_t n, size_t size)
{
    const size_t head = 64;
    char *p = n > SIZE_MAX / 2 / size ? NULL : calloc(1, head + n * size);
    if (!lab_want(k, p, "no memory for %zu times %zu bytes", n, size))
        return NULL;
    *(void **)p = k->memory;
    k->memory = (void **)p;
    return p + head;
}

static void free_memory(struct lab_case *k)
{
    while (k->memory) {
        void **p = k->memory;
        k->memory = *p;
        free(p);
    }
}

int lab_tell(struct lab *l, int thread, int number)
{
    const struct lab_machine *m = l->state;
    int to = l->rank + thread * (l->workers + l->servers);
    struct virtual_req r;
    return virtual_isend(m->rank, to, &number, sizeof number, &r)
               ? -1
               : virtual_wait(m->rank, &r, 1);
}

int lab_hear(struct lab *l, int thread, int *number)
{
    const struct lab_machine *m = l->state;
    int from = l->rank + thread * (l->workers + l->servers);
    struct virtual_req r;
    return virtual_irecv(m->rank, from, number, sizeof *number, &r)
               ? -1
               : virtual_wait(m->rank, &r, 1);
}

void lab_release(struct lab *l)
{
    const struct lab_machine *m = l->state;
    virtual_release(m->rank);
}

FILE *lab_log(struct lab_case *k)
{
    FILE *f = k->logged ? NULL : k->trace;
    if (f)
        fprintf(f, "%s\n\n", k->said);
    k->logged = true;
    return f;
}

// What a message of the run carries, in words for the page.
static void tell_message(const void *ctx, FILE *f, size_t i)
{
    const struct virtual_result *v = ctx;
    const struct virtual_message *m = &v->messages[i];
    size_t before = 0; // messages of the same two ranks
    for (size_t k = 0; k < i; k++)
        before += v->messages[k].from == m->from && v->messages[k].to == m->to;
    const struct ask_sent *s = ask_message(m->from, m->to, before);
    if (!s || s->bytes != m->bytes || !m->bytes)
        return;
    fprintf(f, ", \"says\": \"rank %d sends %zu bytes to rank %d: ", m->from,
            m->bytes, m->to);
    if (s->part < 0)
        fprintf(f, "of its own memory");
    else if (s->off % 4 || m->bytes % 4)
        fprintf(f, "bytes %zu to %zu", s->off, s->off + m->bytes - 1);
    else if (m->bytes == 4)
        fprintf(f, "element %zu", s->off / 4);
    else
        fprintf(f, "elements %zu to %zu", s->off / 4,
                (s->off + m->bytes) / 4 - 1);
    if (s->part > 0)
        fprintf(f, " of its vector %d", s->part + 1);
    fprintf(f, "\"");
}

// Keeps the first failure, which the student reads.
static void note(struct lab_case *k, const char *fmt, va_list ap)
{
    if (k->failed)
        return;
    vsnprintf(k->said, sizeof k->said, fmt, ap);
    k->failed = true;
    struct virtual_telling telling = {.message = tell_message, .ctx = k->v};
    if (k->trace && k->v && virtual_trace(k->v, &telling, k->trace))
        log_line("%s", fail_message());
}

bool lab_want(struct lab_case *k, bool ok, const char *fmt, ...)
{
    if (ok)
        return true;
    va_list ap;
    va_start(ap, fmt);
    note(k, fmt, ap);
    va_end(ap);
    k->part = 0;
    return false;
}

bool lab_speed(struct lab_case *k, double is, double ought, const char *fmt,
               ...)
{
    double part = (2 - is / ought) / (2 - 1.05);
    if (part >= 1)
        return true;
    va_list ap;
    va_start(ap, fmt);
    note(k, fmt, ap);
    va_end(ap);
    k->part = !(part > 0) ? 0 : part < k->part ? part : k->part;
    return false;
}

bool lab_failed(const struct lab_case *k)
{
    return k->failed && !(k->part > 0);
}

bool lab_clean(struct lab_case *k, const struct lab_run *run)
{
    if (!run)
        return false;
    const struct virtual_result *v = run->v;
    bool clean = true;
    // If one rank gave up, others may wait for it: report its error first.
    for (int r = 0; r < v->ranks && clean; r++)
        clean =
            lab_want(k, v->rank[r].value == 0, "rank %d of %d returned %d%s%s",
                     r, v->ranks, v->rank[r].value,
                     v->rank[r].error[0] ? ": " : "", v->rank[r].error);
    clean = clean &&
            lab_want(k, !v->deadlock[0], "%d ranks: %s", v->ranks, v->deadlock);
    clean = clean && lab_want(k, !k->fault[0], "%s", k->fault);
    return clean;
}

void lab_record(struct lab_case *k, int workers, size_t n, const char *what,
                double value)
{
    if (k->csv)
        fprintf(k->csv, "%s,%d,%zu,%s,%.9g\n", k->test->name, workers, n, what,
                value);
}

// Writes text as a JSON string.
static void put_text(FILE *f, const char *text)
{
    fputc('"', f);
    for (const char *p = text; *p; p++) {
        unsigned char c = (unsigned char)*p;
        if (c == '"' || c == '\\')
            fprintf(f, "\\%c", c);
        else if (c < 0x20)
            fprintf(f, "\\u%04x", c);
        else
            fputc(c, f);
    }
    fputc('"', f);
}

static void put_member(FILE *f, const char *name, const char *text)
{
    fprintf(f, ", \"%s\": ", name);
    put_text(f, text ? text : "");
}

// Whether this machine filters system calls: then a filter at no address is
// refused for its address.
static bool has_filter(void)
{
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) && errno == EFAULT;
}

static int list(void)
{
    printf("{\"number\": %d, \"floor\": %d, \"filter\": %s", lab_about.number,
           lab_about.floor, has_filter() ? "true" : "false");
    put_member(stdout, "name", lab_about.name);
    put_member(stdout, "file", lab_about.file);
    put_member(stdout, "functions", lab_about.functions);
    printf(", \"tests\": [");
    for (const struct lab_test *t = lab_about.tests; t->name; t++) {
        printf("%s{\"points\": %d", t == lab_about.tests ? "" : ", ",
               t->points);
        put_member(stdout, "name", t->name);
        put_member(stdout, "needs", t->needs);
        put_member(stdout, "hint", t->hint);
        printf("}");
    }
    printf("]}\n");
    return 0;
}

// Opens the descriptor with this number for writing; NULL for 0.
static FILE *stream(const char *number)
{
    int fd = atoi(number);
    FILE *f = fd > 0 ? fdopen(fd, "w") : NULL;
    if (fd > 0 && !f)
        die("descriptor %d cannot be written; try: labs/grade", fd);
    return f;
}

// The student's processes have limits of their own, which end first.
static void limit(void)
{
    struct rlimit seconds = {60, 60}, bytes = {3ul << 30, 3ul << 30};
    if (setrlimit(RLIMIT_CPU, &seconds) || setrlimit(RLIMIT_DATA, &bytes))
        die("no limit of processor time and memory");
}

static int run_test(const char *name, char *const descriptors[])
{
    struct lab_case k = {.test = lab_about.tests,
                         .part = 1,
                         .seed = strtoull(descriptors[4], NULL, 10)};
    while (k.test->name && strcmp(k.test->name, name) != 0)
        k.test++;
    if (!k.test->name)
        die("lab %d has no test %s; try: --list", lab_about.number, name);
    FILE *result = stream(descriptors[0]);
    if (!result)
        die("RESULT must be a descriptor; try: labs/grade");
    k.trace = stream(descriptors[1]);
    k.csv = stream(descriptors[2]);
    ask_open(descriptors[3], 16 * (size_t)lab_about.frame);
    limit();
    k.test->run(&k);
    ask_close();
    close_run(&k);
    free_memory(&k);
    fprintf(result, "{\"ok\": %s, \"part\": %.4f", k.failed ? "false" : "true",
            k.failed ? k.part : 1);
    put_member(result, "said", k.said);
    fprintf(result, "}\n");
    bool written = fclose(result) == 0;
    if (k.csv)
        written = fclose(k.csv) == 0 && written;
    if (k.trace)
        written = fclose(k.trace) == 0 && written;
    return written ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--list") == 0)
        return list();
    if (argc == 7) // TEST, three descriptors (0: none), FILE, SEED
        return run_test(argv[1], argv + 2);
    die("try: labs/grade");
}
