// law.c - what a step should take by the law.

#include "bench/law.h"

struct law law_ring(int n)
{
    return (struct law){.hops = 2.0 * (n - 1), .share = 2.0 * (n - 1) / n};
}

struct law law_server(int n)
{
    return (struct law){.hops = 2, .share = n};
}

struct law law_shards(int n)
{
    return (struct law){.hops = 2, .share = 2.0 * (n - 1) / n};
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
