// memory_plan.c - computes what memory_plan.h promises.

#include "train/memory_plan.h"

#include "base/base.h"
#include "config/backends.h"
#include "device/device.h"
#include "model/part.h"
#include "optim/offload.h"
#include "optim/rule.h"
#include "ps_wire/wire.h"
#include "squeeze/scatter.h"
#include "squeeze/squeeze.h"
#include "squeeze/squeezed.h"
#include "sync/derive.h"
#include "train/shape.h"

#include <stdio.h>
#include <string.h>

// The first six sizes are measured.
enum {
    MPI_BYTES = 12 << 20,    // of Open MPI
    MPI_SAVES = 8 << 20,     // of Open MPI, if state is saved by TCP
    ZMQ_BYTES = 2 << 20,     // of ZeroMQ
    DATA_BYTES = 6 << 20,    // the training text, and the records of spans
    SERVER_BYTES = 12 << 20, // of a server's code
    FRAGMENT = 32 << 10,     // of Open MPI: a message under way, at most
    CASTS = 2,        // 16-bit casts alive at once (horovod_ring/ring_wire.h)
    QUEUE = 64,       // answers in ZeroMQ's queue (core/message/connection.c)
    PLACES = 2 << 20, // a worker's shared counters (horovod_ring/counters.h)
};

static size_t floats(size_t n)
{
    return n * sizeof(float);
}

static bool on_host(const struct memory_job *job)
{
    const struct device *dev = job->model->dev;
    return !dev || device_is_host(dev);
}

static struct sync_share share_of(const struct memory_job *job)
{
    const struct model_config *c = &job->model->config;
    return sync_share(job->settings, job->backend, job->world, model_nparams(c),
                      model_work(c));
}

// Add the shards of parameters and gradients that this worker holds.
static void add_shards(const struct memory_job *job, struct memory *m)
{
    struct sync_share share = share_of(job);
    if (share.lends_params)
        m->params += job->settings->offload ? offload_memory(1, share.params)
                                            : floats(share.params);
    if (share.lends_grads)
        m->grads += floats(share.grads);
    m->buffers += floats(share.grad_buffers + share.kept) +
                  share.weight_buffers * dtype_bytes(job->model->precision);
}

static size_t largest_block(const struct model_config *c)
{
    size_t most = 0, off, n;
    for (int b = 0; b < model_nblocks(c); b++) {
        model_block(c, b, &off, &n);
        most = n > most ? n : most;
    }
    return most;
}

// Elements of the largest vector that travels at once with a 16-bit wire.
static size_t largest(const struct memory_job *job, size_t n)
{
    const struct sync_settings *s = job->settings;
    if (job->backend->apart)
        return n;
    if (s->bucket == BUCKET_BLOCK)
        return largest_block(&job->model->config);
    double most = s->bucket_mb * 1048576 / sizeof(float);
    return most < (double)n ? (size_t)most : n;
}

// Bytes of slices on their way to one server, as many as it gives credits for.
static size_t window(const struct memory_job *job, size_t part)
{
    size_t slice = (size_t)job->settings->slice_kb * 1024;
    return (size_t)ps_window(job->world) * (slice < part ? slice : part);
}

// Bytes of a server's part of a vector.
static size_t server_part(const struct memory_job *job)
{
    size_t n = model_nparams(&job->model->config);
    size_t servers = (size_t)job->settings->servers.count;
    return floats((n + servers - 1) / servers);
}

// Bytes of messages, of which those of all units are under way at once in the
// worst case. Open MPI has a fragment for each that another worker sends;
// power's sums follow each other. A model of which no units can be cut is
// refused elsewhere.
static size_t squeezed(const struct memory_job *job)
{
    const struct sync_settings *s = job->settings;
    struct squeeze_unit *units = NULL;
    int n = shape_units(&job->model->config, s, &units);
    size_t bytes = n < 0 ? 0 : squeezed_memory(s, job->world, units, n);
    if (n > 0 && job->backend->traffic == TRAFFIC_LIBRARY &&
        s->squeeze != SQUEEZE_POWER)
        bytes += (size_t)n * (size_t)(job->world - 1) * FRAGMENT;
    mem_free(units);
    return bytes;
}

