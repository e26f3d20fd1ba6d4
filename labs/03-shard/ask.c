// ask.c - lab 3: the grader's calls of the functions of shard.c.

#include "labs/ask.h"

#include "labs/03-shard/calls.h"

#include <string.h>

enum { KEPT = 16 };

// All that the student's functions say about the shard of one server.
struct told {
    struct shard_facts facts;
    int most; // rows
    struct slice rows[SHARD_TABLE];
};

static struct told kept[KEPT]; // by index

static struct told *ask_shard(const struct shard *s)
{
    struct told *t = &kept[(unsigned)s->index % KEPT];
    size_t width = s->slice * (size_t)s->servers; // 0 if the student wrote so
    size_t rows = width ? s->n / width + 2 : 2;
    size_t most = rows < SHARD_TABLE ? rows : SHARD_TABLE;
    t->facts = (struct shard_facts){.shard = *s};
    t->most = (int)most;
    struct part p[] = {{&t->facts, sizeof t->facts, PART_BOTH},
                       {t->rows, most * sizeof *t->rows, PART_OUT}};
    ask(NULL, SHARD_MAKE, p, 2, NULL, NULL);
    return t;
}

// The facts of a shard that shard_make() has filled.
static struct told *told_of(const struct shard *s)
{
    struct told *t = &kept[(unsigned)s->index % KEPT];
    const struct shard *is = &t->facts.shard;
    bool same = is->n == s->n && is->slice == s->slice &&
                is->servers == s->servers && is->index == s->index;
    return same ? t : ask_shard(s);
}

int shard_make(struct shard *s, size_t n, size_t slice, int servers, int index)
{
    struct shard asked = {n, slice, servers, index, 0};
    const struct told *t = told_of(&asked);
    *s = t->facts.shard;
    return (int)t->facts.err;
}

struct slice shard_slice(const struct shard *s, int row)
{
    struct slice is;
    struct part p[] = {{(void *)s, sizeof *s, PART_IN},
                       {&row, sizeof row, PART_IN},
                       {&is, sizeof is, PART_OUT}};
    const struct told *t = told_of(s);
    if (row >= 0 && row < t->most)
        return t->rows[row];
    ask(NULL, SHARD_SLICE, p, 3, NULL, NULL);
    return is;
}

int shard_rows(const struct shard *s)
{
    return (int)told_of(s)->facts.rows;
}

size_t shard_elements(const struct shard *s)
{
    return told_of(s)->facts.elements;
}
