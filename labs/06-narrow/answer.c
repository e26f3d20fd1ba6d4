// answer.c - lab 6: calls the functions of narrow.c for the grader.

#include "labs/answer.h"

#include "labs/06-narrow/narrow.h"

static int64_t exchange(struct lab *l, const struct part *p)
{
    return lab_exchange(l, p[0].p, p[0].bytes / sizeof(float));
}

static int64_t step(struct lab *l, const struct part *p)
{
    return lab_step(l, p[0].p, p[1].p, p[1].bytes / sizeof(float), p[2].p);
}

lab_answer *const lab_answers[] = {exchange, step};
const int lab_n_answers = 2;
