// plan.c - which part of a vector travels when: the ring's timetable.

#include "horovod_ring/plan.h"

static size_t chunk_len(size_t n, size_t world, size_t c)
{
    return n / world + (c < n % world);
}

struct span plan_chunk(size_t n, int world, int which)
{
    size_t w = (size_t)world, c = (size_t)which;
    size_t even = n / w, more = n % w;
    return (struct span){.off = c * even + (c < more ? c : more),
                         .n = chunk_len(n, w, c)};
}

int plan_messages(const struct task *t, int rank, int world, enum direction d)
{
    if (!t->bcast)
        return 2 * (world - 1);
    bool first = rank == 0, last = rank == world - 1;
    return d == IN ? !first : !last;
}

struct span plan_span(const struct task *t, int rank, int world,
                      enum direction d, int message)
{
    if (t->bcast)
        return (struct span){0, t->n};
    int back = message + (d == OUT ? 1 : 2);
    int c = (rank - back + 2 * world) % world;
    return plan_chunk(t->n, world, c);
}

int plan_lag(const struct task *t, int rank)
{
    return t->bcast && rank > 0 ? 0 : 1;
}

size_t plan_elements(size_t n, int rank, int world, enum direction d)
{
    if (world == 1)
        return 0;
    size_t w = (size_t)world, r = (size_t)rank;
    size_t beside = (d == OUT ? r + 1 : r + w - 1) % w;
    return 2 * n - chunk_len(n, w, r) - chunk_len(n, w, beside);
}
