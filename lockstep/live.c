// live.c - reads the last rows of each worker's CSV files.

#include "lockstep/live.h"

#include "base/base.h"
#include "base/file.h"
#include "base/median.h"
#include "config/config.h"
#include "lockstep/csv.h"
#include "lockstep/recorded.h"

#include <cjson/cJSON.h>
#include <glob.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TAIL = 1 << 15, LAST_STEPS = 20, MOST_WORKERS = 4096 };

static void note(time_t *newest, const struct stat *st)
{
    *newest = st->st_mtime > *newest ? st->st_mtime : *newest;
}

// Reads the header of a CSV file and its last whole rows, as a smaller CSV
// file. Sets *newest to the time of the last row, if that is later. 0, or -1 if
// there are no rows.
static int read_tail(struct csv *c, const char *path, time_t *newest)
{
    FILE *f = file_open(path);
    int fd = f ? fileno(f) : -1;
    struct stat st;
    char *text = mem_alloc(2 * TAIL + 2, 1);
    ssize_t head = 0, tail = 0;
    if (fd >= 0 && text && !fstat(fd, &st)) {
        off_t from = st.st_size > TAIL ? st.st_size - TAIL : 0;
        head = pread(fd, text, TAIL, 0);
        char *end = head > 0 ? memchr(text, '\n', (size_t)head) : NULL;
        head = end ? end + 1 - text : 0;
        if (head && from < head)
            from = head;
        tail = head ? pread(fd, text + head, TAIL, from) : 0;
        if (tail > 0 && from > head) { // the tail begins within a row
            char *row = memchr(text + head, '\n', (size_t)tail);
            size_t part = row ? (size_t)(row + 1 - text - head) : (size_t)tail;
            memmove(text + head, text + head + part, (size_t)tail - part);
            tail -= (ssize_t)part;
        }
        // The last row may not have been written to its end yet.
        while (tail > 0 && text[head + tail - 1] != '\n')
            tail--;
    }
    if (f)
        fclose(f);
    if (text && tail > 0) {
        text[head + tail] = '\0';
        note(newest, &st);
        return csv_take(c, text, path);
    }
    mem_free(text);
    return -1;
}

// Opens OUT/NAME.WHO.csv while a run of several workers is going on. Else, or
// after these files are merged, opens OUT/NAME.csv.
static int open_part(struct csv *c, const char *dir, const char *name,
                     const char *who, time_t *newest)
{
    char path[CONFIG_PATH];
    if (text_into(path, sizeof path, "%s/%s.%s.csv", dir, name, who))
        return -1;
    if (access(path, R_OK) &&
        text_into(path, sizeof path, "%s/%s.csv", dir, name))
        return -1;
    return read_tail(c, path, newest);
}

static void read_steps(struct live *l, struct live_worker *w, const char *who)
{
    struct csv c;
    double us = 0, compute_us = 0, first = NAN, tokens = NAN;
    int n = 0;
    if (open_part(&c, l->dir, "steps", who, &l->row_at))
        return;
    int rank = csv_column(&c, "rank"), loss = csv_column(&c, "loss");
    int val = csv_column(&c, "val_loss"), step = csv_column(&c, "step");
    for (int i = c.nrows - 1; i >= 0; i--) {
        if (strcmp(csv_text(&c, i, rank), who))
            continue;
        if (isnan(w->loss)) {
            w->step = (int)csv_number(&c, i, step);
            w->loss = csv_number(&c, i, loss);
        }
        if (isnan(w->val_loss))
            w->val_loss = csv_number(&c, i, val);
        if (n == LAST_STEPS)
            continue;
        n++;
        us += csv_number(&c, i, csv_column(&c, "t_step_us"));
        compute_us += csv_number(&c, i, csv_column(&c, "t_compute_us"));
        first = csv_number(&c, i, csv_column(&c, "tokens"));
        tokens = isnan(tokens) ? first / csv_number(&c, i, step) : tokens;
    }
    if (n && us > 0) {
        w->tokens_per_s = tokens / l->world * n / (us * 1e-6);
        w->compute_s = compute_us * 1e-6 / n;
    }
    csv_close(&c);
}

static void read_samples(struct live *l, struct live_worker *w, const char *who)
{
    struct csv c;
    double host = NAN, gpu = NAN;
    if (open_part(&c, l->dir, "util", who, &l->heard_at))
        return;
    int rank = csv_column(&c, "rank"), metric = csv_column(&c, "metric");
    const struct {
        const char *metric;
        double *to;
    } wanted[] = {{"compute_share", &host},
                  {"gpu_compute_share", &gpu},
                  {"resident_bytes", &w->bytes},
                  {"gpu_memory_bytes", &w->gpu_bytes},
                  {"gpu_power_w", &w->gpu_power_w}};
    for (int i = c.nrows - 1; i >= 0; i--)
        for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++)
            if (isnan(*wanted[k].to) && !strcmp(csv_text(&c, i, rank), who) &&
                !strcmp(csv_text(&c, i, metric), wanted[k].metric))
                *wanted[k].to = csv_number(&c, i, csv_column(&c, "value"));
    w->busy = isnan(gpu) ? host : gpu;
    csv_close(&c);
}

