// stage_buffers.c - copies between a model on a GPU and the network.

#include "train/stage_buffers.h"

#include "base/base.h"
#include "device/device.h"
#include "train/trainer.h"

struct stage_buffers {
    struct trainer *t;
    int count[3];
    size_t bytes;
    char *host[3]; // buffers of a kind, one after the other; NULL on a CPU
};

int stage_buffers_open(struct stage_buffers **out, struct trainer *t,
                       const int count[3], size_t bytes)
{
    struct stage_buffers *b = *out = mem_alloc(1, sizeof *b);
    if (!b)
        return -1;
    *b = (struct stage_buffers){.t = t, .bytes = bytes};
    for (int k = 0; k < 3; k++) {
        b->count[k] = count[k];
        if (device_is_host(t->dev) || count[k] == 0)
            continue;
        b->host[k] = device_host_alloc(t->dev, (size_t)count[k], bytes);
        if (!b->host[k])
            return -1;
    }
    return 0;
}

void stage_buffers_close(struct stage_buffers **b)
{
    if (!*b)
        return;
    for (int k = 0; k < 3; k++)
        if ((*b)->host[k])
            device_host_free((*b)->t->dev, (*b)->host[k]);
    mem_free(*b);
    *b = NULL;
}

static void *of_model(const struct stage_buffers *b, enum stage_buffer kind,
                      int i)
{
    return kind == STAGE_INPUT    ? model_input(b->t->model, i)
           : kind == STAGE_OUTPUT ? model_output(b->t->model, i)
                                  : model_edge(b->t->model, i);
}

static bool is_copy(const struct stage_buffers *b)
{
    return !device_is_host(b->t->dev);
}

void *stage_buffers_at(struct stage_buffers *b, enum stage_buffer kind, int i)
{
    if (!is_copy(b))
        return of_model(b, kind, i);
    CHECK(i < b->count[kind]);
    return b->host[kind] + (size_t)i * b->bytes;
}

int stage_buffers_up(struct stage_buffers *b, enum stage_buffer kind, int i)
{
    if (!is_copy(b))
        return 0;
    return device_copy_on(b->t->dev, DEVICE_COMPUTE, of_model(b, kind, i),
                          stage_buffers_at(b, kind, i), b->bytes);
}

int stage_buffers_down(struct stage_buffers *b, enum stage_buffer kind, int i)
{
    if (!is_copy(b))
        return 0;
    return device_copy(b->t->dev, stage_buffers_at(b, kind, i),
                       of_model(b, kind, i), b->bytes);
}
