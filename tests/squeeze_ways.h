// squeeze_ways.h - the ways in which compressed gradients travel, as fixtures
// of the cases that every backend must pass.

#pragma once

#include "horovod_ring/carriers.h"
#include "optim/rule.h"
#include "ps_worker/ps_worker.h"
#include "squeeze/scatter.h"
#include "squeeze/squeeze.h"
#include "squeeze/squeezed.h"
#include "sync/bucket.h"
#include "tests/ps_servers.h"
#include "tests/queue_device.h"
#include "tests/sync_cases.h"
#include "zero/zero.h"

#include "base/base.h"

#include <string.h>

static const struct group_ops *const tcp[] = {&ring_tcp, NULL};
static const struct group_ops *const shm[] = {&ring_shm, NULL};

// Every compressor's messages travel whatever the wire is.
static void law(const struct sync_job *job, int rank, int world,
                enum dtype wire, uint64_t *out, uint64_t *in)
{
    struct squeeze_unit *units;
    struct group_stats stats;
    int n = squeezed_units(job, &units);
    (void)wire;
    squeezed_bytes(job->settings, world, rank, units, n, &stats);
    *out = stats.bytes_out;
    *in = stats.bytes_in;
    mem_free(units);
}

#define WAY(name, set, carrier, ...)                                           \
    static const struct fixture name = {.sync = "ring",                        \
                                        .ops = &sync_squeezed,                 \
                                        .carriers = carrier,                   \
                                        .opts = "slice_kb=1," set,             \
                                        .law = law,                            \
                                        .one_wire = true,                      \
                                        __VA_ARGS__};
WAY(all_tcp, "squeeze=topk,density=1", tcp)
WAY(all_shm, "squeeze=topk,density=1", shm, .shared = true)
WAY(all_staged, "squeeze=topk,density=1", tcp, .device = queue_device_open)
WAY(topk, "squeeze=topk,density=0.05", tcp)
WAY(topk_shm, "squeeze=topk,density=0.05", shm, .shared = true)
WAY(topk_tensor, "squeeze=topk,density=0.05,scope=tensor", tcp)
WAY(topk_model, "squeeze=topk,density=0.05,scope=model", tcp)
WAY(int8, "squeeze=int8", tcp)
WAY(int8_shm, "squeeze=int8", shm, .shared = true)
WAY(sign, "squeeze=sign", tcp)
WAY(sign_shm, "squeeze=sign", shm, .shared = true)
WAY(sign_tensor, "squeeze=sign,scope=tensor", tcp)
WAY(sign_staged, "squeeze=sign", tcp, .device = queue_device_open)
WAY(power, "squeeze=power,squeeze_rank=2", tcp)
WAY(power_shm, "squeeze=power,squeeze_rank=2", shm, .shared = true)
WAY(power_lossy, "squeeze=power,squeeze_rank=1,feedback=0", tcp)

WAY(moving, "squeeze=topk,density=0.05,momentum_correction=1", tcp)

WAY(demo, "squeeze=demo,density=0.05", tcp)
WAY(demo_shm, "squeeze=demo,density=0.3", shm, .shared = true)
WAY(demo_staged, "squeeze=demo,density=0.05", tcp, .device = queue_device_open)

// The steps differ in their bytes.
#define FROZEN(name, set, carrier)                                             \
    static const struct fixture name = {.sync = "ring",                        \
                                        .ops = &sync_squeezed,                 \
                                        .carriers = carrier,                   \
                                        .opts = "squeeze=sign," set,           \
                                        .one_wire = true};
FROZEN(frozen, "freeze=1", tcp)
FROZEN(frozen_late, "freeze=4,scope=tensor", tcp)

// ---- shards of the optimiser's state

static void law_zero(const struct sync_job *job, int rank, int world,
                     enum dtype wire, uint64_t *out, uint64_t *in)
{
    struct bucket *units;
    struct group_stats stats;
    int n = bucket_align(&units, job->buckets, job->nbuckets, RULE_BLOCK);
    (void)wire;
    CHECK(n > 0);
    law_step_bytes(&(struct law_step){.world = world,
                                      .micro = 1,
                                      .shards = true,
                                      .kind = job->settings->shard,
                                      .cut = units,
                                      .count = n,
                                      .grain = RULE_BLOCK,
                                      .param_bytes = sizeof(float),
                                      .messages =
                                          scatter_bytes(job->settings, world,
                                                        units, n)},
                   rank, &stats);
    *out = stats.bytes_out;
    *in = stats.bytes_in;
    mem_free(units);
}

#define SHARDED(name, set, carrier, ...)                                       \
    static const struct fixture name = {.sync = "zero",                        \
                                        .ops = &sync_zero,                     \
                                        .carriers = carrier,                   \
                                        .opts = "slice_kb=1," set,             \
                                        .one_wire = true,                      \
                                        __VA_ARGS__};
