// law.c - predicts how long an exchange takes, and fits a link to measured
// times.

#include "sync/law.h"

#include "sync/sync.h"

#include "config/backends.h"
#include "optim/segment.h"

#include <math.h>

struct law law_ring(int n)
{
    return (struct law){.hops = 2.0 * (n - 1), .share = 2.0 * (n - 1) / n};
}

struct law law_shards(int n)
{
    return (struct law){.hops = 2, .share = 2.0 * (n - 1) / n};
}

struct law law_servers(int n, int k, bool held)
{
    double share = n > k ? (double)n / k : 1;
    return (struct law){.hops = 2, .share = held ? 2 * share : share};
}

struct law law_owner(int n, bool held)
{
    return (struct law){.hops = 2, .share = (held ? 2.0 : 1.0) * (n - 1)};
}

// Returns the largest power of two up to n: the number of ranks that take part
// in the exchange. Each rank beyond it first sends its vector to one of them,
// and receives the sum at the end; *law is the cost of these two messages.
static int fold(int n, struct law *law)
{
    int power = 1;
    while (power * 2 <= n)
        power *= 2;
    *law = (struct law){0};
    if (power < n)
        *law = (struct law){.hops = 2, .share = 2};
    return power;
}

static struct law halving(int n)
{
    struct law law;
    int power = fold(n, &law);
    law.hops += 2 * log2(power);
    law.share += 2.0 * (power - 1) / power;
    return law;
}

static struct law doubling(int n)
{
    struct law law;
    int power = fold(n, &law);
    law.hops += log2(power);
    law.share += log2(power);
    return law;
}

struct law law_allreduce(enum algorithm a, int n)
{
    double deep = ceil(log2(n)); // of a tree
    switch (a) {
    case ALGORITHM_HALVING:
        return halving(n);
    case ALGORITHM_DOUBLING:
        return doubling(n);
    case ALGORITHM_TREE:
    case ALGORITHM_LIBRARY: // Open MPI uses a tree for sums in place
        return (struct law){.hops = 2 * deep, .share = 2 * deep};
    case ALGORITHM_AUTO:
    case ALGORITHM_RING:
        break;
    }
    return law_ring(n);
}

struct law law_rounds(const struct backend_rounds *r, int n)
{
    double rounds = r->count == ROUNDS_ONE    ? 1
                    : r->count == ROUNDS_LOG2 ? log2(n)
                                              : n - 1;
    return (struct law){.hops = rounds,
                        .share = r->whole ? rounds : rounds / n};
}

static struct law law_exchange(const struct backend *b,
                               const struct law_case *c)
{
    int servers = b->servers == 1 ? 1 : c->servers;
    if (c->squeezed)
        return *c->squeezed;
    switch (b->traffic) {
    case TRAFFIC_NONE:
    case TRAFFIC_OWN:
        break;
    case TRAFFIC_RING:
        return law_ring(c->workers);
    case TRAFFIC_LIBRARY:
        return law_allreduce(c->algorithm, c->workers);
    case TRAFFIC_OWNER:
        return law_owner(c->workers, c->held);
    case TRAFFIC_ROUNDS:
        return law_rounds(&b->rounds, c->workers);
    case TRAFFIC_SERVERS:
        return servers ? law_servers(c->workers, servers, c->held)
                       : law_shards(c->workers);
    }
    return (struct law){0};
}

struct law law_of(const struct backend *b, const struct law_case *c)
{
    struct law law = law_exchange(b, c);
    double every = c->every > 1 ? c->every : 1;
    return (struct law){law.hops / every, law.share / every};
}

double law_seconds(const struct law *law, const struct link *link, double bytes)
{
    return law->hops * link->alpha_s + law->share * bytes / link->bytes_per_s;
}

// Minimise the sum of ((x alpha + y / B - t) / t)^2: two normal equations.
void law_fit(const struct law *law, const double *bytes, const double *seconds,
             int n, struct link *link)
{
    double xx = 0, xy = 0, yy = 0, x1 = 0, y1 = 0;
    for (int i = 0; i < n; i++) {
        double x = law->hops / seconds[i];
        double y = law->share * bytes[i] / seconds[i];
        xx += x * x;
        xy += x * y;
        yy += y * y;
        x1 += x;
        y1 += y;
    }
    double det = xx * yy - xy * xy;
    if (det <= 1e-12 * xx * yy)
        return;
    double alpha = (x1 * yy - y1 * xy) / det;
    double beta = (y1 * xx - x1 * xy) / det;
    if (beta > 0)
        *link = (struct link){alpha > 0 ? alpha : 0, 1 / beta};
}

