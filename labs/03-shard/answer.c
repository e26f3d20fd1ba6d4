// answer.c - lab 3: calls the functions of shard.c for the grader.

#include "labs/answer.h"

#include "labs/03-shard/calls.h"

static int64_t make(struct lab *l, const struct part *p)
{
    struct shard_facts *f = p[0].p;
    struct slice *rows = p[1].p;
    struct shard asked = f->shard;
    size_t most = p[1].bytes / sizeof *rows;
    (void)l;
    f->err =
        shard_make(&f->shard, asked.n, asked.slice, asked.servers, asked.index);
    if (f->err)
        return 0;
    for (int row = 0; row < f->shard.rows && (size_t)row < most; row++)
        rows[row] = shard_slice(&f->shard, row);
    f->rows = shard_rows(&f->shard);
    f->elements = shard_elements(&f->shard);
    return 0;
}

static int64_t slice(struct lab *l, const struct part *p)
{
    (void)l;
    *(struct slice *)p[2].p = shard_slice(p[0].p, *(int *)p[1].p);
    return 0;
}

lab_answer *const lab_answers[] = {make, slice};
const int lab_n_answers = 2;
