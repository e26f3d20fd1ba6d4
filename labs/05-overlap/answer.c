// answer.c - lab 5: calls the functions of overlap.c for the grader.

#include "labs/answer.h"

#include "labs/05-overlap/calls.h"

static int64_t cut(struct lab *l, const struct part *p)
{
    const size_t *sizes = p[0].p;
    (void)l;
    return bucket_cut(p[1].p, (int)(p[1].bytes / sizeof(struct bucket)),
                      sizes[0], sizes[1], sizes[2]);
}

static int64_t choose(struct lab *l, const struct part *p)
{
    const double *network = p[0].p;
    l->workers = (int)network[0];
    l->alpha_s = network[1];
    l->bytes_per_s = network[2];
    bucket_sizes(l, p[1].p, (int)(p[1].bytes / sizeof(struct layer)), p[2].p,
                 p[3].p);
    return 0;
}

// Calls a function of the step with a bucket's number.
static int with(int what, int32_t *b, unsigned way)
{
    return (int)lab_back(what, &(struct part){b, sizeof *b, way}, 1);
}

static int post(struct lab *l, struct step *s, int b)
{
    (void)l, (void)s;
    return with(STEP_POST, &b, PART_IN);
}

static int join(struct lab *l, struct step *s)
{
    (void)l, (void)s;
    return (int)lab_back(STEP_JOIN, NULL, 0);
}

static int take(struct lab *l, struct step *s, int *b)
{
    (void)l, (void)s;
    return with(STEP_TAKE, b, PART_BOTH);
}

static int sum(struct lab *l, struct step *s, int b)
{
    (void)l, (void)s;
    return with(STEP_SUM, &b, PART_IN);
}

static int done(struct lab *l, struct step *s)
{
    (void)l, (void)s;
    return (int)lab_back(STEP_DONE, NULL, 0);
}

static struct step *step_of(const struct part *p)
{
    struct step *s = p[0].p;
    s->buckets = p[1].p;
    s->post = post;
    s->join = join;
    s->take = take;
    s->sum = sum;
    s->done = done;
    return s;
}

static int64_t ready(struct lab *l, const struct part *p)
{
    return lab_ready(l, step_of(p), *(int *)p[2].p);
}

static int64_t exchange(struct lab *l, const struct part *p)
{
    return lab_exchange(l, step_of(p));
}

static int64_t communicate(struct lab *l, const struct part *p)
{
    return lab_communicate(l, step_of(p));
}

lab_answer *const lab_answers[] = {cut, choose, ready, exchange, communicate};
const int lab_n_answers = 5;
