// stage_buffers.c - copies between a model on a GPU and the network.

#include "train/stage_buffers.h"

#include "base/base.h"
#include "device/device.h"
#include "train/shape.h"
#include "train/slices.h"
#include "train/stages.h"
#include "train/trainer.h"

struct stage_buffers {
    struct trainer *t;
    int count[3];
    size_t bytes;
    char *host[3]; // buffers of a kind, one after the other; NULL on a CPU
    size_t n_tied;
    float *tied; // NULL on a CPU
};

static bool is_copy(const struct stage_buffers *b)
{
    return !device_is_host(b->t->dev);
}

// What a GPU needs in pinned memory. 0, or -1 after fail().
static int open_copies(struct stage_buffers *b)
{
    struct device *dev = b->t->dev;
    for (int k = 0; k < 3; k++) {
        if (b->count[k] == 0)
            continue;
        b->host[k] = device_host_alloc(dev, (size_t)b->count[k], b->bytes);
        if (!b->host[k])
            return -1;
    }
    if (b->n_tied == 0)
        return 0;
    b->tied = device_host_alloc(dev, b->n_tied, sizeof *b->tied);
    return b->tied ? 0 : -1;
}

int stage_buffers_open(struct stage_buffers **out, struct trainer *t)
{
    struct model_job job = {.slots = 0};
    struct stage_buffers *b = *out = mem_alloc(1, sizeof *b);
    if (!b)
        return -1;
    shape_stage(&t->plan, t->stage, &job);
    *b = (struct stage_buffers){
        .t = t,
        .count = {[STAGE_INPUT] = job.inputs,
                  [STAGE_OUTPUT] = job.slots,
                  [STAGE_EDGE] = job.edges},
        .bytes = slices_rows(t) * (size_t)t->config.channels *
                 dtype_bytes(config_format(&t->run)),
        .n_tied = stages_tied(t),
    };
    return is_copy(b) ? open_copies(b) : 0;
}

void stage_buffers_close(struct stage_buffers **b)
{
    if (!*b)
        return;
    for (int k = 0; k < 3; k++)
        device_host_free((*b)->t->dev, (*b)->host[k]);
    device_host_free((*b)->t->dev, (*b)->tied);
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

void *stage_buffers_at(struct stage_buffers *b, enum stage_buffer kind, int i)
{
    if (!is_copy(b))
        return of_model(b, kind, i);
    CHECK(i < b->count[kind]);
    return b->host[kind] + (size_t)i * b->bytes;
}

void stage_buffers_up(struct stage_buffers *b, enum stage_buffer kind, int i)
{
    if (is_copy(b))
        device_copy_on(b->t->dev, DEVICE_COMPUTE, of_model(b, kind, i),
                       stage_buffers_at(b, kind, i), b->bytes);
}

void stage_buffers_down(struct stage_buffers *b, enum stage_buffer kind, int i)
{
    if (is_copy(b))
        device_copy(b->t->dev, stage_buffers_at(b, kind, i),
                    of_model(b, kind, i), b->bytes);
}

float *stage_buffers_tied(struct stage_buffers *b, float *vector)
{
    if (!is_copy(b))
        return vector;
    device_copy(b->t->dev, b->tied, vector, b->n_tied * sizeof *vector);
    return b->tied;
}

void stage_buffers_put_tied(struct stage_buffers *b, float *vector)
{
    if (is_copy(b))
        device_copy(b->t->dev, vector, b->tied, b->n_tied * sizeof *vector);
}
