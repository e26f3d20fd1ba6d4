// simulate_pipeline.c - `lockstep simulate pipeline=..` computes the timetables
// of a pipeline's schedules (pipeline/timetable.h).
//
// The user gives the times of a stage, measured or guessed. A hop always takes
// the same time, even if several messages are sent at once.

#include "lockstep/simulate_kinds.h"

#include "lockstep/list.h"
#include "lockstep/study.h"

#include "base/base.h"
#include "base/file.h"
#include "config/keys.h"
#include "config/value.h"
#include "pipeline/timetable.h"

#include <errno.h>
#include <string.h>

enum { ALL = 0 };

struct question {
    // The values of the command line.
    int pipeline; // 0 for all
    int stages, micro, chunks, ahead;
    double hop_ms;
    char forward_text[CONFIG_PATH], backward_text[CONFIG_PATH];
    char out[CONFIG_PATH];
    // Derived from them: seconds of one chunk of a stage.
    double forward_s[PIPELINE_STAGES], backward_s[PIPELINE_STAGES];
};

static const char *const kinds[] = {"all", "naive", "gpipe", "1f1b", NULL};

// Explains what to write for "interleaved", the usual name of 1f1b with several
// chunks.
static int check_name(const char *key, const char *value)
{
    return strcmp(value, "interleaved")
               ? 0
               : fail("%s=%s: that is 1f1b with several chunks a stage; try: "
                      "%s=1f1b chunks=2",
                      key, value, key);
}

#define AT(member) offsetof(struct question, member), false

static const struct key rows[] = {
    {"pipeline=", "pipeline", "all", KEY_CHOICE, AT(pipeline), .words = kinds,
     .check = check_name, .help = "the schedule"},
    {"pipeline=", "stages", "4", KEY_INT, AT(stages), .min = 1,
     .max = PIPELINE_STAGES, .help = "parts of the model, one for each worker"},
    {"pipeline=", "micro", "8", KEY_INT, AT(micro), .min = 1,
     .max = PIPELINE_MICRO, .help = "micro-batches of a step"},
    {"pipeline=", "chunks", "1", KEY_INT, AT(chunks), .min = 1,
     .max = PIPELINE_CHUNKS,
     .help = "parts of the model in each stage; above 1: interleaved"},
    {"pipeline=", "ahead", "0", KEY_INT, AT(ahead), .min = 0,
     .max = PIPELINE_STAGES,
     .help = "1f1b: further forwards a stage runs ahead for each hop"},
    {"pipeline=", "forward_ms", "10", KEY_TEXT, AT(forward_text),
     .unit = "MS[,MS..]", .help = "one time for all stages, or one for each"},
    {"pipeline=", "backward_ms", "20", KEY_TEXT, AT(backward_text),
     .unit = "MS[,MS..]", .help = "one time for all stages, or one for each"},
    {"pipeline=", "hop_ms", "0", KEY_NUMBER, AT(hop_ms), .min = 0, .max = 1e6,
     .unit = "ms", .help = "time of a message to the next stage"},
    {"pipeline=", "out", "runs/pipeline", KEY_TEXT, AT(out), .unit = "FOLDER",
     .help = "the folder of timetable.csv and the figure"},
};

static const struct key_table keys = {rows, sizeof rows / sizeof *rows,
                                      "lockstep simulate --help"};

static void explain(FILE *f)
{
    fprintf(f, "\nWith pipeline= it computes the timetable of a step of a "
               "model that is divided into\nstages, and draws it. It needs no "
               "SimGrid.\n");
    key_help(f, &keys);
    fprintf(f, "  lockstep simulate pipeline=all stages=2 forward_ms=26 "
               "backward_ms=51 hop_ms=8.8\n");
}

// ---- the question

// Reads one time for all stages, or one for each stage.
static int read_times(const struct question *q, const char *key,
                      const char *text, double *out)
{
    char copy[CONFIG_PATH], *save = NULL;
    int n = 0;
    if (text_into(copy, sizeof copy, "%s", text))
        return -1;
    for (char *w = strtok_r(copy, ",", &save); w;
         w = strtok_r(NULL, ",", &save)) {
        double ms;
        if (value_real(w, &ms) || !(ms >= 0 && ms <= 1e9))
            return fail("simulate: %s=%s: %s: must be 0 .. 1e9 milliseconds",
                        key, text, w);
        if (n < PIPELINE_STAGES)
            out[n] = ms * 1e-3;
        n++;
    }
    if (n != 1 && n != q->stages)
        return fail("simulate: %s=%s: %d times for %d stages; try: one time, "
                    "or one for each stage",
                    key, text, n, q->stages);
    for (int s = n; s < q->stages; s++)
        out[s] = out[0];
    return 0;
}

