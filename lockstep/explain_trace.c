// explain_trace.c - reads one step from a run's trace.json.

#include "lockstep/explain_trace.h"

#include "base/base.h"
#include "base/file.h"
#include "config/backends.h"
#include "config/config.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// ---- reading the trace: one event a line (telemetry/trace.h)

// SHARE: a trace is at most this part of the free memory, because a span in
// memory takes up to six times the bytes of its line.
enum { LINE = 64 << 10, SHARE = 8 };

// Parses a line that is one event, and nothing else. Returns NULL for any other
// line.
static cJSON *parse(char *line)
{
    static const char mark[] = "{\"ph\"";
    size_t n = strcspn(line, "\n");
    n -= n > 0 && line[n - 1] == ',';
    line[n] = '\0';
    return strncmp(line, mark, sizeof mark - 1)
               ? NULL
               : cJSON_ParseWithOpts(line, NULL, true);
}

static FILE *open_trace(const char *path)
{
    struct stat is;
    size_t most = mem_available() / SHARE;
    if (access(path, F_OK)) {
        fail("%s: %s; try: a run with trace=on", path, strerror(errno));
        return NULL;
    }
    FILE *f = file_open(path);
    if (!f || (!fstat(fileno(f), &is) && (size_t)is.st_size <= most))
        return f;
    fail("%s: larger than %zu bytes, 1/%d of the free memory", path, most,
         SHARE);
    fclose(f);
    return NULL;
}

int trace_each(const char *folder, take_event *take, void *ctx)
{
    char path[CONFIG_PATH];
    int rc = 0;
    if (text_into(path, sizeof path, "%s/trace.json", folder))
        return -1;
    FILE *f = open_trace(path);
    if (!f)
        return -1;
    char *line = mem_alloc(LINE, 1);
    if (!line)
        rc = -1;
    for (long n = 1; !rc && fgets(line, LINE, f); n++) {
        if (!strchr(line, '\n') && !feof(f))
            rc = fail("%s: line %ld is not text of less than %d bytes", path, n,
                      LINE);
        cJSON *event = rc ? NULL : parse(line);
        rc = event ? take(ctx, event) : rc;
        cJSON_Delete(event);
    }
    mem_free(line);
    fclose(f);
    return rc;
}

const char *event_word(const cJSON *event, const char *name)
{
    const cJSON *j = cJSON_GetObjectItemCaseSensitive(event, name);
    return cJSON_IsString(j) ? j->valuestring : "";
}

double event_number(const cJSON *event, const char *name)
{
    const cJSON *j = cJSON_GetObjectItemCaseSensitive(event, name);
    return cJSON_IsNumber(j) ? j->valuedouble : NAN;
}

static int take_step(void *ctx, const cJSON *event)
{
    struct panel *p = ctx;
    const cJSON *args = cJSON_GetObjectItemCaseSensitive(event, "args");
    if (strcmp(event_word(event, "name"), "step") ||
        *event_word(event, "ph") != 'X')
        return 0;
    if (p->nsteps == p->capacity) {
        size_t capacity = p->capacity ? 2 * p->capacity : 256;
        struct step_span *more = mem_alloc(capacity, sizeof *more);
        if (!more)
            return -1;
        if (p->nsteps)
            memcpy(more, p->steps, p->nsteps * sizeof *more);
        mem_free(p->steps);
        p->steps = more;
        p->capacity = capacity;
    }
    double begin = event_number(event, "ts");
    p->steps[p->nsteps++] =
        (struct step_span){.rank = (int)event_number(event, "pid"),
                           .step = (int)event_number(args, "step"),
                           .begin_us = begin,
                           .end_us = begin + event_number(event, "dur")};
    return 0;
}

// ---- which step

static int by_length(const void *a, const void *b)
{
    const struct step_span *x = a, *y = b;
    double d = (x->end_us - x->begin_us) - (y->end_us - y->begin_us);
    return (d > 0) - (d < 0);
}

// Returns the number of worker 0's step of median length. Sorts p->steps.
static int median_step(struct panel *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->nsteps; i++)
        if (p->steps[i].rank == 0) {
            struct step_span swap = p->steps[n];
            p->steps[n++] = p->steps[i];
            p->steps[i] = swap;
        }
    if (n == 0)
        return fail("%s/trace.json: no steps of worker 0", p->folder);
    qsort(p->steps, n, sizeof *p->steps, by_length);
    return p->steps[n / 2].step;
}

// Sets the step and its time: from the first worker's begin to the last one's
// end. If workers do not wait for each other, it is worker 0's time.
static int choose_step(struct panel *p, int asked)
{
    bool apart = *p->run.consistency;
    p->step = asked ? asked : median_step(p);
    if (p->step < 0)
        return -1;
    p->begin_us = INFINITY;
    p->end_us = 0;
    for (size_t i = 0; i < p->nsteps; i++) {
        const struct step_span *s = &p->steps[i];
        if (s->step != p->step || (apart && s->rank != 0))
            continue;
        p->begin_us = fmin(p->begin_us, s->begin_us);
        p->end_us = fmax(p->end_us, s->end_us);
    }
    return p->end_us > 0
               ? 0
               : fail("%s/trace.json has no step %d; try: without step=",
                      p->folder, p->step);
}

// ---- a run

int panel_open(struct panel *p, const char *folder, int step)
{
    p->folder = folder;
    return recorded_read(&p->run, folder) || trace_each(folder, take_step, p) ||
                   choose_step(p, step)
               ? -1
               : 0;
}

void panel_close(struct panel *p)
{
    mem_free(p->steps);
}

void panel_name(const struct panel *p, char text[128])
{
    const struct recorded *r = &p->run;
    bool travels =
        r->world > 1 && *r->transport && strcmp(r->transport, "none");
    const char *shard = r->row && r->row->shards ? r->shard : "";
    snprintf(text, 128, "%s%s%s%s%s%s%s, %d worker%s", r->backend,
             *shard ? " shard=" : "", shard, travels ? " over " : "",
             travels ? r->transport : "", *r->consistency ? " " : "",
             r->consistency, r->world, r->world > 1 ? "s" : "");
}
