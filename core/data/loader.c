// loader.c - one producer, one consumer, a ring of batches between them.
//
// `made` and `taken` count batches and only grow. Slot k % SLOTS holds batch k.
// The thread fills batch `made` while made - taken < SLOTS; all other slots
// belong to the training loop, which calls loader_take(). So filling and
// copying happen outside the lock.

#include "data/loader.h"

#include "base/base.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

enum { SLOTS = 4, PATIENCE_S = 60 };

struct loader {
    struct loader_job job;
    int32_t *slots; // (SLOTS, 2, n): x then y
    pthread_t thread;
    bool started;
    pthread_mutex_t lock;  // of what follows
    pthread_cond_t change; // for the one thread that waits, if any
    uint64_t made, taken;
    bool stop;
};

static int32_t *slot(const struct loader *l, uint64_t k)
{
    return l->slots + k % SLOTS * 2 * l->job.n;
}

static void *run(void *arg)
{
    struct loader *l = arg;
    pthread_mutex_lock(&l->lock);
    for (;;) {
        while (!l->stop && l->made - l->taken == SLOTS)
            pthread_cond_wait(&l->change, &l->lock);
        if (l->stop)
            break;
        uint64_t k = l->made;
        pthread_mutex_unlock(&l->lock);
        int32_t *x = slot(l, k);
        l->job.fill(l->job.ctx, l->job.first + k, x, x + l->job.n);
        pthread_mutex_lock(&l->lock);
        l->made = k + 1;
        pthread_cond_signal(&l->change);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

// The thread takes no signals: Ctrl-C is for the training loop.
static int start(struct loader *l)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&l->thread, NULL, run, l);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    l->started = !error;
    return error ? fail("data: cannot start a thread: %s", strerror(error)) : 0;
}

void loader_close(struct loader **out)
{
    struct loader *l = *out;
    if (!l)
        return;
    if (l->started) {
        pthread_mutex_lock(&l->lock);
        l->stop = true;
        pthread_cond_signal(&l->change);
        pthread_mutex_unlock(&l->lock);
        pthread_join(l->thread, NULL);
    }
    pthread_cond_destroy(&l->change);
    pthread_mutex_destroy(&l->lock);
    mem_free(l->slots);
    mem_free(l);
    *out = NULL;
}

int loader_open(struct loader **out, const struct loader_job *job)
{
    struct loader *l = mem_alloc(1, sizeof *l);
    if (!l)
        return -1;
    l->job = *job;
    pthread_condattr_t steady;
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->change, &steady);
    pthread_condattr_destroy(&steady);
    l->slots = mem_alloc(job->n, SLOTS * 2 * sizeof *l->slots);
    if (!l->slots || start(l)) {
        loader_close(&l);
        return -1;
    }
    *out = l;
    return 0;
}

// Waits until batch `taken` is made. 0, or the error of a wait that took too
// long.
static int wait_made(struct loader *l)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PATIENCE_S;
    int error = 0;
    pthread_mutex_lock(&l->lock);
    while (l->made == l->taken && !error)
        error = pthread_cond_timedwait(&l->change, &l->lock, &until);
    pthread_mutex_unlock(&l->lock);
    return error;
}

int loader_take(struct loader *l, int32_t *x, int32_t *y)
{
    if (wait_made(l))
        return fail("data: no batch within %d s; try: check that the disk with "
                    "the data can be read",
                    (int)PATIENCE_S);
    size_t bytes = l->job.n * sizeof *x;
    const int32_t *from = slot(l, l->taken); // only this thread changes taken
    memcpy(x, from, bytes);
    memcpy(y, from + l->job.n, bytes);
    pthread_mutex_lock(&l->lock);
    l->taken++;
    pthread_cond_signal(&l->change);
    pthread_mutex_unlock(&l->lock);
    return 0;
}