// ---- bytes of a step

int law_gathers(int b, int n, int micro, bool backward)
{
    int last = n - 2; // blocks 1 .. n - 2 share two buffers
    if (backward)     // forward leaves the last two in the buffers
        return b > 0 && b < last - 1 ? micro : 0;
    // backward leaves the first two to the next micro-batch
    return b > 2 && b <= last ? micro : 1;
}

static size_t align(const struct law_step *s, size_t at)
{
    size_t n = s->cut[0].off + s->cut[0].n;
    size_t up = (at + s->grain - 1) / s->grain * s->grain;
    return up < n ? up : n;
}

// How often a step gathers unit b.
static int gathered(const struct law_step *s, int b)
{
    if (s->kind < SHARD_PARAMS)
        return 1;
    return law_gathers(b, s->count, s->micro, false) +
           law_gathers(b, s->count, s->micro, true);
}

// An operation of a step on n elements, with `bytes` bytes for each.
typedef void each_fn(const struct law_step *s, enum group_verb v, size_t n,
                     uint64_t bytes, void *ctx);

static void each_operation(const struct law_step *s, each_fn *each, void *ctx)
{
    int sums = s->shards && s->kind >= SHARD_GRADS ? s->micro : 1;
    for (int i = 0; i < s->count && s->world > 1; i++) {
        const struct bucket *k = &s->cut[i];
        size_t n = align(s, k->off + k->n) - align(s, k->off);
        if (!s->shards) {
            each(s, GROUP_ALL_REDUCE, n, s->sum_bytes, ctx);
            continue;
        }
        if (!s->messages)
            each(s, GROUP_REDUCE_SCATTER, n, (uint64_t)sums * s->sum_bytes,
                 ctx);
        each(s, GROUP_ALL_GATHER, n,
             (uint64_t)gathered(s, s->count - 1 - i) * s->param_bytes, ctx);
    }
    if (s->shards && s->world > 1)
        each(s, GROUP_ALL_REDUCE, segment_blocks(s->cut[0].off + s->cut[0].n),
             sizeof(double), ctx);
}

static size_t chunk_len(const struct law_step *s, size_t n, int c)
{
    return group_chunk(n, s->grain, s->world, (c + s->world) % s->world).n;
}

struct of_rank {
    int rank;
    struct group_stats *out;
};

// Adds what a rank sends and receives.
static void add(const struct law_step *s, enum group_verb v, size_t n,
                uint64_t bytes, void *ctx)
{
    const struct of_rank *r = ctx;
    size_t left = chunk_len(s, n, r->rank - 1), own = chunk_len(s, n, r->rank);
    size_t right = chunk_len(s, n, r->rank + 1);
    bool scatters = v != GROUP_ALL_GATHER, gathers = v != GROUP_REDUCE_SCATTER;
    if (scatters)
        group_count(r->out, v, (n - own) * bytes, (n - left) * bytes);
    if (gathers)
        group_count(r->out, v, (n - right) * bytes, (n - own) * bytes);
}

void law_step_bytes(const struct law_step *s, int rank, struct group_stats *out)
{
    struct of_rank r = {rank, out};
    uint64_t messages = (uint64_t)(s->world - 1) * s->messages;
    *out = (struct group_stats){0};
    each_operation(s, add, &r);
    group_count(out, GROUP_ALL_TO_ALL, messages, messages);
}

// All ranks together send each chunk world - 1 times, in each half of a sum.
static void add_mean(const struct law_step *s, enum group_verb v, size_t n,
                     uint64_t bytes, void *ctx)
{
    double *out = ctx;
    double sent = (double)n * (double)bytes * (s->world - 1) / s->world;
    out[v] += v == GROUP_ALL_REDUCE ? 2 * sent : sent;
}

double law_step_mean(const struct law_step *s, double out[GROUP_VERBS])
{
    double all = 0;
    for (int v = 0; v < GROUP_VERBS; v++)
        out[v] = 0;
    each_operation(s, add_mean, out);
    out[GROUP_ALL_TO_ALL] += (s->world - 1) * (double)s->messages;
    for (int v = 0; v < GROUP_VERBS; v++)
        all += out[v];
    return all;
}

double law_step_hops(const struct law_step *s)
{
    int sums = s->kind >= SHARD_GRADS ? s->micro : 1;
    int gathers = s->kind >= SHARD_PARAMS ? 2 * s->micro : 1;
    int norm = 2, around = s->world - 1;
    if (s->messages)
        return sums + around * (gathers + norm);
    return around * (s->shards ? sums + gathers + norm : 2);
}
