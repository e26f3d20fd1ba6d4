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
    pthread_mutex_t lock; // of made, taken and stop
    uint64_t made, taken;
    bool stop;
    pthread_cond_t have;  // signalled when `made` changes
    pthread_cond_t space; // signalled when `taken` or `stop` changes
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
            pthread_cond_wait(&l->space, &l->lock);
        if (l->stop)
            break;
        uint64_t k = l->made;
        pthread_mutex_unlock(&l->lock);
        int32_t *x = slot(l, k);
        l->job.fill(l->job.ctx, l->job.first + k, x, x + l->job.n);
        pthread_mutex_lock(&l->lock);
        l->made = k + 1;
        pthread_cond_signal(&l->have);
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
    return error ? fail("data: cannot start a thread: %s", strerror(error)) : 0;
}

int loader_open(struct loader **out, const struct loader_job *job)
{
    struct loader *l = mem_alloc(1, sizeof *l);
    if (!l)
        return -1;
    l->job = *job;
    l->slots = mem_alloc(job->n, SLOTS * 2 * sizeof *l->slots);
    if (!l->slots)
        goto free_loader;
    pthread_condattr_t steady;
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->have, &steady);
    pthread_cond_init(&l->space, &steady);
    pthread_condattr_destroy(&steady);
    if (start(l))
        goto free_locks;
    *out = l;
    return 0;

free_locks:
    pthread_cond_destroy(&l->space);
    pthread_cond_destroy(&l->have);
    pthread_mutex_destroy(&l->lock);
    mem_free(l->slots);
free_loader:
    mem_free(l);
    return -1;
}

void loader_close(struct loader **out)
{
    struct loader *l = *out;
    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_signal(&l->space);
    pthread_mutex_unlock(&l->lock);
    pthread_join(l->thread, NULL);
    pthread_cond_destroy(&l->space);
    pthread_cond_destroy(&l->have);
    pthread_mutex_destroy(&l->lock);
    mem_free(l->slots);
    mem_free(l);
    *out = NULL;
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
        error = pthread_cond_timedwait(&l->have, &l->lock, &until);
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
    pthread_cond_signal(&l->space);
    pthread_mutex_unlock(&l->lock);
    return 0;
}
