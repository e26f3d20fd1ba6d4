// team.c - fork and join: threads sleep until there is work, and take parts
// from a common counter.

#include "ps_server/team.h"

#include "base/base.h"
#include "device/vector.h"
#include "optim/optim.h"

#include <pthread.h>
#include <stdatomic.h>

enum { PART = 1 << 16 };                        // elements
enum { MAX_PARTS = (64 << 20) / 4 / PART + 1 }; // of the largest slice

struct team {
    int threads; // beside the caller
    pthread_t *ids;
    pthread_mutex_t lock;
    pthread_cond_t begin, end;
    unsigned job; // counts pieces of work
    int busy;     // threads that have not finished the present one
    bool stop;
    team_part *fn;
    void *ctx;
    size_t parts;
    atomic_size_t next;
    double squares[MAX_PARTS];
};

static void take_parts(struct team *t)
{
    for (;;) {
        size_t part = atomic_fetch_add(&t->next, 1);
        if (part >= t->parts)
            return;
        t->fn(t->ctx, part);
    }
}

static void *work(void *arg)
{
    struct team *t = arg;
    unsigned done = 0;
    pthread_mutex_lock(&t->lock);
    for (;;) {
        while (t->job == done && !t->stop)
            pthread_cond_wait(&t->begin, &t->lock);
        if (t->stop)
            break;
        done = t->job;
        pthread_mutex_unlock(&t->lock);
        take_parts(t);
        pthread_mutex_lock(&t->lock);
        if (--t->busy == 0)
            pthread_cond_signal(&t->end);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

int team_open(struct team **out, int threads)
{
    CHECK(threads >= 1);
    struct team *t = mem_alloc(1, sizeof *t);
    if (!t)
        return -1;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->begin, NULL);
    pthread_cond_init(&t->end, NULL);
    t->ids = mem_alloc((size_t)threads, sizeof *t->ids);
    while (t->ids && t->threads < threads - 1 &&
           pthread_create(&t->ids[t->threads], NULL, work, t) == 0)
        t->threads++;
    if (!t->ids || t->threads < threads - 1) {
        fail("server: only %d of %d threads can be started", t->threads + 1,
             threads);
        team_close(&t);
        return -1;
    }
    *out = t;
    return 0;
}

void team_close(struct team **team)
{
    struct team *t = *team;
    if (!t)
        return;
    pthread_mutex_lock(&t->lock);
    t->stop = true;
    pthread_cond_broadcast(&t->begin);
    pthread_mutex_unlock(&t->lock);
    for (int i = 0; i < t->threads; i++)
        pthread_join(t->ids[i], NULL);
    pthread_cond_destroy(&t->end);
    pthread_cond_destroy(&t->begin);
    pthread_mutex_destroy(&t->lock);
    mem_free(t->ids);
    mem_free(t);
    *team = NULL;
}

void team_run(struct team *t, team_part *fn, void *ctx, size_t parts)
{
    if (t->threads == 0 || parts < 2) {
        for (size_t i = 0; i < parts; i++)
            fn(ctx, i);
        return;
    }
    pthread_mutex_lock(&t->lock);
    t->fn = fn;
    t->ctx = ctx;
    t->parts = parts;
    atomic_store(&t->next, 0);
    t->busy = t->threads;
    t->job++;
    pthread_cond_broadcast(&t->begin);
    pthread_mutex_unlock(&t->lock);
    take_parts(t);
    pthread_mutex_lock(&t->lock);
    while (t->busy > 0)
        pthread_cond_wait(&t->end, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

// ---- vectors

struct vectors {
    float *dst;
    const void *src;
    enum dtype from;
    size_t n;
    double *squares;
};

static size_t part_len(const struct vectors *v, size_t part)
{
    size_t left = v->n - part * PART;
    return left < PART ? left : PART;
}

static const void *part_src(const struct vectors *v, size_t part)
{
    return (const char *)v->src + part * PART * dtype_bytes(v->from);
}

static void copy_part(void *ctx, size_t part)
{
    const struct vectors *v = ctx;
    vector_cast(v->dst + part * PART, DTYPE_F32, part_src(v, part), v->from,
                part_len(v, part));
}

static void add_part(void *ctx, size_t part)
{
    const struct vectors *v = ctx;
    vector_add(v->dst + part * PART, part_src(v, part), v->from,
               part_len(v, part));
}

static void squares_part(void *ctx, size_t part)
{
    const struct vectors *v = ctx;
    v->squares[part] = optim_sum_squares(part_src(v, part), part_len(v, part));
}

static size_t parts_of(size_t n)
{
    return (n + PART - 1) / PART;
}

void team_copy(struct team *t, float *dst, const void *src, enum dtype from,
               size_t n)
{
    struct vectors v = {.dst = dst, .src = src, .from = from, .n = n};
    team_run(t, copy_part, &v, parts_of(n));
}

void team_add(struct team *t, float *dst, const void *src, enum dtype from,
              size_t n)
{
    struct vectors v = {.dst = dst, .src = src, .from = from, .n = n};
    team_run(t, add_part, &v, parts_of(n));
}

double team_sum_squares(struct team *t, const float *g, size_t n)
{
    CHECK(parts_of(n) <= MAX_PARTS);
    struct vectors v = {.src = g, .n = n, .squares = t->squares};
    team_run(t, squares_part, &v, parts_of(n));
    double sum = 0;
    for (size_t i = 0; i < parts_of(n); i++)
        sum += t->squares[i];
    return sum;
}
