// answer.c - lab 8: calls the functions of topk.c for the grader.

#include "labs/answer.h"

#include "labs/08-topk/topk.h"

static int64_t pack(struct lab *l, const struct part *p)
{
    (void)l;
    topk_pack(p[0].p, p[1].p, p[0].bytes / sizeof(float),
              p[2].bytes / sizeof(struct entry), p[2].p);
    return 0;
}

static int64_t exchange(struct lab *l, const struct part *p)
{
    return lab_exchange(l, p[0].p, p[1].p, p[2].p, p[0].bytes / sizeof(float),
                        *(size_t *)p[3].p);
}

lab_answer *const lab_answers[] = {pack, exchange};
const int lab_n_answers = 2;
