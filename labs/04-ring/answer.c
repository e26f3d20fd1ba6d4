// answer.c - lab 4: calls the functions of ring.c for the grader.

#include "labs/answer.h"

#include "labs/04-ring/ring.h"

static int64_t exchange(struct lab *l, const struct part *p)
{
    return lab_exchange(l, p[0].p, p[0].bytes / sizeof(float));
}

static int64_t bytes(struct lab *l, const struct part *p)
{
    const int32_t *numbers = p[1].p;
    (void)l;
    return (int64_t)ring_bytes(*(size_t *)p[0].p, numbers[0], numbers[1],
                               (enum lab_way)numbers[2]);
}

lab_answer *const lab_answers[] = {exchange, bytes};
const int lab_n_answers = 2;