static struct pipeline pipeline_of(const struct question *q, int kind)
{
    return (struct pipeline){kind, q->stages, q->micro, q->chunks, q->ahead};
}

// Returns whether the words ask for a schedule. pipeline=all means those that
// support the other words: only 1f1b supports chunks and ahead.
static bool is_asked(const struct question *q, int kind)
{
    struct pipeline p = pipeline_of(q, kind);
    return q->pipeline == ALL ? !pipeline_check(&p) : q->pipeline - 1 == kind;
}

static int ask(struct question *q, int nwords, char **words)
{
    key_defaults(&keys, q);
    if (key_words(&keys, q, nwords, words) ||
        read_times(q, "forward_ms", q->forward_text, q->forward_s) ||
        read_times(q, "backward_ms", q->backward_text, q->backward_s))
        return -1;
    struct pipeline p =
        pipeline_of(q, q->pipeline == ALL ? PIPELINE_1F1B : q->pipeline - 1);
    return pipeline_check(&p);
}

// ---- the answer

static void write_entries(FILE *f, const struct pipeline *p,
                          const struct timetable_entry *e, int n)
{
    for (int i = 0; i < n; i++)
        fprintf(f, "%s,%d,%s,%d,%d,%.9g,%.9g\n", pipeline_names[p->kind],
                e[i].stage,
                e[i].action.kind == ACTION_FORWARD ? "forward" : "backward",
                e[i].action.micro, e[i].action.chunk, e[i].begin_s * 1e3,
                e[i].end_s * 1e3);
}

static void say(const struct question *q, const struct pipeline *p,
                double seconds)
{
    double busy = 0;
    for (int s = 0; s < p->stages; s++)
        busy += p->micro * p->chunks * (q->forward_s[s] + q->backward_s[s]);
    printf("%-8s %10.6g %8.1f %11.1f   ", pipeline_names[p->kind],
           seconds * 1e3,
           seconds > 0 ? 100 * (1 - busy / (seconds * p->stages)) : 0,
           100 * timetable_bubble(p));
    for (int s = 0; s < p->stages; s++)
        printf(" %d", timetable_slots(p, s));
    printf("\n");
}

static int row(const struct question *q, int kind, FILE *f)
{
    struct pipeline p = pipeline_of(q, kind);
    struct pipeline_times t = {q->forward_s, q->backward_s, q->hop_ms * 1e-3,
                               NULL};
    int n = p.stages * timetable_length(&p);
    struct timetable_entry *e = mem_alloc((size_t)n, sizeof *e);
    double seconds = e ? timetable_run(&p, &t, e) : -1;
    if (seconds >= 0) {
        say(q, &p, seconds);
        write_entries(f, &p, e, n);
    }
    mem_free(e);
    return seconds < 0 ? -1 : 0;
}

static int answer(const struct question *q)
{
    char path[CONFIG_PATH];
    if (file_make_folder(q->out) < 0 ||
        text_into(path, sizeof path, "%s/timetable.csv", q->out))
        return -1;
    FILE *f = fopen(path, "we");
    if (!f)
        return fail("%s: %s", path, strerror(errno));
    int rc = 0;
    fprintf(f, "schedule,stage,action,micro,chunk,begin_ms,end_ms\n");
    printf("%d stages, %d micro-batches, %d chunk%s a stage; forward %s ms, "
           "backward %s ms, a hop %g ms\n\n"
           "%-8s %10s %8s %11s    %s\n",
           q->stages, q->micro, q->chunks, q->chunks == 1 ? "" : "s",
           q->forward_text, q->backward_text, q->hop_ms, "schedule",
           "step (ms)", "idle (%)", "formula (%)", "slots of each stage");
    for (int k = 0; !rc && k < PIPELINE_KINDS; k++)
        if (is_asked(q, k))
            rc = row(q, k, f);
    if (fclose(f) && !rc)
        rc = fail("%s: %s", path, strerror(errno));
    if (rc)
        return -1;
    printf("\nidle: share of the stages' time. formula: the same for equal "
           "stages and a hop of 0 ms.\nslots: micro-batches whose "
           "activations a stage keeps at the same time.\n%s\n",
           path);
    return study_call(stdout, "report", q->out, "figure=pipeline");
}

static int simulate(int nwords, char **words)
{
    struct question *q = mem_alloc(1, sizeof *q);
    int rc = !q || ask(q, nwords, words) || answer(q) ? -1 : 0;
    mem_free(q);
    return rc;
}

const struct simulate_kind simulate_pipeline = {"pipeline=", explain, simulate};
