// lowrank.c - sync=lab squeeze=power: a student's lowrank_exchange(), the
// function of lab 14, exchanges the gradients.
//
// The matrices are the model's tensors that squeeze=power would compress, too.
// The function makes the two sums of a step with the given sum(), and leaves
// the mean of all workers in the gradients. The errors and Q are the state: as
// in squeeze/squeezed.c they exist twice, and a step that is skipped leaves
// those of the last update as they were.
//
//     trainer  .... backward | lowrank_exchange: P, sum, Q, sum | update

#include "homework/homework.h"

#include "homework/real_lab.h"

#include "base/base.h"
#include "base/rng.h"
#include "cluster/cluster.h"
#include "labs/14-lowrank/lowrank.h"
#include "optim/optim.h"
#include "squeeze/residuals.h"
#include "sync/members.h"
#include "sync/student.h"

#include <string.h>

typedef int exchange_function(struct lab *l, const struct lowrank *o, float *g,
                              float *error, float *q);

struct lowrank_job {
    struct lowrank lab; // the first member: its address is that of the job
    void *file;
    exchange_function *exchange;
    struct real *real;
    struct residuals errors; // its own vectors are Q
};

static int sum(const struct lowrank *o, struct lab *l, float *v, size_t n)
{
    const struct lowrank_job *h = (const struct lowrank_job *)o;
    (void)l;
    return real_sum(h->real, v, n);
}

// Lists the matrices of the model. A term may give them a lower rank, and then
// uses less of Q.
static int list_matrices(struct lowrank_job *h, const struct sync_job *job)
{
    const struct optim_config *optim = job->optim;
    h->lab = (struct lowrank){.n = job->n,
                              .rank = (size_t)job->settings->squeeze_rank,
                              .sum = sum};
    for (uint32_t i = 0; i < optim->ndecay; i++) {
        const struct optim_range *r = &optim->decay[i];
        size_t rows = (size_t)r->rows, columns = rows ? r->n / rows : 0;
        size_t least = rows < columns ? rows : columns;
        if (!rows)
            continue;
        if (h->lab.matrices == LOWRANK_MATRICES)
            return fail("the model has more than %d matrices, the most that "
                        "lab 14's file takes; try: fewer layers=",
                        LOWRANK_MATRICES);
        h->lab.matrix[h->lab.matrices++] =
            (struct matrix){(size_t)r->off, rows, columns};
        h->errors.nown += columns * (h->lab.rank < least ? h->lab.rank : least);
    }
    return 0;
}

// All workers draw the same Q.
static int open_state(struct lowrank_job *h, struct sync *s)
{
    uint64_t key = rng_key(s->job.seed, 0);
    h->errors.own_name = "low_rank_q";
    s->residuals = &h->errors;
    if (residuals_open(&h->errors, s))
        return -1;
    for (size_t i = 0; i < h->errors.nown; i++)
        h->errors.own_kept[i] = (float)rng_normal(key, i);
    return 0;
}

static int lowrank_open(struct sync *s)
{
    struct lowrank_job *h = s->state;
    const struct members_need need = {.depth = LAB_REQUESTS, .pairs = true};
    h->file =
        student_open(s->job.settings->lab, "lowrank_exchange", &h->exchange);
    if (!h->file || list_matrices(h, &s->job) || open_state(h, s) ||
        members_open(s, &need))
        return -1;
    s->scale = 1 / (float)s->job.cluster->world; // grads become the mean
    h->real = real_open(s->group);
    return h->real ? 0 : -1;
}

static int lowrank_step(struct sync *s, const struct sync_in *in,
                        struct sync_out *out)
{
    struct lowrank_job *h = s->state;
    struct residuals *r = &h->errors;
    (void)out;
    memcpy(r->fresh, r->kept, s->job.n * sizeof(float));
    memcpy(r->own_fresh, r->own_kept, r->nown * sizeof(float));
    fail("no reason was given"); // the function may return -1 without one
    if (h->exchange(real_lab(h->real), &h->lab, s->job.grads, r->fresh,
                    r->own_fresh))
        return fail("rank %d, step %d: lowrank_exchange() failed: %s",
                    s->job.cluster->rank, in->step, fail_message());
    if (real_finish(h->real))
        return -1;
    s->stats = s->group->stats;
    return 0;
}

static void lowrank_updated(struct sync *s, bool skipped)
{
    struct lowrank_job *h = s->state;
    if (!skipped)
        residuals_keep(&h->errors);
}

// ---- state: Q is the same on all workers, and worker 0 saves it

static int visit_q(struct sync *s, sync_visit *visit, void *ctx)
{
    struct lowrank_job *h = s->state;
    return visit(ctx, residuals_own_slot(s), 0, h->errors.own_kept,
                 h->errors.nown);
}

static int lowrank_save(struct sync *s, sync_visit *visit, void *ctx)
{
    return residuals_save(s, visit, ctx) ||
                   (s->job.cluster->rank == 0 && visit_q(s, visit, ctx))
               ? -1
               : 0;
}

static int lowrank_load(struct sync *s, sync_visit *visit, void *ctx)
{
    float by;
    return residuals_load(s, visit, ctx, &by) || visit_q(s, visit, ctx) < 0 ? -1
                                                                            : 0;
}

static void lowrank_close(struct sync *s)
{
    struct lowrank_job *h = s->state;
    real_close(&h->real);
    residuals_close(&h->errors);
    student_close(&h->file);
}

static const struct sync_state_ops state = {
    .slots = residuals_slots,
    .slot_name = residuals_slot_name,
    .save = lowrank_save,
    .load = lowrank_load,
};

const struct sync_ops sync_lab_lowrank = {
    .state_size = sizeof(struct lowrank_job),
    .state = &state,
    .open = lowrank_open,
    .step = lowrank_step,
    .updated = lowrank_updated,
    .close = lowrank_close,
};
