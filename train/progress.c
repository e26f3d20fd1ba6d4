// progress.c - progress reports for a person or for the launcher.

#include "train/progress.h"

#include "base/base.h"
#include "base/median.h"
#include "cluster/cluster.h"
#include "config/backends.h"
#include "config/value.h"
#include "data/data.h"
#include "telemetry/steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t say_every_ns = 200000000;

// Whose losses the log shows. Every part of a replica knows the replica's loss.
static const char *whose_losses(const struct trainer *t)
{
    if (t->replicas == 1)
        return "";
    if (t->scatters)
        return "; losses below are means over all workers";
    return t->parts ? "; losses below are those of replica 0"
                    : "; losses below are those of worker 0";
}

void progress_begin(struct progress *p, const struct trainer *t)
{
    char need[32], parts[MEMORY_TEXT], stages[32] = "", slices[32] = "";
    *p = (struct progress){
        .supervised = getenv("LOCKSTEP_PROGRESS") != NULL,
        .began = now_ns(),
        .first_step = t->step,
    };
    if (t->cluster->rank)
        return;
    if (t->plan.stages > 1)
        snprintf(stages, sizeof stages, ", %d stages", t->plan.stages);
    if (t->row)
        snprintf(slices, sizeof slices, ", %d slices", t->row->world);
    log_line("%s, %d worker%s%s%s, %d thread%s each; %zu parameters%s",
             t->backend->name, t->cluster->world,
             t->cluster->world > 1 ? "s" : "", stages, slices, t->run.threads,
             t->run.threads > 1 ? "s" : "", model_nparams(&t->whole),
             whose_losses(t));
    struct data_info info;
    data_info(t->data, &info);
    log_line("%s: %zu symbols, %zu tokens to train on, %zu to validate",
             info.source, info.vocab_size, info.train_tokens, info.val_tokens);
    char mistake[CONFIG_PATH], pace[32], backward[32];
    const char *wrong = config_mistake(&t->run, mistake);
    if (t->run.pace.given)
        log_line("pace=%s,%s: workers sleep instead of computing: bytes and "
                 "waits are real, and nothing is learned",
                 value_text(pace, t->run.pace.forward_ms),
                 value_text(backward, t->run.pace.backward_ms));
    if (wrong)
        log_line("warning: %s: WRONG ON PURPOSE: %s", mistake, wrong);
    double whole = 3 / (1 - t->run.beta2); // docs/squeeze.md
    if (t->settings.freeze && t->settings.freeze < whole)
        log_line("warning: freeze=%d: AdamW's second moment is complete after "
                 "some 3 / (1 - beta2) = %.0f steps",
                 t->settings.freeze, whole);
    log_line("a worker needs %s: %s", mem_text(need, memory_sum(&t->memory)),
             memory_text(parts, &t->memory));
}

// Log the predicted and the actual peak memory after the last step.
static void say_memory(const struct trainer *t)
{
    char peak[32], predicted[32], shown[32], others[64] = "";
    const struct memory *m = &t->memory;
    if (t->cluster->rank)
        return;
    if (m->mapped)
        snprintf(others, sizeof others, " and %s of other workers' vectors",
                 mem_text(shown, m->mapped));
    log_line("peak memory %s, predicted %s%s", mem_text(peak, mem_peak()),
             mem_text(predicted, memory_sum(m)), others);
}

// This worker's tokens a second in its median step.
static double token_rate(const struct progress *p, const struct trainer *t,
                         const struct step_row *row)
{
    double us[PROGRESS_STEPS];
    int done = row->step - p->first_step;
    int n = done < PROGRESS_STEPS ? done : PROGRESS_STEPS;
    for (int i = 0; i < n; i++)
        us[i] = (double)p->step_us[i];
    double middle = median(us, n);
    double tokens = (double)row->tokens / row->step / t->cluster->world;
    return middle > 0 ? tokens * 1e6 / middle : 0;
}

// The loss to report. If worker 0 reads all batches, it reports the mean of all
// workers' losses; in all other cases a worker reports its own.
static double known_loss(const struct trainer *t, const struct step_row *row)
{
    return t->scatters && t->replica == 0 ? t->mean_loss : row->loss;
}

static void say_line(const struct trainer *t, const struct step_row *row,
                     double tokens, double left)
{
    char val[32] = "", time[32];
    if (!isnan(row->val_loss))
        snprintf(val, sizeof val, "  val %.4f", row->val_loss);
    printf("step %d/%d  loss %.4f%s  %.0f tokens/s  %s left\n", row->step,
           t->run.steps, known_loss(t, row), val, tokens * t->cluster->world,
           value_seconds(time, left));
    fflush(stdout);
}

void progress_step(struct progress *p, const struct trainer *t,
                   const struct step_row *row)
{
    uint64_t now = now_ns();
    bool last = row->step == t->run.steps;
    bool due = !isnan(row->val_loss) ||
               (t->run.log && (row->step % t->run.log == 0 || last));
    double seconds = (double)(now - p->began) * 1e-9;
    double left =
        (t->run.steps - row->step) * seconds / (row->step - p->first_step);
    p->step_us[(row->step - p->first_step - 1) % PROGRESS_STEPS] = row->step_us;
    if (!p->supervised) {
        if (t->cluster->rank == 0 && due)
            say_line(t, row, token_rate(p, t, row), left);
    } else if (due || last || now - p->said >= say_every_ns) {
        p->said = now;
        printf("@progress rank=%d world=%d step=%d steps=%d loss=%.6f "
               "val_loss=%.6f tokens_per_s=%.6g eta_s=%.0f memory_bytes=%zu "
               "line=%d\n",
               t->cluster->rank, t->cluster->world, row->step, t->run.steps,
               known_loss(t, row), row->val_loss, token_rate(p, t, row), left,
               mem_peak(), due);
        fflush(stdout);
    }
    if (last)
        say_memory(t);
}
