// law.c - what an exchange should take by the law, and the link behind it.

#include "sync/law.h"

#include "config/backends.h"

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

// The power of two that takes part: ranks beyond it are folded into it, and
// wait for the sum at the end.
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

struct law law_halving(int n)
{
    struct law law;
    int power = fold(n, &law);
    law.hops += 2 * log2(power);
    law.share += 2.0 * (power - 1) / power;
    return law;
}

struct law law_doubling(int n)
{
    struct law law;
    int power = fold(n, &law);
    law.hops += log2(power);
    law.share += log2(power);
    return law;
}

struct law law_tree(int n)
{
    double deep = ceil(log2(n));
    return (struct law){.hops = 2 * deep, .share = 2 * deep};
}

struct law law_allreduce(enum algorithm a, int n)
{
    switch (a) {
    case ALGORITHM_HALVING:
        return law_halving(n);
    case ALGORITHM_DOUBLING:
        return law_doubling(n);
    case ALGORITHM_TREE:
    case ALGORITHM_LIBRARY: // what Open MPI takes in place
        return law_tree(n);
    case ALGORITHM_AUTO:
    case ALGORITHM_RING:
        break;
    }
    return law_ring(n);
}

static struct law law_exchange(const struct backend *b,
                               const struct law_case *c)
{
    int servers = b->servers == 1 ? 1 : c->servers;
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
