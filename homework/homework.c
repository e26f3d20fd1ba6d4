// homework.c - sync=lab: replicas whose gradients a student's function sums.
//
// lab=FILE is a shared object with `int lab_exchange(struct lab *l, float *v,
// size_t n)`, the function of labs 4, 6 and 15. labs/grade 4 --train makes one
// and starts the job. With slices (mesh=tpT) train/slices.c calls it for the
// joins. step() calls the function once, with all gradients. Then
// sync.c updates on every worker, with the same sum.
//
//     trainer  .... backward | lab_exchange | update

#include "homework/homework.h"

#include "homework/real_lab.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "sync/members.h"
#include "sync/student.h"

typedef int exchange_function(struct lab *l, float *v, size_t n);

struct homework {
    void *file;
    exchange_function *exchange;
    struct real *real;
};

static int homework_open(struct sync *s)
{
    struct homework *h = s->state;
    const struct members_need need = {.depth = LAB_REQUESTS, .pairs = true};
    h->file = student_open(s->job.settings->lab, "lab_exchange", &h->exchange);
    if (!h->file || members_open(s, &need))
        return -1;
    h->real = real_open(s->group);
    return h->real ? 0 : -1;
}

static int homework_step(struct sync *s, const struct sync_in *in,
                         struct sync_out *out)
{
    struct homework *h = s->state;
    (void)out;
    fail("no reason was given"); // the function may return -1 without one
    if (h->exchange(real_lab(h->real), s->job.grads, s->job.n))
        return fail("rank %d, step %d: lab_exchange() failed: %s",
                    s->job.cluster->rank, in->step, fail_message());
    if (real_finish(h->real))
        return -1;
    s->stats = s->group->stats;
    return 0;
}

static void homework_close(struct sync *s)
{
    struct homework *h = s->state;
    real_close(&h->real);
    student_close(&h->file);
}

const struct sync_ops sync_lab = {
    .state_size = sizeof(struct homework),
    .open = homework_open,
    .step = homework_step,
    .close = homework_close,
};
