// step_time.c - measures how long one worker computes a step on this machine.

#include "lockstep/step_time.h"

#include "base/base.h"
#include "base/process.h"
#include "config/keys.h"
#include "lockstep/argv.h"
#include "lockstep/csv.h"
#include "lockstep/recorded.h"
#include "model/model.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

// A few steps of the largest model that a machine can hold end within hours.
static const double most_s = 6 * 3600, remove_s = 60;

// Trains in a child process; the run's files are written to `folder`.
static int train(const struct run *r, const struct model_config *c,
                 const char *folder)
{
    static const char *const formats[] = {"fp32", "bf16", "fp16"};
    struct argv *a = mem_alloc(1, sizeof *a);
    int rc =
        !a || argv_add_program(a, "lockstep") || argv_add(a, "train") ||
                argv_add(a, "model=%s", r->model) ||
                argv_add(a, "layers=%d", c->layers) ||
                argv_add(a, "heads=%d", c->heads) ||
                argv_add(a, "channels=%d", c->channels) ||
                argv_add(a, "context=%d", c->context) ||
                argv_add(a, "vocab_size=%d", c->vocab) ||
                argv_add(a, "precision=%s", formats[r->precision]) ||
                argv_add(a, "recompute=%d", r->recompute) ||
                argv_add(
                    a, "optimizer=%s",
                    key_find(&run_keys, "optimizer")->words[r->optimizer]) ||
                argv_add(a, "momentum=%g", r->momentum) ||
                argv_add(a, "batch=%d", r->batch) ||
                argv_add(a, "accum=%d", r->accum) ||
                (r->data[0] && argv_add(a, "data=%s", r->data)) ||
                (r->threads && argv_add(a, "threads=%d", r->threads)) ||
                argv_add(a, "steps=%d", STEP_TIME_STEPS) ||
                argv_add(a, "warmup=0") || argv_add(a, "eval=0") ||
                argv_add(a, "log=0") || argv_add(a, "out=%s", folder)
            ? -1
            : 0;
    if (!rc) {
        struct process p = {.words = a->at, .out = PROCESS_NULL, .group = true};
        rc = process_run(&p, most_s);
    }
    mem_free(a);
    return rc > 0 ? fail("predict: the training to be measured failed; try: "
                         "compute_ms=")
                  : rc;
}

static int remove_folder(const char *folder)
{
    char command[CONFIG_PATH];
    return text_into(command, sizeof command, "rm -rf '%s'", folder) ||
                   process_shell(&(struct process){0}, command, remove_s)
               ? -1
               : 0;
}

// Reads the median step of a run of one worker, and divides it by kind of work.
// The kind "other" has the begin and the end of the run, so it does not count.
static int read_times(const char *folder, struct step_time *out)
{
    enum { FORWARD, BACKWARD, UPDATE, DATA, KINDS };
    static const char *const kinds[KINDS] = {"forward", "backward", "update",
                                             "data"};
    char path[CONFIG_PATH];
    double s[KINDS] = {0}, all = 0;
    struct csv c;
    cJSON *summary = recorded_json(folder, "summary.json");
    double step = recorded_number(summary, "median_step_s");
    cJSON_Delete(summary);
    if (!summary || text_into(path, sizeof path, "%s/breakdown.csv", folder) ||
        csv_open(&c, path))
        return -1;
    int kind = csv_column(&c, "kind"), seconds = csv_column(&c, "seconds");
    for (int i = 0; i < c.nrows; i++)
        for (int k = 0; k < KINDS; k++)
            if (!strcmp(csv_text(&c, i, kind), kinds[k])) {
                s[k] += csv_number(&c, i, seconds);
                all += csv_number(&c, i, seconds);
            }
    csv_close(&c);
    *out = (struct step_time){.step_s = step,
                              .forward_s = s[FORWARD] / all * step,
                              .backward_s = s[BACKWARD] / all * step,
                              .update_s = s[UPDATE] / all * step};
    return all > 0 ? 0 : fail("%s: no times of its steps", path);
}

int step_time(const struct run *run, const struct model_config *c,
              struct step_time *out)
{
    char folder[] = "/tmp/lockstep-predict-XXXXXX";
    if (!mkdtemp(folder))
        return fail("%s: %s", folder, strerror(errno));
    int rc = train(run, c, folder) || read_times(folder, out) ? -1 : 0;
    return remove_folder(folder) || rc ? -1 : 0;
}
