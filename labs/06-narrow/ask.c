// ask.c - lab 6: the grader's calls of the functions of narrow.c.

#include "labs/ask.h"

#include "labs/06-narrow/narrow.h"

int lab_exchange(struct lab *l, float *v, size_t n)
{
    return (int)ask(l, 0, &(struct part){v, n * sizeof *v, PART_BOTH}, 1, NULL,
                    NULL);
}

int lab_step(struct lab *l, struct loss_scale *s, float *g, size_t n,
             bool *skip)
{
    struct part parts[] = {{s, sizeof *s, PART_BOTH},
                           {g, n * sizeof *g, PART_BOTH},
                           {skip, sizeof *skip, PART_BOTH}};
    int err = (int)ask(l, 1, parts, 3, NULL, NULL);
    *skip = ask_bool(skip);
    return err;
}
