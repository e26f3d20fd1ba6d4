// baton.c - one mutex, a condition variable for each thread, and the number of
// the holder.

#include "virtual/baton.h"

#include "base/base.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct runner {
    struct baton *baton;
    int number;
    pthread_t thread;
    pthread_cond_t turn;
};

struct baton {
    int n, started;
    int holder;
    pthread_mutex_t lock;
    void (*body)(void *ctx, int i);
    void *ctx;
    struct runner runners[]; // n, then one for the caller of baton_open()
};

static void await(struct baton *b, int me)
{
    pthread_mutex_lock(&b->lock);
    while (b->holder != me)
        pthread_cond_wait(&b->runners[me].turn, &b->lock);
    pthread_mutex_unlock(&b->lock);
}

void baton_leave(struct baton *b, int to)
{
    pthread_mutex_lock(&b->lock);
    b->holder = to;
    pthread_cond_signal(&b->runners[to].turn);
    pthread_mutex_unlock(&b->lock);
}

static void *run(void *arg)
{
    struct runner *r = arg;
    await(r->baton, r->number);
    if (r->baton->body)
        r->baton->body(r->baton->ctx, r->number);
    return NULL;
}

void baton_close(struct baton **baton)
{
    struct baton *b = *baton;
    *baton = NULL;
    if (!b)
        return;
    for (int i = 0; i < b->started; i++)
        pthread_join(b->runners[i].thread, NULL);
    for (int i = 0; i <= b->n; i++)
        pthread_cond_destroy(&b->runners[i].turn);
    pthread_mutex_destroy(&b->lock);
    free(b);
}

// A thread could not be started: ends those that were.
static void give_up(struct baton *b)
{
    b->body = NULL;
    for (int i = 0; i < b->started; i++) {
        baton_leave(b, i);
        pthread_join(b->runners[i].thread, NULL);
    }
    b->started = 0;
    baton_close(&b);
}

struct baton *baton_open(int n, void (*body)(void *ctx, int i), void *ctx)
{
    size_t bytes =
        sizeof(struct baton) + ((size_t)n + 1) * sizeof(struct runner);
    struct baton *b = calloc(1, bytes);
    if (!b) {
        fail("virtual: no memory for %d ranks", n);
        return NULL;
    }
    b->n = n;
    b->holder = n;
    b->body = body;
    b->ctx = ctx;
    pthread_mutex_init(&b->lock, NULL);
    for (int i = 0; i <= n; i++) {
        b->runners[i].baton = b;
        b->runners[i].number = i;
        pthread_cond_init(&b->runners[i].turn, NULL);
    }
    for (; b->started < n; b->started++) {
        struct runner *r = &b->runners[b->started];
        int err = pthread_create(&r->thread, NULL, run, r);
        if (err) {
            fail("virtual: thread %d of %d: %s; try: fewer ranks", b->started,
                 n, strerror(err));
            give_up(b);
            return NULL;
        }
    }
    return b;
}

void baton_pass(struct baton *b, int me, int to)
{
    if (me == to)
        return;
    baton_leave(b, to);
    await(b, me);
}
