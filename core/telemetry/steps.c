// steps.c - writes steps.csv.

#include "telemetry/steps.h"

#include "base/base.h"
#include "base/file.h"
#include "telemetry/cell.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH = 1200, LINE = 2048 };
enum { RANK = 2, RESTARTS = 23, LOST_S = 31, COLUMNS = 35 };

static const char header[] =
    "run,backend,rank,step,tokens,time_s,loss,lr,grad_norm,loss_scale,skipped,"
    "dropped,lag,t_step_us,t_data_us,t_compute_us,t_ready_us,t_sync_us,"
    "bytes_tx,bytes_rx,head_tx,head_rx,val_loss,restarts,steps_lost,"
    "stage_tx,stage_rx,t_bubble_us,slice_tx,slice_rx,t_join_us,lost_s,"
    "own_norm,piece_tx,piece_rx\n";

struct steps {
    FILE *file;
    char path[PATH];
    char run[CELL_NAME], backend[64];
    int rank, restarts, lost;
    double lost_s;
};

static int part_path(char path[PATH], const char *out, int rank)
{
    return text_into(path, PATH, "%s/steps.%d.csv", out, rank);
}

// Removes the files of ranks that this part of the run does not have. An
// earlier part with more workers may have been killed before it merged them.
static int drop_others(const char *out, int world)
{
    char path[PATH];
    for (int r = world == 1 ? 0 : world;; r++) {
        if (part_path(path, out, r))
            return -1;
        if (unlink(path))
            return errno == ENOENT ? 0 : fail("%s: %s", path, strerror(errno));
    }
}

// Copies a row, with 0 in the columns that it lacks because an older version
// wrote it.
static void copy_row(FILE *to, const char *line)
{
    int columns = 1;
    fputs(line, to);
    while (*(line = cell_end(line)) == ',') {
        columns++;
        line++;
    }
    for (; columns < COLUMNS; columns++)
        fputs(",0", to);
    fputc('\n', to);
}

// Copies the rows of this rank up to step `keep`. Steps that are done again
// after a restart count as lost. So do the steps that the others did without
// this worker: it has `joined` them later, or was away when the checkpoint was
// written from which all went on. Those before a row beyond `keep` have counted
// when the worker came back to do that row.
static int copy_rows(struct steps *s, FILE *from, FILE *to, int keep,
                     bool joined, double *time_s)
{
    char line[LINE];
    int dropped = 0, restarts = 0, last = 0;
    double end = 0; // time of the last row, kept or not
    while (file_line(line, sizeof line, from)) {
        int whose, step;
        double t;
        if (sscanf(cell_at(line, RANK), "%d,%d,%*d,%lf", &whose, &step, &t) !=
                3 ||
            whose != s->rank)
            continue;
        sscanf(cell_at(line, RESTARTS), "%d,%d", &restarts, &s->lost);
        sscanf(cell_at(line, LOST_S), "%lf", &s->lost_s);
        end = t;
        dropped += step > keep;
        if (step > keep)
            continue;
        *time_s = t;
        last = step;
        line[strcspn(line, "\n")] = '\0';
        copy_row(to, line);
    }
    if (s->restarts) {
        s->restarts = restarts < s->restarts ? s->restarts : restarts + 1;
        if (dropped)
            s->lost += joined ? 0 : dropped;
        else
            s->lost += joined || last ? keep - last : 0;
        s->lost_s += end > *time_s ? end - *time_s : 0;
    } else {
        s->restarts = restarts;
    }
    return ferror(from) ? fail("%s: cannot be read to its end", s->path) : 0;
}

// Opens the file with the rows of the run so far: this rank's own file, or
// steps.csv if the files were merged. *old stays NULL if there is neither. 0,
// or -1 after fail().
static int open_old(const struct steps *s, const char *dir, FILE **old)
{
    char path[PATH];
    if (part_path(path, dir, s->rank))
        return -1;
    if (access(path, F_OK)) {
        if (text_into(path, sizeof path, "%s/steps.csv", dir))
            return -1;
        if (access(path, F_OK))
            return 0;
    }
    *old = file_open_here(path);
    return *old ? 0 : -1;
}

int steps_open(struct steps **out, const char *dir, const char *backend,
               int rank, int world, int keep, bool joined, int restarts,
               double *time_s)
{
    struct steps *s = mem_alloc(1, sizeof *s);
    if (!s)
        return -1;
    const char *slash = strrchr(dir, '/');
    FILE *to, *old = NULL;
    s->rank = rank;
    s->restarts = restarts;
    *time_s = 0;
    if (cell_write(s->run, sizeof s->run, slash ? slash + 1 : dir) ||
        text_into(s->backend, sizeof s->backend, "%s", backend) ||
        (world == 1 ? text_into(s->path, PATH, "%s/steps.csv", dir)
                    : part_path(s->path, dir, rank)) ||
        !(to = file_next(s->path)))
        goto drop;
    fputs(header, to);
    int rc = keep > 0 || restarts ? open_old(s, dir, &old) : 0;
    if (old) {
        rc = copy_rows(s, old, to, keep, joined, time_s);
        fclose(old);
    } else if (joined) { // its rows, if there were any, are not here
        s->lost = keep;
    }
    if (file_finish(to, s->path, rc) || (rank == 0 && drop_others(dir, world)))
        goto drop;
    s->file = file_append(s->path);
    if (!s->file)
        goto drop;
    setvbuf(s->file, NULL, _IOLBF, LINE); // each row reaches the file at once
    *out = s;
    return 0;
drop:
    mem_free(s);
    return -1;
}

int steps_write(struct steps *s, const struct step_row *r)
{
    char val[32] = "";
    if (!isnan(r->val_loss))
        snprintf(val, sizeof val, "%.9g", r->val_loss);
    int n = fprintf(
        s->file,
        "%s,%s,%d,%d,%llu,%.6f,%.9g,%.9g,%.9g,%g,%d,%d,%d,%llu,%llu,%llu,%llu,"
        "%llu,%llu,%llu,%llu,%llu,%s,%d,%d,%llu,%llu,%llu,"
        "%llu,%llu,%llu,%.6f,%.9g,%llu,%llu\n",
        s->run, s->backend, s->rank, r->step, (unsigned long long)r->tokens,
        r->time_s, r->loss, r->lr, r->grad_norm, r->loss_scale, r->skipped,
        r->dropped, r->lag, (unsigned long long)r->step_us,
        (unsigned long long)r->data_us, (unsigned long long)r->compute_us,
        (unsigned long long)r->ready_us, (unsigned long long)r->sync_us,
        (unsigned long long)r->bytes_out, (unsigned long long)r->bytes_in,
        (unsigned long long)r->head_out, (unsigned long long)r->head_in, val,
        s->restarts, s->lost, (unsigned long long)r->stage_out,
        (unsigned long long)r->stage_in, (unsigned long long)r->bubble_us,
        (unsigned long long)r->slice_out, (unsigned long long)r->slice_in,
        (unsigned long long)r->join_us, s->lost_s, r->own_norm,
        (unsigned long long)r->piece_out, (unsigned long long)r->piece_in);
    if (n < 0 || ferror(s->file))
        return fail("%s: %s", s->path, strerror(errno));
    return 0;
}

int steps_close(struct steps **s)
{
    if (!*s)
        return 0;
    int rc = file_close((*s)->file, (*s)->path);
    mem_free(*s);
    *s = NULL;
    return rc;
}
