// merge.c - merges the rows of all ranks into one file, and summarises them.
//
// The rows of each rank are sorted by step. So merging reads all files at the
// same time and writes, for each step, the rows of the ranks that have it, in
// rank order.

#include "telemetry/steps.h"

#include "base/base.h"
#include "base/file.h"
#include "telemetry/cell.h"
#include "telemetry/trace_parts.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH = 1200, LINE = 2048, RANK = 2, STEP = 3 };

struct part {
    FILE *file;
    int rank; // whose rows are read
    char line[LINE];
    int step; // of `line`; INT_MAX at the end
};

static void part_next(struct part *p)
{
    int rank;
    while (p->file && file_line(p->line, sizeof p->line, p->file))
        if (sscanf(cell_at(p->line, RANK), "%d,%d", &rank, &p->step) == 2 &&
            rank == p->rank)
            return;
    p->step = INT_MAX;
}

// Opens a file with rows of a rank, if it is there. Copies its header to `to`,
// unless that is NULL.
static int part_open(struct part *p, const char *path, int rank, FILE *to)
{
    p->rank = rank;
    p->step = INT_MAX;
    if (access(path, F_OK))
        return 0;
    p->file = file_open_here(path);
    if (!p->file)
        return -1;
    if (fgets(p->line, sizeof p->line, p->file) && to)
        fputs(p->line, to);
    part_next(p);
    return 0;
}

// Opens the parts of all ranks, if there are any. A rank without one, which has
// ended before an earlier merge, has its rows in the whole file.
static int parts_open(struct part *parts, int world, const char *out,
                      const char *whole, FILE *to, bool *any)
{
    char path[PATH];
    *any = false;
    for (int r = 0; r < world; r++) {
        if (text_into(path, sizeof path, "%s/steps.%d.csv", out, r) ||
            part_open(&parts[r], path, r, *any ? NULL : to))
            return -1;
        *any |= parts[r].file != NULL;
    }
    for (int r = 0; *any && r < world; r++)
        if (!parts[r].file && part_open(&parts[r], whole, r, NULL))
            return -1;
    return 0;
}

static void merge_rows(struct part *parts, int world, FILE *to)
{
    for (;;) {
        int least = INT_MAX;
        for (int r = 0; r < world; r++)
            least = parts[r].step < least ? parts[r].step : least;
        if (least == INT_MAX)
            return;
        for (int r = 0; r < world; r++) {
            if (parts[r].step != least)
                continue;
            fputs(parts[r].line, to);
            part_next(&parts[r]);
        }
    }
}

int steps_merge(const char *out, int world)
{
    char next[PATH], path[PATH];
    if (world == 1)
        return 0;
    if (text_into(path, sizeof path, "%s/steps.csv", out) ||
        text_into(next, sizeof next, "%s/steps.csv.next", out))
        return -1;
    struct part *parts = mem_alloc((size_t)world, sizeof *parts);
    FILE *to = file_create(next);
    int rc = -1;
    bool any = false;
    if (!parts)
        goto close_to;
    if (!to)
        goto close_to;
    rc = parts_open(parts, world, out, path, to, &any);
    if (!rc)
        merge_rows(parts, world, to);
    for (int r = 0; r < world; r++) {
        if (!rc && parts[r].file && !feof(parts[r].file)) // so it is kept
            rc = fail("%s: the rows of rank %d cannot be read to their end",
                      path, r);
        if (parts[r].file)
            fclose(parts[r].file);
    }
close_to:
    if (to && file_close(to, path))
        rc = -1;
    mem_free(parts);
    if (rc || !any) { // nothing to merge: it was done before
        unlink(next);
        return rc;
    }
    if (rename(next, path))
        return fail("%s: %s", path, strerror(errno));
    return parts_drop_csv(out, "steps", world);
}

struct timed { // one step of a rank; later the mean of a round
    int rank, round;
    double s;
};

// Adds up the ranks of one step, then the steps.
struct reader {
    struct steps_summary *sum;
    int every;
    int step, ranks, val_ranks; // of the step that is read
    double loss, val;
    struct timed *timed;
    size_t ntimed, capacity;
};

static void finish_step(struct reader *r)
{
    struct steps_summary *s = r->sum;
    if (!r->ranks)
        return;
    double loss = r->loss / r->ranks;
    s->final_loss = loss;
    if (!(loss >= s->best_loss))
        s->best_loss = loss;
    s->ranks = r->ranks > s->ranks ? r->ranks : s->ranks;
    if (r->val_ranks) {
        double val = r->val / r->val_ranks;
        s->final_val_loss = val;
        if (!(val >= s->best_val_loss)) {
            s->best_val_loss = val;
            s->best_val_step = r->step;
        }
    }
    r->ranks = r->val_ranks = 0;
    r->loss = r->val = 0;
}

