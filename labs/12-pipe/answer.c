// answer.c - lab 12: calls the function of pipe.c for the grader.

#include "labs/answer.h"

#include "labs/12-pipe/pipe.h"

static int64_t work(struct lab *l, const struct part *p)
{
    const int32_t *numbers = p[0].p;
    struct pipe pipe = {numbers[0], numbers[1], p[1].p, p[2].p};
    (void)l;
    return pipe_work(&pipe, numbers[2], numbers[3], p[3].p);
}

lab_answer *const lab_answers[] = {work};
const int lab_n_answers = 1;
