// snapshot.c - keeps a copy of vectors, which a thread writes to files.

#include "train/snapshot.h"

#include "base/base.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

struct snapshot {
    size_t n;
    float *vectors;
    int (*write)(void *ctx);
    void *ctx;
    pthread_t thread;
    bool started;      // the thread runs, or nobody has joined it yet
    atomic_bool ended; // stored after rc and why; loaded before they are read
    int rc; // of write(), with its message; read only after it has ended
    char why[512];
};

int snapshot_open(struct snapshot **out, int count, size_t n)
{
    struct snapshot *s = mem_alloc(1, sizeof *s);
    if (!s)
        return -1;
    s->n = n;
    s->vectors = mem_alloc((size_t)count * n, sizeof *s->vectors);
    if (!s->vectors) {
        mem_free(s);
        return -1;
    }
    *out = s;
    return 0;
}

float *snapshot_vector(struct snapshot *s, int i)
{
    return s->vectors + (size_t)i * s->n;
}

// fail() keeps its message per thread, so this one is copied.
static void *run(void *arg)
{
    struct snapshot *s = arg;
    s->rc = s->write(s->ctx);
    if (s->rc)
        snprintf(s->why, sizeof s->why, "%s", fail_message());
    atomic_store(&s->ended, true);
    return NULL;
}

int snapshot_start(struct snapshot *s, int (*write)(void *ctx), void *ctx)
{
    CHECK(!s->started);
    s->write = write;
    s->ctx = ctx;
    atomic_store(&s->ended, false);
    int error = pthread_create(&s->thread, NULL, run, s);
    s->started = !error;
    return error
               ? fail("cannot start the thread that saves: %s", strerror(error))
               : 0;
}

int snapshot_settle(struct snapshot *s, bool wait)
{
    if (!s || !s->started || (!wait && !atomic_load(&s->ended)))
        return 0;
    pthread_join(s->thread, NULL);
    s->started = false;
    return s->rc ? fail("%s", s->why) : 0;
}

void snapshot_close(struct snapshot **snapshot)
{
    struct snapshot *s = *snapshot;
    if (!s)
        return;
    (void)snapshot_settle(s, true);
    mem_free(s->vectors);
    mem_free(s);
    *snapshot = NULL;
}