static int add_step_time(struct reader *r, int rank, double s)
{
    if (r->ntimed == r->capacity) {
        size_t capacity = r->capacity ? 2 * r->capacity : 1024;
        struct timed *more = realloc(r->timed, capacity * sizeof *more);
        if (!more)
            return fail("memory: none left for %zu step times", capacity);
        r->timed = more;
        r->capacity = capacity;
    }
    int round = (r->step - 1) / r->every;
    r->timed[r->ntimed++] = (struct timed){rank, round, s};
    return 0;
}

static int read_row(struct reader *r, const char *line)
{
    struct steps_summary *s = r->sum;
    int rank, step, skipped, dropped, used = 0;
    unsigned long long tokens, step_us, tx, rx;
    double time_s, loss;
    line = cell_at(line, RANK);
    if (sscanf(line,
               "%d,%d,%llu,%lf,%lf,%*[^,],%*[^,],%*[^,],%d,%d,"
               "%*d,%llu,%*d,%*d,%*d,%*d,%llu,%llu,%*d,%*d,%n",
               &rank, &step, &tokens, &time_s, &loss, &skipped, &dropped,
               &step_us, &tx, &rx, &used) != 10 ||
        !used)
        return 0; // the header
    if (step != r->step)
        finish_step(r);
    r->step = s->steps = step;
    r->ranks++;
    r->loss += loss;
    int restarts = 0, lost = 0;
    double lost_s = 0, bubble_us = 0;
    const char *val = line + used, *after = strchr(val, ',');
    if (*val != '\n' && *val != '\0' && *val != ',') {
        r->val += strtod(val, NULL);
        r->val_ranks++;
    }
    if (after && sscanf(after, ",%d,%d,%*d,%*d,%lf,%*d,%*d,%*d,%lf", &restarts,
                        &lost, &bubble_us, &lost_s) >= 2) {
        s->restarts = restarts > s->restarts ? restarts : s->restarts;
        s->lost = lost > s->lost ? lost : s->lost;
        s->seconds_lost = lost_s > s->seconds_lost ? lost_s : s->seconds_lost;
    }
    s->skipped += rank == 0 && skipped;
    s->dropped += dropped;
    s->tokens = tokens > s->tokens ? tokens : s->tokens;
    s->seconds = time_s > s->seconds ? time_s : s->seconds;
    s->bytes_out += tx;
    s->bytes_in += rx;
    s->mean_step_s += (double)step_us * 1e-6;
    s->mean_bubble_s += bubble_us * 1e-6;
    return add_step_time(r, rank, (double)step_us * 1e-6);
}

static int by_round(const void *a, const void *b)
{
    const struct timed *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return (x->round > y->round) - (x->round < y->round);
}

// Replaces the steps of each rank and round by one, their mean. Returns how
// many remain.
static size_t join_rounds(struct timed *t, size_t n)
{
    size_t left = 0;
    qsort(t, n, sizeof *t, by_round);
    for (size_t i = 0, end; i < n; i = end) {
        struct timed one = t[i];
        for (end = i + 1; end < n && !by_round(&t[i], &t[end]); end++)
            one.s += t[end].s;
        one.s /= (double)(end - i);
        t[left++] = one;
    }
    return left;
}

static int by_rank(const void *a, const void *b)
{
    const struct timed *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return (x->s > y->s) - (x->s < y->s);
}

// The median of the times of a rank, which are in ascending order.
static double middle(const struct timed *t, size_t n)
{
    return (t[(n - 1) / 2].s + t[n / 2].s) / 2;
}

// The step time that gives the job's rate. A worker's rate is that of its
// median step. The job's rate is the sum of its workers' rates, in steps of one
// worker. Under bsp all workers' steps are equally long.
static double pace(struct timed *t, size_t n)
{
    double rate = 0;
    int ranks = 0;
    qsort(t, n, sizeof *t, by_rank);
    for (size_t i = 0, end; i < n; i = end, ranks++) {
        for (end = i; end < n && t[end].rank == t[i].rank; end++)
            ;
        rate += 1 / middle(&t[i], end - i);
    }
    return ranks / rate;
}

int steps_summarise(const char *out, int every, struct steps_summary *sum)
{
    char path[PATH], line[LINE];
    if (text_into(path, sizeof path, "%s/steps.csv", out))
        return -1;
    FILE *f = file_open(path);
    if (!f)
        return -1;
    *sum = (struct steps_summary){.final_loss = NAN,
                                  .best_loss = NAN,
                                  .final_val_loss = NAN,
                                  .best_val_loss = NAN,
                                  .median_step_s = NAN};
    struct reader r = {.sum = sum, .every = every};
    int rc = 0;
    while (!rc && file_line(line, sizeof line, f))
        rc = read_row(&r, line);
    fclose(f);
    finish_step(&r);
    sum->mean_step_s /= (double)r.ntimed;
    sum->mean_bubble_s /= (double)r.ntimed;
    if (r.ntimed) {
        sum->median_step_s = pace(r.timed, join_rounds(r.timed, r.ntimed));
        sum->tokens_per_s =
            (double)sum->tokens / sum->steps / sum->median_step_s;
    }
    free(r.timed);
    return rc;
}
