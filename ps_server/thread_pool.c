// thread_pool.c - fork and join: threads sleep until there is work, and take
// its parts from a shared counter.

#include "ps_server/thread_pool.h"

#include "base/base.h"

#include <pthread.h>
#include <stdatomic.h>

struct thread_pool {
    int threads; // without the caller
    pthread_t *ids;
    pthread_mutex_t lock;
    pthread_cond_t begin, end;
    unsigned job; // counts pieces of work
    int busy;     // threads that have not finished the present one
    bool stop;
    thread_pool_part *fn;
    void *ctx;
    size_t parts;
    atomic_size_t next; // only counts: `lock` orders all else
};

static void take_parts(struct thread_pool *t)
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
    struct thread_pool *t = arg;
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

int thread_pool_open(struct thread_pool **out, int threads)
{
    CHECK(threads >= 1);
    struct thread_pool *t = mem_alloc(1, sizeof *t);
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
        fail("server: could start only %d of %d threads", t->threads + 1,
             threads);
        thread_pool_close(&t);
        return -1;
    }
    *out = t;
    return 0;
}

void thread_pool_close(struct thread_pool **pool)
{
    struct thread_pool *t = *pool;
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
    *pool = NULL;
}

void thread_pool_run(struct thread_pool *t, thread_pool_part *fn, void *ctx,
                     size_t parts)
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
