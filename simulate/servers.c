// servers.c - runs one round of parameter servers and their clients on
// simulated ranks.
//
// The same code as in training runs here, over message_mpi.c. Without payload
// there are no numbers, so this file and carry_simulated.c replace the
// functions that work on numbers. With squeeze= both directions are compressed,
// and every host must send and receive the bytes of the law.

#include "simulate/exchange.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "config/config.h"
#include "ps_round/ps_round.h"
#include "ps_server/thread_pool.h"
#include "ps_worker/client.h"
#include "squeeze/squeeze.h"

// Adds what one direction of this host's link carries between the worker and a
// server: messages, or the answers to them. A server beside the worker has all
// other workers.
static void add_law(const struct client *c, const struct remote *r,
                    uint64_t *messages, uint64_t *answers)
{
    uint64_t world = (uint64_t)c->job.world, times = r->beside ? world - 1 : 1;
    for (int k = 0; k < r->rows; k++) {
        size_t n = shard_slice(&r->shard, k).n;
        uint64_t message = c->squeeze->bytes(&c->job.squeeze, n);
        uint64_t all = world * message, whole = n * sizeof(float);
        *messages += times * message;
        *answers += times * (c->squeeze->twice ? message
                             : all < whole     ? all
                                               : whole);
    }
}

// With topk the length of answers depends on the numbers, if there are any.
static int check_bytes(const struct exchange *e, const struct client *c)
{
    uint64_t out = 0, in = 0;
    for (int i = 0; i < c->nremotes; i++) {
        const struct remote *r = &c->remotes[i];
        add_law(c, r, r->beside ? &in : &out, r->beside ? &out : &in);
    }
    const struct group_stats *is = &c->stats;
    bool known = c->squeeze->twice || !e->payload;
    bool more = is->bytes_out > out || is->bytes_in > in;
    bool less = is->bytes_out < out || is->bytes_in < in;
    return !more && (!less || !known)
               ? 0
               : fail("rank %d: %llu bytes go to servers and %llu come from "
                      "them; the law says %llu and %llu",
                      e->rank, (unsigned long long)is->bytes_out,
                      (unsigned long long)is->bytes_in, (unsigned long long)out,
                      (unsigned long long)in);
}

struct timed {
    const struct exchange *e;
    MPI_Comm workers;
    double *seconds;
};

static int run(void *ctx, struct client *c, const struct ps_step *step)
{
    const struct timed *t = ctx;
    c->squeezes = c->squeeze;
    c->run_step = step->step;
    MPI_Barrier(t->workers);
    double began = MPI_Wtime();
    if (client_round(c, step))
        return -1;
    *t->seconds = MPI_Wtime() - began;
    if (c->squeeze)
        return check_bytes(t->e, c) || gradient_same(t->e, c->grads, t->workers)
                   ? -1
                   : 0;
    return gradient_check(t->e, c->grads);
}

int exchange_servers(const struct exchange *e, double *seconds)
{
    if (e->servers < 1 || e->slice_kb < 1 || e->n < (size_t)e->servers)
        return fail("%zu elements in slices of %d KiB for %d servers", e->n,
                    e->slice_kb, e->servers);
    struct timed t = {.e = e, .seconds = seconds};
    size_t servers = (size_t)e->servers, most = (e->n + servers - 1) / servers;
    size_t slice = (size_t)e->slice_kb * 1024 / sizeof(float);
    float *vector = e->rank < e->world ? gradient_open(e) : NULL;
    struct ps_round round = {.transport = &message_mpi,
                             .cluster = {.rank = e->rank,
                                         .world = e->world,
                                         .timeout_s = NO_DEADLINE_S},
                             .job = {.servers = e->servers,
                                     .beside = e->servers > 1,
                                     .n = e->n,
                                     .slice = slice < most ? slice : most,
                                     .worker_updates =
                                         e->worker_updates || e->run,
                                     .priority = true},
                             .params = vector,
                             .grads = vector,
                             .threads = e->payload,
                             .run = run,
                             .ctx = &t};
    contents_open(e, round.job.slice * sizeof(float));
    if (e->run) {
        contents_union(e);
        ps_job_squeeze(&round.job, &e->run->settings);
    }
    MPI_Comm_split(MPI_COMM_WORLD, e->rank >= e->world, e->rank, &t.workers);
    int rc = vector || e->rank >= e->world ? ps_round_run(&round) : -1;
    MPI_Comm_free(&t.workers);
    gradient_close(e, vector);
    return rc;
}

// ---- replaces ps_server/thread_pool.c; a pool of 0 threads does no work

struct thread_pool {
    bool works;
};

int thread_pool_open(struct thread_pool **out, int threads)
{
    struct thread_pool *t = mem_alloc(1, sizeof *t);
    if (!t)
        return -1;
    t->works = threads > 0;
    *out = t;
    return 0;
}

void thread_pool_close(struct thread_pool **t)
{
    mem_free(*t);
    *t = NULL;
}

void thread_pool_run(struct thread_pool *t, thread_pool_part *fn, void *ctx,
                     size_t parts)
{
    for (size_t i = 0; t->works && i < parts; i++)
        fn(ctx, i);
}
