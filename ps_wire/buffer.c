// buffer.c - a pool of buffers with reference counts. ZeroMQ's threads may give
// them back.

#include "ps_wire/buffer.h"

#include "base/base.h"

#include <pthread.h>
#include <stdatomic.h>

struct buffers {
    size_t bytes;
    pthread_mutex_t lock;
    struct buffer *free;
    int out; // buffers that are not free
};

int buffers_open(struct buffers **out, size_t bytes)
{
    struct buffers *pool = mem_alloc(1, sizeof *pool);
    if (!pool)
        return -1;
    pool->bytes = bytes ? bytes : 1;
    pthread_mutex_init(&pool->lock, NULL);
    *out = pool;
    return 0;
}

void buffers_close(struct buffers **pool)
{
    if (!*pool)
        return;
    CHECK((*pool)->out == 0);
    for (struct buffer *b = (*pool)->free, *next; b; b = next) {
        next = b->next;
        mem_free(b->data);
        mem_free(b);
    }
    pthread_mutex_destroy(&(*pool)->lock);
    mem_free(*pool);
    *pool = NULL;
}

static struct buffer *make(struct buffers *pool)
{
    struct buffer *b = mem_alloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->pool = pool;
    b->data = mem_alloc(pool->bytes, 1);
    if (!b->data) {
        mem_free(b);
        return NULL;
    }
    return b;
}

struct buffer *buffer_get(struct buffers *pool)
{
    pthread_mutex_lock(&pool->lock);
    struct buffer *b = pool->free;
    if (b)
        pool->free = b->next;
    pool->out++;
    pthread_mutex_unlock(&pool->lock);
    if (!b)
        b = make(pool);
    if (b) {
        atomic_store(&b->refs, 1);
        return b;
    }
    pthread_mutex_lock(&pool->lock);
    pool->out--;
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

void buffer_ref(struct buffer *b)
{
    atomic_fetch_add(&b->refs, 1);
}

// The last one to subtract has seen all that the others did with the buffer
// before they subtracted, so the next owner may overwrite it.
void buffer_unref(struct buffer *b)
{
    if (!b || atomic_fetch_sub(&b->refs, 1) > 1)
        return;
    struct buffers *pool = b->pool;
    pthread_mutex_lock(&pool->lock);
    b->next = pool->free;
    pool->free = b;
    pool->out--;
    pthread_mutex_unlock(&pool->lock);
}

bool buffer_shared(struct buffer *b)
{
    return atomic_load(&b->refs) > 1;
}

void buffer_sent(void *data, void *hint)
{
    (void)data;
    buffer_unref(hint);
}