// The same with shards.
static size_t scattered(const struct memory_job *job)
{
    const struct sync_settings *s = job->settings;
    struct bucket *units = NULL;
    int n = shape_shards(&job->model->config, s, &units);
    size_t bytes = n < 0 ? 0 : scatter_memory(s, job->world, units, n);
    mem_free(units);
    return bytes;
}

// Bytes that the exchange itself needs. With a library: Open MPI allocates a
// receive buffer for every all-reduce under way, and in the worst case all
// buckets of a step are under way; with a 16-bit wire we allocate a cast for
// each. With servers: slices on their way out and in; while a worker is busy,
// up to 64 answers of each server wait in ZeroMQ's queue
// (core/message/connection.c).
static size_t exchange(const struct memory_job *job, size_t n)
{
    const struct sync_settings *s = job->settings;
    const struct backend *b = job->backend;
    size_t w = (size_t)job->world, width = dtype_bytes(s->wire);
    bool narrow = s->wire != DTYPE_F32;
    if (b->servers)
        return 2 * (size_t)s->servers.count * window(job, server_part(job));
    if (w == 1)
        return 0;
    if (s->squeeze)
        return b->shards ? scattered(job) : squeezed(job);
    if (b->traffic == TRAFFIC_LIBRARY)
        return width * (n - n / w + (narrow ? n : 0));
    if (b->traffic == TRAFFIC_OWNER)
        return job->rank ? 0
                         : OWNER_SETS * (w - 1) *
                               floats(n < OWNER_PIECE ? n : OWNER_PIECE);
    if (b->traffic == TRAFFIC_ROUNDS) // the message of a round
        return floats(b->rounds.whole ? n : n / w);
    return narrow ? CASTS * largest(job, n) * width : 0;
}

// Bytes of a slot that worker 0 fetches from servers to save it, or sends to
// them, and of the answers that wait in ZeroMQ's queues meanwhile.
static size_t fetched(const struct memory_job *job)
{
    const struct sync_settings *s = job->settings;
    if (!job->backend->servers || s->update == UPDATER_WORKER)
        return 0;
    size_t part = server_part(job);
    size_t queue = QUEUE * (size_t)s->slice_kb * 1024;
    return floats(model_nparams(&job->model->config)) +
           (size_t)s->servers.count * (queue < part ? queue : part);
}

// Host copies of what travels between stages on GPUs (train/stage_buffers.h).
static size_t between_stages(const struct model_job *m)
{
    size_t rows = (size_t)m->batch * (size_t)m->tokens;
    size_t each = rows * (size_t)m->config.channels * dtype_bytes(m->precision);
    return part_is_whole(&m->config)
               ? 0
               : (size_t)(m->inputs + m->slots + m->edges) * each;
}

// Add the exchange's buffers, and host copies of vectors on a GPU: the
// trainer's `host`, and those of sync/copies.h.
static void add_buffers(const struct memory_job *job, struct memory *m)
{
    size_t n = model_nparams(&job->model->config);
    struct sync_share share = share_of(job);
    bool alone = job->backend->traffic == TRAFFIC_NONE;
    size_t copies = alone ? 0 : !share.lends_params + !share.lends_grads;
    m->buffers += exchange(job, n);
    if (!on_host(job))
        m->buffers += (!share.lends_params + copies) * floats(n) +
                      between_stages(job->model);
    else if (job->settings->staging == STAGING_ALWAYS)
        m->buffers += copies * floats(n);
}

