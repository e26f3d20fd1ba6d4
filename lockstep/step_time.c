// step_time.c - measures how long one worker computes a step on this machine.

#include "lockstep/step_time.h"

#include "base/base.h"
#include "config/config.h"
#include "lockstep/argv.h"
#include "lockstep/result.h"
#include "model/model.h"
#include "optim/optim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static _Noreturn void become(const struct argv *a)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null >= 0)
        dup2(null, 1);
    execv(a->at[0], a->at);
    _exit(127);
}

// Trains in a child process; the run's files are written to `folder`.
static int train(const struct run *r, const struct model_config *c,
                 const char *folder)
{
    static const char *const formats[] = {"fp32", "bf16", "fp16"};
    struct argv *a = mem_alloc(1, sizeof *a);
    int status = 0;
    if (!a || argv_add_program(a, "lockstep") || argv_add(a, "train") ||
        argv_add(a, "model=%s", r->model) ||
        argv_add(a, "layers=%d", c->layers) ||
        argv_add(a, "heads=%d", c->heads) ||
        argv_add(a, "channels=%d", c->channels) ||
        argv_add(a, "context=%d", c->context) ||
        argv_add(a, "vocab_size=%d", c->vocab) ||
        argv_add(a, "precision=%s", formats[r->precision]) ||
        argv_add(a, "recompute=%d", r->recompute) ||
        argv_add(a, "optimizer=%s",
                 r->optimizer == OPTIM_SGD ? "sgd" : "adamw") ||
        argv_add(a, "momentum=%g", r->momentum) ||
        argv_add(a, "batch=%d", r->batch) ||
        argv_add(a, "accum=%d", r->accum) ||
        (r->data[0] && argv_add(a, "data=%s", r->data)) ||
        (r->threads && argv_add(a, "threads=%d", r->threads)) ||
        argv_add(a, "steps=%d", STEP_TIME_STEPS) || argv_add(a, "warmup=0") ||
        argv_add(a, "eval=0") || argv_add(a, "log=0") ||
        argv_add(a, "out=%s", folder)) {
        mem_free(a);
        return -1;
    }
    pid_t pid = fork();
    if (pid == 0)
        become(a);
    mem_free(a);
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return fail("predict: %s", strerror(errno));
    return status ? fail("predict: the training to be measured failed; try: "
                         "compute_ms=")
                  : 0;
}

static int remove_folder(const char *folder)
{
    char command[CONFIG_PATH];
    return text_into(command, sizeof command, "rm -rf '%s'", folder) ||
           system(command);
}

int step_time(const struct run *run, const struct model_config *c,
              struct step_time *out)
{
    char folder[] = "/tmp/lockstep-predict-XXXXXX";
    struct result r = {0};
    if (!mkdtemp(folder))
        return fail("%s: %s", folder, strerror(errno));
    int rc = train(run, c, folder) || result_read(&r, folder) ? -1 : 0;
    if (!rc) {
        // By kind_names: data, forward, backward and update; not "other",
        // which has the begin and the end of the run.
        const double *s = r.share;
        double step = s[0] + s[1] + s[2] + s[4];
        double each = r.value[METRIC_STEP_S] / step;
        *out = (struct step_time){.step_s = r.value[METRIC_STEP_S],
                                  .forward_s = s[1] * each,
                                  .backward_s = s[2] * each,
                                  .update_s = s[4] * each};
    }
    result_free(&r);
    return remove_folder(folder) || rc ? -1 : 0;
}
