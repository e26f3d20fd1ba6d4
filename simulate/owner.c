// owner.c - runs one step of dataparallel/dataparallel.c, the strategy that
// trains, on simulated ranks.
//
// The rule is p := p + g, and parameters begin as zero. So with payload every
// rank must end with the sums.

#include "simulate/exchange.h"
#include "simulate/group_simulated.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "config/backends.h"
#include "config/config.h"
#include "dataparallel/dataparallel.h"
#include "group/group.h"

enum { MOST_MESSAGE = 1 << 30 }; // bytes; MPI counts them in an int

static int run(struct sync *s, double *seconds)
{
    const struct sync_in in = {.step = 1, .lr = -1, .grad_scale = 1};
    struct sync_out out;
    if (s->ops->open(s))
        return -1;
    MPI_Barrier(MPI_COMM_WORLD);
    double began = MPI_Wtime();
    if (s->ops->step(s, &in, &out))
        return -1;
    *seconds = MPI_Wtime() - began;
    return 0;
}

int exchange_owner(const struct exchange *e, double *seconds)
{
    size_t bytes = e->n * sizeof(float);
    const struct optim_config optim = {.kind = OPTIM_SGD};
    struct cluster c = {.rank = e->rank,
                        .world = e->world,
                        .timeout_s = NO_DEADLINE_S};
    struct sync_settings settings;
    struct sync s = {.ops = &sync_dataparallel,
                     .carrier = &ring_simulated,
                     .job = {.backend = backend_at(e->backend),
                             .cluster = &c,
                             .n = e->n,
                             .optim = &optim,
                             .settings = &settings}};
    int rc = -1;
    bytes = bytes < MOST_MESSAGE ? bytes : MOST_MESSAGE;
    settings_defaults(&settings);
    contents_open(e, sizeof(float)); // no message is in it
    // Gradients come in pieces. As in a TCP stream, the latency of one overlaps
    // with the bytes of the one before.
    simulated_messages(bytes, 2, e->payload);
    s.state = mem_alloc(1, s.ops->state_size);
    s.job.grads = gradient_open(e);
    s.job.params = e->payload ? mem_alloc(e->n, sizeof(float)) : s.job.grads;
    if (s.state && s.job.grads && s.job.params && !run(&s, seconds))
        rc = gradient_check(e, s.job.params);
    group_close(&s.group);
    if (s.state)
        s.ops->close(&s);
    mem_free(s.state);
    if (e->payload)
        mem_free(s.job.params);
    gradient_close(e, s.job.grads);
    return rc;
}
