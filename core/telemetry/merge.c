// merge.c - merges the rows of all ranks into one file, and summarises them.
//
// The rows of each rank are sorted by step. So merging reads all files at the
// same time and writes, for each step, the rows of the ranks that have it, in
// rank order.

#include "telemetry/steps.h"

#include "base/base.h"
#include "base/file.h"
#include "base/median.h"
#include "telemetry/cell.h"
#include "telemetry/trace_parts.h"

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

// Opens a file with rows of a rank, if it is there. Copies its header, unless
// there is one already.
static int part_open(struct part *p, const char *path, int rank,
                     char header[LINE])
{
    p->rank = rank;
    p->step = INT_MAX;
    if (access(path, F_OK))
        return 0;
    p->file = file_open_here(path);
    if (!p->file)
        return -1;
    if (fgets(p->line, sizeof p->line, p->file) && !*header)
        strcpy(header, p->line);
    part_next(p);
    return 0;
}

// Opens the parts of all ranks. If there are any, a rank without one, which has
// ended before an earlier merge, has its rows in the whole file. Returns how
// many parts there are, or -1 after fail().
static int parts_open(struct part *parts, int world, const char *out,
                      const char *whole, char header[LINE])
{
    char path[PATH];
    int n = 0;
    for (int r = 0; r < world; r++) {
        if (text_into(path, sizeof path, "%s/steps.%d.csv", out, r) ||
            part_open(&parts[r], path, r, header))
            return -1;
        n += parts[r].file != NULL;
    }
    for (int r = 0; n > 0 && r < world; r++)
        if (!parts[r].file && part_open(&parts[r], whole, r, header))
            return -1;
    return n;
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
    char path[PATH], header[LINE] = "";
    if (world == 1)
        return 0;
    if (text_into(path, sizeof path, "%s/steps.csv", out))
        return -1;
    struct part *parts = mem_alloc((size_t)world, sizeof *parts);
    if (!parts)
        return -1;
    int n = parts_open(parts, world, out, path, header);
    FILE *to = n > 0 ? file_next(path) : NULL;
    int rc = n < 0 || (n > 0 && !to) ? -1 : 0;
    if (to) {
        fputs(header, to);
        merge_rows(parts, world, to);
    }
    for (int r = 0; r < world; r++) {
        if (to && parts[r].file && !feof(parts[r].file)) // so it is kept
            rc = fail("%s: the rows of rank %d cannot be read to their end",
                      path, r);
        if (parts[r].file)
            fclose(parts[r].file);
    }
    mem_free(parts);
    if (!to) // it was merged before, or the parts could not be opened
        return rc;
    return file_finish(to, path, rc) || parts_drop_csv(out, "steps", world) ? -1
                                                                            : 0;
}

struct timed { // one step of a rank
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

// The step time that gives the job's rate. A worker's rate is that of its
// median step, where the steps of a round count as one, their mean. The job's
// rate is the sum of its workers' rates, in steps of one worker. Under bsp all
// workers' steps are equally long. -1 after fail().
static double pace(struct timed *t, size_t n)
{
    double rate = 0, *means = mem_alloc(n, sizeof *means);
    int ranks = 0, rounds = 0;
    if (!means)
        return -1;
    qsort(t, n, sizeof *t, by_round);
    for (size_t i = 0, end; i < n; i = end) {
        double s = t[i].s;
        for (end = i + 1; end < n && !by_round(&t[i], &t[end]); end++)
            s += t[end].s;
        means[rounds++] = s / (double)(end - i);
        if (end < n && t[end].rank == t[i].rank)
            continue;
        rate += 1 / median(means, rounds);
        rounds = 0;
        ranks++;
    }
    mem_free(means);
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
        sum->median_step_s = pace(r.timed, r.ntimed);
        sum->tokens_per_s =
            (double)sum->tokens / sum->steps / sum->median_step_s;
    }
    free(r.timed);
    return sum->median_step_s < 0 ? -1 : rc;
}
