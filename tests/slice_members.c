// slice_members.c - what slice_members.h promises.

#include "tests/slice_members.h"

#include "base/base.h"
#include "model/part.h"
#include "tests/test.h"

#include <string.h>

static size_t channels(const struct member *m)
{
    return (size_t)m->b.job.config.channels;
}

static void publish(struct member *m, void *v)
{
    m->world->at[m->rank] = v;
    pthread_barrier_wait(&m->world->barrier);
}

// v[from, from + n) := the sum over all members.
static int sum(struct member *m, float *v, size_t from, size_t n)
{
    float all[MEMBER_SUM];
    assert_true(n <= MEMBER_SUM);
    publish(m, v);
    for (size_t i = 0; i < n; i++) {
        all[i] = 0;
        for (int r = 0; r < m->world->n; r++)
            all[i] += ((const float *)m->world->at[r])[from + i];
    }
    pthread_barrier_wait(&m->world->barrier);
    memcpy(v + from, all, n * sizeof *v);
    m->joins++;
    return 0;
}

static int join(void *ctx, float *v, size_t n)
{
    return sum(ctx, v, 0, n);
}

static int gather(void *ctx, float *v, size_t each)
{
    struct member *m = ctx;
    publish(m, v);
    for (int r = 0; r < m->world->n; r++)
        if (r != m->rank)
            memcpy(v + (size_t)r * each,
                   (const float *)m->world->at[r] + (size_t)r * each,
                   each * sizeof *v);
    pthread_barrier_wait(&m->world->barrier);
    m->norms += each == 2 * channels(m);
    return 0;
}

// The rows of member r.
static struct part_share rows_of(const struct member *m, int r, size_t rows)
{
    struct model_config c = m->b.job.config;
    c.part.slice = r;
    return part_rows(&c, rows);
}

// Rows of other members are spoilt, as a ring may spoil them.
static int scatter_rows(void *ctx, float *v, size_t rows)
{
    struct member *m = ctx;
    struct part_share own = rows_of(m, m->rank, rows);
    float keep[MEMBER_SUM];
    size_t C = channels(m);
    size_t at = (size_t)own.first * C, n = (size_t)own.n * C;
    sum(m, v, at, n);
    pthread_barrier_wait(&m->world->barrier); // all have read v
    memcpy(keep, v + at, n * sizeof *v);
    memset(v, 0xff, rows * C * sizeof *v);
    memcpy(v + at, keep, n * sizeof *v);
    return 0;
}

static int gather_rows(void *ctx, void *v, size_t rows)
{
    struct member *m = ctx;
    size_t row = channels(m) * dtype_bytes(m->b.job.precision);
    publish(m, v);
    for (int r = 0; r < m->world->n; r++) {
        struct part_share s = rows_of(m, r, rows);
        if (r != m->rank)
            memcpy((char *)v + s.first * row,
                   (const char *)m->world->at[r] + s.first * row, s.n * row);
    }
    pthread_barrier_wait(&m->world->barrier);
    m->gathers++;
    return 0;
}

static int copy_in(void *ctx, size_t off, size_t n, size_t at)
{
    struct bench *const *both = ctx;
    memcpy(both[0]->params + off, both[1]->params + at, n * sizeof(float));
    return 0;
}

static void open_member(struct member *m, const struct bench *whole,
                        int sequence)
{
    struct bench from = *whole, *both[] = {&m->b, &from};
    struct model_job job = whole->job;
    m->b = *whole;
    assert_int_equal(part_slice(&whole->job.config, m->world->n, m->rank,
                                &job.config),
                     0);
    size_t n = m->b.n = model_nparams(&job.config);
    m->b.params = job.params = mem_alloc(n, sizeof(float));
    m->b.grads = job.grads = mem_alloc(n, sizeof(float));
    memset(job.grads, 0xff, n * sizeof(float));
    memset(m->sum, 0xff, sizeof m->sum);
    m->slices = (struct model_slices){.join = join,
                                      .gather = gather,
                                      .ctx = m,
                                      .sum = m->sum,
                                      .sequence = sequence > 0,
                                      .keeps = sequence == 2,
                                      .scatter_rows = scatter_rows,
                                      .gather_rows = gather_rows};
    job.slices = &m->slices;
    part_ranges(&job.config, 0, n, copy_in, both);
    m->b.job = job;
    assert_int_equal(model_open(&m->b.m, &job), 0);
}

struct member *run_slices(const struct bench *whole, int slices, int sequence,
                          void *(*body)(void *))
{
    struct world *w = mem_alloc(1, sizeof *w);
    struct member *all = mem_alloc((size_t)slices, sizeof *all);
    w->n = slices;
    pthread_barrier_init(&w->barrier, NULL, (unsigned)slices);
    for (int r = 0; r < slices; r++) {
        all[r].world = w;
        all[r].rank = r;
        open_member(&all[r], whole, sequence);
    }
    for (int r = 0; r < slices; r++)
        assert_int_equal(pthread_create(&all[r].thread, NULL, body, &all[r]),
                         0);
    for (int r = 0; r < slices; r++)
        pthread_join(all[r].thread, NULL);
    return all;
}

void end_slices(struct member *all)
{
    struct world *w = all->world;
    for (int r = 0; r < w->n; r++) {
        model_close(&all[r].b.m);
        mem_free(all[r].b.params);
        mem_free(all[r].b.grads);
    }
    pthread_barrier_destroy(&w->barrier);
    mem_free(w);
    mem_free(all);
}

static int copy_out(void *ctx, size_t off, size_t n, size_t at)
{
    float *const *both = ctx;
    memcpy(both[0] + at, both[1] + off, n * sizeof(float));
    return 0;
}

float *assembled(struct member *all, bool grads)
{
    struct model_config whole = part_whole(&all->b.job.config);
    float *out = mem_alloc(model_nparams(&whole), sizeof *out);
    for (int r = 0; r < all->world->n; r++) {
        struct bench *b = &all[r].b;
        float *both[] = {out, grads ? b->grads : b->params};
        part_counted_ranges(&b->job.config, 0, b->n, copy_out, both);
    }
    return out;
}