SHARDED(all_zero, "squeeze=topk,density=1", tcp, .law = law_zero)
SHARDED(topk_zero, "squeeze=topk,density=0.05", tcp, .law = law_zero)
SHARDED(int8_zero, "squeeze=int8", tcp, .law = law_zero)
SHARDED(sign_zero, "squeeze=sign", shm, .shared = true)
SHARDED(sign_zero_staged, "squeeze=sign", tcp, .device = queue_device_open,
        .law = law_zero)
SHARDED(moving_zero, "squeeze=topk,density=0.05,momentum_correction=1", tcp,
        .law = law_zero)
SHARDED(lossy_zero, "squeeze=int8,feedback=0", tcp, .law = law_zero)

// Gradients, too, are in shards, and have no residuals.
SHARDED(all_blocks, "squeeze=topk,density=1,feedback=0,shard=2", tcp,
        .law = law_zero)
SHARDED(int8_blocks, "squeeze=int8,feedback=0,shard=2", tcp, .law = law_zero)
SHARDED(topk_blocks, "squeeze=topk,density=0.05,feedback=0,shard=3", tcp,
        .law = NULL)
SHARDED(sign_blocks, "squeeze=sign,feedback=0,shard=3", shm, .shared = true)
SHARDED(sign_blocks_staged, "squeeze=sign,feedback=0,shard=2,staging=always",
        tcp, .law = law_zero)

// ---- servers

static int start(int world, int n, char opts[CASE_TEXT], void **state)
{
    struct ps_servers *s = mem_alloc(1, sizeof *s);
    size_t at = strlen(opts);
    (void)world;
    *state = s;
    if (!s || ps_servers_start(s, n, 1, 20, ""))
        return -1;
    return text_into(opts + at, CASE_TEXT - at, ",servers=%s", s->endpoints);
}

static int start_one(int world, char opts[CASE_TEXT], void **state)
{
    return start(world, 1, opts, state);
}

static int start_three(int world, char opts[CASE_TEXT], void **state)
{
    return start(world, 3, opts, state);
}

static void stop(void *state)
{
    ps_servers_stop(state);
    mem_free(state);
}

// One server, whose slices have 256 elements: a message of each goes out, and
// one comes in.
static void law_sps(const struct sync_job *job, int rank, int world,
                    enum dtype wire, uint64_t *out, uint64_t *in)
{
    const struct squeeze_ops *ops = squeeze_find(job->settings->squeeze);
    size_t slice = job->n < 256 ? job->n : 256;
    (void)rank;
    (void)world;
    (void)wire;
    *out = job->n / slice * ops->bytes(job->settings, slice) +
           ops->bytes(job->settings, job->n % slice);
    *in = *out;
}

#define SERVED(name, backend, set, run, ...)                                   \
    static const struct fixture name = {.sync = backend,                       \
                                        .ops = &sync_servers,                  \
                                        .opts = "slice_kb=1," set,             \
                                        .one_wire = true,                      \
                                        .start = run,                          \
                                        .stop = stop,                          \
                                        __VA_ARGS__};
SERVED(all_sps, "sps", "squeeze=topk,density=1", start_one, .law = NULL)
SERVED(all_dps, "dps", "squeeze=topk,density=1", start_three, .law = NULL)
SERVED(topk_sps, "sps", "squeeze=topk,density=0.05", start_one, .law = NULL)
SERVED(topk_dps, "dps", "squeeze=topk,density=0.05", start_three,
       .device = queue_device_open)
SERVED(int8_dps, "dps", "squeeze=int8", start_three, .law = NULL)
SERVED(int8_sps, "sps", "squeeze=int8", start_one, .law = law_sps)
SERVED(sign_sps, "sps", "squeeze=sign", start_one, .law = law_sps)
SERVED(moving_sps, "sps", "squeeze=topk,density=0.05,momentum_correction=1",
       start_one, .law = NULL)
SERVED(frozen_sps, "sps", "squeeze=sign,freeze=1", start_one, .law = NULL)
SERVED(lossy_sps, "sps", "squeeze=sign,feedback=0", start_one, .law = law_sps)

// Those that leave the sum of gradients come first.
static const struct fixture *const ways[] = {
    &topk,        &topk_shm,   &topk_tensor, &topk_model,  &int8,
    &int8_shm,    &sign,       &sign_shm,    &sign_tensor, &sign_staged,
    &power,       &power_shm,  &topk_sps,    &topk_dps,    &int8_dps,
    &sign_sps,    &moving,     &moving_sps,  &int8_zero,   &sign_zero,
    &moving_zero, &demo,       &demo_shm,    &demo_staged, &frozen,
    &frozen_late, &frozen_sps,
};
enum { WAYS = sizeof ways / sizeof *ways, SUMS = WAYS - 6, SHARDS = 3 };
