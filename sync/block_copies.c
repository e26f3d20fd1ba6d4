// block_copies.c - copies blocks that a strategy lends to a GPU and back.

#include "sync/block_copies.h"

#include "base/base.h"
#include "device/busy.h"
#include "device/device.h"

struct block_copies {
    struct device *dev;
    const struct sync_job *job;
    struct sync_lent host;
    struct sync_place device;  // of the buffers
    struct sync_place *places; // on the host, of each block
    // What the compute queue had when the block before was taken. No later work
    // uses a buffer that is filled now, since blocks use two in turn.
    struct device_event before;
    struct device_event up, filled, down;
};

int block_copies_open(struct block_copies **out, const struct sync *s)
{
    struct block_copies *c = mem_alloc(1, sizeof *c);
    if (!c)
        return -1;
    struct device *dev = s->job.dev;
    *c = (struct block_copies){.dev = dev, .job = &s->job, .host = s->lent};
    c->places = mem_alloc((size_t)s->job.nbuckets, sizeof *c->places);
    c->device.grads = device_alloc(dev, s->lent.grad_bytes, 1);
    if (s->lends_params)
        c->device.weights = device_alloc(dev, s->lent.weight_bytes, 1);
    if (!c->places || !c->device.grads ||
        (s->lends_params && !c->device.weights) ||
        device_event_open(dev, &c->before) || device_event_open(dev, &c->up) ||
        device_event_open(dev, &c->filled) ||
        device_event_open(dev, &c->down) ||
        device_record(dev, &c->before, DEVICE_COMPUTE)) {
        block_copies_close(&c);
        return -1;
    }
    *out = c;
    return 0;
}

void block_copies_close(struct block_copies **cc)
{
    struct block_copies *c = *cc;
    if (!c)
        return;
    device_finish(c->dev); // the model may still compute
    struct device_event *all[] = {&c->before, &c->up, &c->filled, &c->down};
    for (int i = 0; i < 4; i++)
        device_event_close(c->dev, all[i]);
    device_free(c->dev, c->device.weights);
    device_free(c->dev, c->device.grads);
    mem_free(c->places);
    mem_free(c);
    *cc = NULL;
}

// The place on the device of what is at `at` in the host's buffers.
static void *across(void *device, const void *host, const void *at)
{
    return (char *)device + ((const char *)at - (const char *)host);
}

// Block b is one bucket; buckets count from the end of the vector.
static size_t elements(const struct block_copies *c, int b)
{
    return c->job->buckets[c->job->nbuckets - 1 - b].n;
}

static int send_weights(struct block_copies *c, int b, const void *host,
                        void *device)
{
    size_t bytes = elements(c, b) * dtype_bytes(c->job->format);
    if (device_follow(c->dev, DEVICE_UP, &c->before) ||
        device_record(c->dev, &c->before, DEVICE_COMPUTE) ||
        busy_begin(c->dev, DEVICE_UP) ||
        device_copy_on(c->dev, DEVICE_UP, device, host, bytes) ||
        busy_end(c->dev, DEVICE_UP) ||
        device_record(c->dev, &c->up, DEVICE_UP) ||
        device_follow(c->dev, DEVICE_COMPUTE, &c->up))
        return -1;
    return device_wait(c->dev, &c->up);
}

int block_copies_take(struct block_copies *c, int b,
                      const struct sync_place *host, struct sync_place *device)
{
    c->places[b] = *host;
    *device = (struct sync_place){NULL, NULL};
    if (host->grads)
        device->grads = across(c->device.grads, c->host.grads, host->grads);
    if (!host->weights)
        return 0;
    device->weights = across(c->device.weights, c->host.weights, host->weights);
    return send_weights(c, b, host->weights, device->weights);
}

int block_copies_ready(struct block_copies *c, int b)
{
    float *host = c->places[b].grads;
    const float *device = across(c->device.grads, c->host.grads, host);
    if (device_record(c->dev, &c->filled, DEVICE_COMPUTE) ||
        device_follow(c->dev, DEVICE_DOWN, &c->filled) ||
        busy_begin(c->dev, DEVICE_DOWN) ||
        device_copy_on(c->dev, DEVICE_DOWN, host, device,
                       elements(c, b) * sizeof *host) ||
        busy_end(c->dev, DEVICE_DOWN) ||
        device_record(c->dev, &c->down, DEVICE_DOWN))
        return -1;
    return device_wait(c->dev, &c->down);
}
