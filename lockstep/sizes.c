// sizes.c - the model that keys describe, and the memory that it takes.

#include "lockstep/sizes.h"

#include "base/base.h"
#include "config/config.h"
#include "model/model.h"
#include "optim/optim.h"
#include "sync/derive.h"
#include "train/shape.h"

#include <stdio.h>
#include <unistd.h>

int sizes_model(const struct run *r, struct model_config *c)
{
    if (shape_model(r, c))
        return -1;
    if (c->vocab == 0)
        c->vocab = 256; // bytes
    return model_check(c);
}

static int threads_of(const struct run *r, int workers)
{
    int cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    int share = cores / workers;
    return r->threads ? r->threads : share > 1 ? share : 1;
}

int sizes_memory(const struct run *r, const struct backend *b, int workers,
                 struct memory *worker, struct memory *server)
{
    struct model_job model = {.precision = config_format(r),
                              .batch = r->batch,
                              .threads = threads_of(r, workers),
                              .train = true,
                              .recompute = r->recompute};
    const struct optim_config optim = {.kind = (uint32_t)r->optimizer,
                                       .momentum = (float)r->momentum};
    struct sync_settings settings = r->settings;
    if (sizes_model(r, &model.config))
        return -1;
    model.tokens = model.config.context;
    sync_derive(&settings, b, workers, model_nparams(&model.config));
    const struct memory_job job = {.model = &model,
                                   .settings = &settings,
                                   .backend = b,
                                   .optim = &optim,
                                   .world = workers};
    memory_worker(&job, worker);
    memory_server(&job, server);
    return 0;
}

// ---- a table

static const char *megabytes(char text[16], size_t bytes)
{
    snprintf(text, 16, bytes ? "%.1f" : "-", (double)bytes * 1e-6);
    return text;
}

void sizes_print_head(const char *first)
{
    printf("%-14s %10s %10s %10s %9s %11s %8s %10s", first, "parameters",
           "gradients", "optimiser", "buffers", "activations", "process",
           "MB in all");
}

void sizes_print_row(const char *name, const struct memory *m)
{
    const size_t parts[] = {m->params,    m->grads,       m->optimizer,
                            m->buffers,   m->activations, m->process,
                            memory_sum(m)};
    static const int widths[] = {10, 10, 10, 9, 11, 8, 10};
    char text[16];
    printf("%-14s", name);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        printf(" %*s", widths[i], megabytes(text, parts[i]));
}
