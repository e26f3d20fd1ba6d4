// answer.c - lab 16: calls the functions of pieces.c for the grader.

#include "labs/answer.h"

#include "labs/16-pieces/calls.h"

static int64_t cut(struct lab *l, const struct part *p)
{
    const int32_t *numbers = p[1].p;
    (void)l;
    piece_cut(*(size_t *)p[0].p, numbers[0], numbers[1], p[2].p);
    return 0;
}

static int64_t held(struct lab *l, const struct part *p)
{
    const int32_t *numbers = p[0].p;
    (void)l;
    piece_held(numbers[0], numbers[1], p[1].p);
    return 0;
}

static int64_t blocks(struct lab *l, const struct part *p)
{
    const int32_t *numbers = p[1].p;
    (void)l;
    return piece_blocks(*(size_t *)p[0].p, numbers[0], numbers[1], numbers[2],
                        p[2].p);
}

// The partial result of parts 0 to 2.
static struct partial partial_of(const struct part *p, const size_t *sizes)
{
    return (struct partial){sizes[0], sizes[1], p[0].p, p[1].p, p[2].p};
}

static int64_t merge(struct lab *l, const struct part *p)
{
    struct partial all = partial_of(p + 1, p[0].p);
    struct partial one = partial_of(p + 4, p[0].p);
    (void)l;
    piece_merge(&all, &one);
    return 0;
}

static int64_t finish(struct lab *l, const struct part *p)
{
    struct partial one = partial_of(p + 1, p[0].p);
    (void)l;
    piece_finish(&one, p[4].p, p[5].p);
    return 0;
}

static int64_t attention(struct lab *l, const struct part *p)
{
    return piece_attention(l, p[0].p, p[1].p, p[2].p, p[3].p, p[4].p, p[5].p);
}

lab_answer *const lab_answers[] = {cut, held, blocks, merge, finish, attention};
const int lab_n_answers = 6;
