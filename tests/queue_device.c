// queue_device.c - a CPU device with asynchronous queues, for tests.

#include "tests/queue_device.h"

#include "base/base.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct command {
    void (*fn)(void *ctx);
    void *ctx;
    struct command *next;
};

struct queue {
    struct device *dev;
    enum device_queue name;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t change;
    struct command *first, **last;
    uint64_t asked, done; // commands
    bool stop;
};

struct queues {
    struct queue q[DEVICE_QUEUES];
};

// In a struct device_event, `handle` is the queue, and `ns` is the number of
// its commands before the event.

static void *work(void *arg)
{
    struct queue *q = arg;
    pthread_mutex_lock(&q->lock);
    for (;;) {
        while (!q->first && !q->stop)
            pthread_cond_wait(&q->change, &q->lock);
        struct command *c = q->first;
        if (!c)
            break;
        q->first = c->next;
        if (!q->first)
            q->last = &q->first;
        pthread_mutex_unlock(&q->lock);
        c->fn(c->ctx);
        free(c);
        pthread_mutex_lock(&q->lock);
        q->done++;
        pthread_cond_broadcast(&q->change);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

void queue_device_ask(void *handle, void (*fn)(void *ctx), void *ctx)
{
    struct queue *q = handle;
    if (q->name == DEVICE_COMPUTE) {
        fn(ctx);
        return;
    }
    struct command *c = malloc(sizeof *c);
    CHECK(c);
    *c = (struct command){.fn = fn, .ctx = ctx};
    pthread_mutex_lock(&q->lock);
    *q->last = c;
    q->last = &c->next;
    q->asked++;
    pthread_cond_broadcast(&q->change);
    pthread_mutex_unlock(&q->lock);
}

static struct queue *queue_at(struct device *d, enum device_queue q)
{
    struct queues *s = d->state;
    return &s->q[q];
}

static int queue_open(struct device *d)
{
    struct queues *s = mem_alloc(1, sizeof *s);
    if (!s)
        return -1;
    d->state = s;
    for (int i = 0; i < DEVICE_QUEUES; i++) {
        struct queue *q = &s->q[i];
        *q = (struct queue){.dev = d, .name = (enum device_queue)i};
        q->last = &q->first;
        pthread_mutex_init(&q->lock, NULL);
        pthread_cond_init(&q->change, NULL);
        CHECK(!pthread_create(&q->thread, NULL, work, q));
    }
    return 0;
}

static void queue_close(struct device *d)
{
    struct queues *s = d->state;
    for (int i = 0; i < DEVICE_QUEUES; i++) {
        struct queue *q = &s->q[i];
        pthread_mutex_lock(&q->lock);
        q->stop = true;
        pthread_cond_broadcast(&q->change);
        pthread_mutex_unlock(&q->lock);
        pthread_join(q->thread, NULL);
        pthread_cond_destroy(&q->change);
        pthread_mutex_destroy(&q->lock);
    }
    mem_free(s);
}

// ---- work

enum job_kind { COPY, CAST, ADD, ADD_INTO_WIRE };

struct job {
    enum job_kind kind;
    struct device *dev;
    void *dst;
    const void *src;
    enum dtype to, from;
    float scale;
    size_t n;
};

static void run(void *ctx)
{
    struct job *j = ctx;
    const struct device_ops *cpu = &device_cpu;
    switch (j->kind) {
    case COPY:
        cpu->copy(j->dev, DEVICE_COMPUTE, j->dst, j->src, j->n);
        break;
    case CAST:
        cpu->cast(j->dev, DEVICE_COMPUTE, j->dst, j->to, j->src, j->from,
                  j->scale, j->n);
        break;
    case ADD:
        cpu->add(j->dev, DEVICE_COMPUTE, j->dst, j->src, j->from, j->n);
        break;
    case ADD_INTO_WIRE:
        cpu->add_into_wire(j->dev, DEVICE_COMPUTE, j->dst, j->to, j->src, j->n);
    }
    free(j);
}

static void ask(struct device *d, enum device_queue q, struct job job)
{
    struct job *j = malloc(sizeof *j);
    CHECK(j);
    *j = job;
    j->dev = d;
    queue_device_ask(queue_at(d, q), run, j);
}

static void queue_copy(struct device *d, enum device_queue q, void *dst,
                       const void *src, size_t bytes)
{
    ask(d, q, (struct job){.kind = COPY, .dst = dst, .src = src, .n = bytes});
}

static void queue_cast(struct device *d, enum device_queue q, void *dst,
                       enum dtype to, const void *src, enum dtype from,
                       float scale, size_t n)
{
    ask(d, q, (struct job){CAST, d, dst, src, to, from, scale, n});
}

static void queue_add(struct device *d, enum device_queue q, void *dst,
                      const void *src, enum dtype from, size_t n)
{
    ask(d, q,
        (struct job){
            .kind = ADD, .dst = dst, .src = src, .from = from, .n = n});
}

static void queue_add_into_wire(struct device *d, enum device_queue q,
                                void *wire, enum dtype type, const float *acc,
                                size_t n)
{
    ask(d, q,
        (struct job){.kind = ADD_INTO_WIRE,
                     .dst = wire,
                     .src = acc,
                     .to = type,
                     .n = n});
}

// ---- events

static void queue_record(struct device *d, struct device_event *e,
                         enum device_queue name)
{
    struct queue *q = queue_at(d, name);
    pthread_mutex_lock(&q->lock);
    *e = (struct device_event){.handle = q, .ns = q->asked};
    pthread_mutex_unlock(&q->lock);
}

static bool queue_reached(struct device *d, const struct device_event *e)
{
    struct queue *q = e->handle;
    (void)d;
    if (!q)
        return true;
    pthread_mutex_lock(&q->lock);
    bool reached = q->done >= e->ns;
    pthread_mutex_unlock(&q->lock);
    return reached;
}

static void queue_wait(struct device *d, const struct device_event *e)
{
    struct queue *q = e->handle;
    (void)d;
    if (!q)
        return;
    pthread_mutex_lock(&q->lock);
    while (q->done < e->ns)
        pthread_cond_wait(&q->change, &q->lock);
    pthread_mutex_unlock(&q->lock);
}

static void wait_there(void *ctx)
{
    struct device_event *e = ctx;
    queue_wait(NULL, e);
    free(e);
}

static void queue_follow(struct device *d, enum device_queue q,
                         const struct device_event *e)
{
    struct device_event *copy = malloc(sizeof *copy);
    CHECK(copy);
    *copy = *e;
    queue_device_ask(queue_at(d, q), wait_there, copy);
}

static void queue_finish(struct device *d)
{
    for (int i = 0; i < DEVICE_QUEUES; i++) {
        struct device_event e;
        queue_record(d, &e, (enum device_queue)i);
        queue_wait(d, &e);
    }
}

static void *queue_handle(struct device *d, enum device_queue q)
{
    return queue_at(d, q);
}

// Every open device has its own id, in each process.
static void queue_identity(const struct device *d, unsigned char id[DEVICE_ID])
{
    uint64_t parts[] = {(uint64_t)getpid(), (uint64_t)(uintptr_t)d};
    memcpy(id, parts, DEVICE_ID);
}

int queue_device_open(struct device **out)
{
    static struct device_ops ops;
    ops = device_cpu;
    ops.name = "queues";
    ops.host = false;
    ops.open = queue_open;
    ops.close = queue_close;
    ops.copy = queue_copy;
    ops.cast = queue_cast;
    ops.add = queue_add;
    ops.add_into_wire = queue_add_into_wire;
    ops.record = queue_record;
    ops.reached = queue_reached;
    ops.wait = queue_wait;
    ops.follow = queue_follow;
    ops.finish = queue_finish;
    ops.handle = queue_handle;
    ops.identity = queue_identity;
    struct device *d = mem_alloc(1, sizeof *d);
    if (!d)
        return -1;
    d->ops = &ops;
    if (queue_open(d)) {
        mem_free(d);
        return -1;
    }
    *out = d;
    return 0;
}
