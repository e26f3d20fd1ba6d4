// copies.c - lets a backend that knows host memory only serve a GPU.

#include "sync/copies.h"

#include "base/base.h"
#include "device/busy.h"
#include "device/device.h"
#include "device/staging.h"

static bool always(const struct sync *s)
{
    return s->job.settings->staging == STAGING_ALWAYS;
}

static bool needs_copies(const struct sync *s)
{
    bool on_device = s->carrier ? s->carrier->on_device : s->ops->on_device;
    return !on_device && (always(s) || !device_is_host(s->job.dev));
}

// ---- whole vectors

int copies_open(struct sync *s)
{
    struct sync_job *job = &s->job;
    if (!needs_copies(s) || !job->params)
        return 0;
    struct copies *c = s->copies = mem_alloc(1, sizeof *c);
    if (!c)
        return -1;
    c->params = job->params;
    c->grads = job->grads;
    if (staging_open(&c->of_params, job->dev, job->params, job->n,
                     job->nbuckets, always(s)) ||
        (job->grads && staging_open(&c->of_grads, job->dev, job->grads, job->n,
                                    job->nbuckets, always(s))))
        return -1;
    job->params = staging_host(c->of_params);
    if (job->grads)
        job->grads = staging_host(c->of_grads);
    return 0;
}

void copies_close(struct sync *s)
{
    if (!s->copies)
        return;
    staging_close(&s->copies->of_params);
    staging_close(&s->copies->of_grads);
    mem_free(s->copies);
    s->copies = NULL;
}

void copies_ready(const struct sync *s, int b)
{
    const struct bucket *k = &s->job.buckets[b];
    if (s->copies)
        staging_down(s->copies->of_grads, b, k->off, k->n);
}

void copies_await(const struct sync *s, int b)
{
    if (s->copies)
        staging_await(s->copies->of_grads, b);
}

void copies_fetch_params(const struct sync *s)
{
    if (!s->copies)
        return;
    staging_down(s->copies->of_params, 0, 0, s->job.n);
    staging_await(s->copies->of_params, 0);
}

static void send_whole(const struct sync *s, struct staging *v)
{
    staging_up(v, 0, s->job.n);
    staging_settle(v);
}

void copies_send_params(const struct sync *s)
{
    if (s->copies)
        send_whole(s, s->copies->of_params);
}

void copies_send_grads(const struct sync *s)
{
    if (s->copies)
        send_whole(s, s->copies->of_grads);
}

// ---- blocks

struct block_copies {
    struct sync_place device;  // of the buffers
    struct sync_place *places; // on the host, of each block
    // What the compute queue had when the block before was taken. No later work
    // uses a buffer that is filled now, since blocks use two in turn.
    struct device_event before;
    struct device_event up, filled, down;
};

int block_copies_open(struct sync *s)
{
    struct device *dev = s->job.dev;
    if (!needs_copies(s) || !s->lends_grads)
        return 0;
    struct block_copies *c = s->block_copies = mem_alloc(1, sizeof *c);
    if (!c)
        return -1;
    c->places = mem_alloc((size_t)s->job.nbuckets, sizeof *c->places);
    c->device.grads = device_alloc(dev, s->lent.grad_bytes, 1);
    if (s->lends_params)
        c->device.weights = device_alloc(dev, s->lent.weight_bytes, 1);
    if (!c->places || !c->device.grads ||
        (s->lends_params && !c->device.weights) ||
        device_event_open(dev, &c->before) || device_event_open(dev, &c->up) ||
        device_event_open(dev, &c->filled) || device_event_open(dev, &c->down))
        return -1;
    device_record(dev, &c->before, DEVICE_COMPUTE);
    return 0;
}

void block_copies_close(struct sync *s)
{
    struct block_copies *c = s->block_copies;
    struct device *dev = s->job.dev;
    if (!c)
        return;
    device_finish(dev); // the model may still compute
    struct device_event *all[] = {&c->before, &c->up, &c->filled, &c->down};
    for (int i = 0; i < 4; i++)
        device_event_close(dev, all[i]);
    device_free(dev, c->device.weights);
    device_free(dev, c->device.grads);
    mem_free(c->places);
    mem_free(c);
    s->block_copies = NULL;
}

// The place on the device of what is at `at` in the host's buffers.
static void *across(void *device, const void *host, const void *at)
{
    return (char *)device + ((const char *)at - (const char *)host);
}

// Block b is one bucket; buckets count from the end of the vector.
static size_t elements(const struct sync *s, int b)
{
    return s->job.buckets[s->job.nbuckets - 1 - b].n;
}

void block_copies_take(struct sync *s, int b, struct sync_place *device)
{
    struct block_copies *c = s->block_copies;
    struct device *dev = s->job.dev;
    const struct sync_place *host = &s->place;
    *device = *host;
    if (!c)
        return;
    c->places[b] = *host;
    if (host->grads)
        device->grads = across(c->device.grads, s->lent.grads, host->grads);
    if (!host->weights)
        return;
    device->weights = across(c->device.weights, s->lent.weights, host->weights);
    device_follow(dev, DEVICE_UP, &c->before);
    device_record(dev, &c->before, DEVICE_COMPUTE);
    busy_begin(dev, DEVICE_UP);
    device_copy_on(dev, DEVICE_UP, device->weights, host->weights,
                   elements(s, b) * dtype_bytes(s->job.format));
    busy_end(dev, DEVICE_UP);
    device_record(dev, &c->up, DEVICE_UP);
    device_follow(dev, DEVICE_COMPUTE, &c->up);
    device_wait(dev, &c->up);
}

void block_copies_ready(struct sync *s, int b)
{
    struct block_copies *c = s->block_copies;
    struct device *dev = s->job.dev;
    if (!c)
        return;
    float *host = c->places[b].grads;
    const float *device = across(c->device.grads, s->lent.grads, host);
    device_record(dev, &c->filled, DEVICE_COMPUTE);
    device_follow(dev, DEVICE_DOWN, &c->filled);
    busy_begin(dev, DEVICE_DOWN);
    device_copy_on(dev, DEVICE_DOWN, host, device,
                   elements(s, b) * sizeof *host);
    busy_end(dev, DEVICE_DOWN);
    device_record(dev, &c->down, DEVICE_DOWN);
    device_wait(dev, &c->down);
}