static int count_servers(const char *dir)
{
    char path[CONFIG_PATH];
    int n = 0;
    while (!text_into(path, sizeof path, "%s/util.s%d.csv", dir, n) &&
           access(path, F_OK) == 0)
        n++;
    return n;
}

static bool has(const char *dir, const char *name)
{
    char path[CONFIG_PATH];
    return !text_into(path, sizeof path, "%s/%s", dir, name) &&
           access(path, F_OK) == 0;
}

// Finds the run: DIR itself, or for an experiment the run with the newest
// run.json.
static int find_run(struct live *l, const char *dir)
{
    char pattern[CONFIG_PATH];
    glob_t found = {0};
    struct stat st;
    time_t newest = 0;
    if (has(dir, "run.json"))
        return text_into(l->dir, sizeof l->dir, "%s", dir);
    if (text_into(pattern, sizeof pattern, "%s/cells/*/r*/run.json", dir))
        return -1;
    if (glob(pattern, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++)
            if (!stat(found.gl_pathv[i], &st) && st.st_mtime >= newest) {
                newest = st.st_mtime;
                snprintf(l->dir, sizeof l->dir, "%.*s",
                         (int)(strrchr(found.gl_pathv[i], '/') -
                               found.gl_pathv[i]),
                         found.gl_pathv[i]);
            }
    globfree(&found);
    return *l->dir ? 0
                   : fail("%s: no run has begun here, there is no run.json; "
                          "try: the folder that out= names",
                          dir);
}

static int read_run(struct live *l)
{
    char path[CONFIG_PATH];
    struct stat st;
    if (text_into(path, sizeof path, "%s/run.json", l->dir))
        return -1;
    if (!stat(path, &st))
        note(&l->heard_at, &st);
    char *text = file_read(path, 1 << 20);
    cJSON *run = text ? cJSON_Parse(text) : NULL;
    mem_free(text);
    const cJSON *world = cJSON_GetObjectItemCaseSensitive(run, "world");
    const cJSON *backend = cJSON_GetObjectItemCaseSensitive(run, "backend");
    const cJSON *steps =
        cJSON_GetObjectItemCaseSensitive(recorded_settings(run), "steps");
    int rc = 0;
    if (!cJSON_IsNumber(world) || !cJSON_IsString(backend) ||
        world->valueint < 1 || world->valueint > MOST_WORKERS)
        rc = fail("%s: not the run.json of a run", path);
    else
        rc = text_into(l->backend, sizeof l->backend, "%s",
                       backend->valuestring);
    text_visible(l->backend);
    l->world = rc ? 0 : world->valueint;
    l->steps = cJSON_IsNumber(steps) ? steps->valueint : 0;
    cJSON_Delete(run);
    return rc;
}

int live_read(struct live *l, const char *dir)
{
    char who[16];
    *l = (struct live){0};
    if (find_run(l, dir) || read_run(l))
        return -1;
    // An experiment is over when it has a table, not when one cell is over.
    l->ended = has(l->dir, "summary.json");
    l->over = l->ended && (has(dir, "run.json") || has(dir, "table.csv"));
    l->n = l->world + count_servers(l->dir);
    l->at = mem_alloc((size_t)l->n, sizeof *l->at);
    if (!l->at)
        return -1;
    for (int i = 0; i < l->n; i++) {
        struct live_worker *w = &l->at[i];
        bool server = i >= l->world;
        *w = (struct live_worker){server, server ? i - l->world : i,
                                  0,      NAN,
                                  NAN,    NAN,
                                  NAN,    NAN,
                                  NAN,    NAN,
                                  NAN};
        snprintf(who, sizeof who, "%s%d", server ? "s" : "", w->rank);
        if (!server)
            read_steps(l, w, who);
        read_samples(l, w, who);
    }
    if (l->row_at > l->heard_at)
        l->heard_at = l->row_at;
    return 0;
}

void live_free(struct live *l)
{
    mem_free(l->at);
    *l = (struct live){0};
}

double live_slowness(const struct live *l, int worker)
{
    double v[MOST_WORKERS];
    int n = 0;
    for (int i = 0; i < l->world; i++)
        if (!isnan(l->at[i].compute_s))
            v[n++] = l->at[i].compute_s;
    return n ? l->at[worker].compute_s / median(v, n) : NAN;
}