// Bytes of other workers' vectors that a worker on the same host maps
// (horovod_ring/ring_shm.c). Each worker reads its chunks of all gradients. If
// workers hold shards of the optimiser's state, each also copies the others'
// parameters, and at the start it copies all parameters of worker 0. If only
// parameters travel, it reads and copies those.
static size_t mapped(const struct memory_job *job)
{
    struct sync_share share = share_of(job);
    size_t n = model_nparams(&job->model->config), w = (size_t)job->world;
    size_t others = n - n / w, lent = share.grad_buffers;
    if (job->backend->traffic == TRAFFIC_OWNER)
        others = 0; // only messages
    size_t copied = job->rank ? n + others - n / w : others;
    if (!job->transport || strcmp(job->transport, "shm"))
        return 0;
    if (job->backend->traffic == TRAFFIC_ROUNDS)
        return memory_shared(job->world); // only messages
    if (job->backend->apart)
        return floats(copied) + memory_shared(job->world);
    size_t bytes = floats(share.lends_grads ? lent - lent / w : others);
    if (share.lends_params) // the others' chunks of the blocks in buffers
        bytes += (lent - lent / w) * dtype_bytes(job->model->precision);
    else if (job->backend->shards)
        bytes += floats(copied);
    return bytes + memory_shared(job->world);
}

size_t memory_shared(int members)
{
    return (size_t)members * PLACES;
}

void memory_worker(const struct memory_job *job, struct memory *out)
{
    const struct backend *b = job->backend;
    struct sync_share share = share_of(job);
    struct model_job model = *job->model;
    bool host = on_host(job);
    struct model_bytes m;
    model.lent_weights = share.lends_params;
    model.lent_grads = share.lends_grads;
    model_memory(&model, &m);
    *out = (struct memory){
        .params = m.params,
        .grads = m.grads,
        .activations = m.activations,
        .process = m.process + DATA_BYTES +
                   (backend_needs_mpi(b, job->settings) ? MPI_BYTES
                    : b->launch == LAUNCH_ALONE         ? 0
                                                        : ZMQ_BYTES),
        .mapped = mapped(job),
    };
    bool updates =
        b->traffic == TRAFFIC_OWNER ? job->rank == 0 : host || b->shards;
    if (updates)
        out->optimizer = job->settings->offload
                             ? offload_memory(job->slots, share.slot)
                             : (size_t)job->slots * floats(share.slot);
    add_shards(job, out);
    add_buffers(job, out);
    if (job->saves && job->rank == 0) {
        out->buffers += fetched(job);
        if (job->settings->transport == TRANSPORT_MPI && job->apart)
            out->buffers += MPI_SAVES; // the state comes from other hosts
    }
    if (job->copies && job->rank == 0)
        out->buffers += (1 + (size_t)job->slots) *
                        floats(model_nparams(&job->model->config));
}

// Bytes of a server's sums of compressed gradients, and of what its answers
// lack.
static size_t answers(const struct memory_job *job, size_t part)
{
    const struct squeeze_ops *ops = squeeze_find(job->settings->squeeze);
    bool lacks = ops && ops->twice && job->settings->feedback;
    return ops ? part * (1 + (size_t)lacks) : 0;
}

// A server keeps parameters even if the workers update: late workers pull them.
// While it sends answers, new parameters replace old ones that are still being
// sent. The old copies are at most as large as all its parameters.
void memory_server(const struct memory_job *job, struct memory *out)
{
    *out = (struct memory){.params = 0};
    if (!job->backend->servers)
        return;
    size_t part = server_part(job);
    bool updates = job->settings->update == UPDATER_SERVER;
    *out = (struct memory){
        .params = part,
        .grads = updates ? part : 0,
        .optimizer = updates ? (size_t)job->slots * part : 0,
        .buffers = (size_t)job->world * window(job, part) +
                   (updates ? part : 0) + answers(job, part),
        .process = SERVER_BYTES,
    };
}

size_t memory_sum(const struct memory *m)
{
    return m->params + m->grads + m->optimizer + m->buffers + m->activations +
           m->process;
}

char *memory_text(char text[MEMORY_TEXT], const struct memory *m)
{
    const struct {
        const char *name;
        size_t bytes;
    } parts[] = {
        {"parameters", m->params},       {"gradients", m->grads},
        {"optimiser", m->optimizer},     {"buffers", m->buffers},
        {"activations", m->activations}, {"process", m->process},
    };
    char number[32];
    size_t at = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].bytes)
            at += (size_t)snprintf(text + at, MEMORY_TEXT - at, "%s%s %s",
                                   at ? ", " : "", parts[i].name,
                                   mem_text(number, parts[i].bytes));
    return text;
}
