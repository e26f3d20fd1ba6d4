// ps_round.c - runs one round of ps_server and ps_worker's client.

#include "ps_round/ps_round.h"

#include "base/base.h"
#include "ps_server/server.h"
#include "ps_worker/client.h"

static int work(const struct ps_round *r, const struct ps_job *job)
{
    enum { NAME = 32 }; // "virtual://31,"
    const struct ps_step step = {.step = 1, .lr = -1, .grad_scale = 1};
    struct cluster cluster = r->cluster;
    const struct sync_job sync = {.cluster = &cluster,
                                  .params = r->params,
                                  .grads = r->grads};
    struct client *c = mem_alloc(1, sizeof *c);
    char *endpoints = mem_alloc((size_t)job->servers, NAME);
    int rc = -1;
    for (int i = 0, at = 0; endpoints && i < job->servers; i++)
        at += snprintf(endpoints + at, NAME, "%s%s://%d", i ? "," : "",
                       r->transport->name, job->world + i);
    if (c && endpoints && !client_open(c, job, r->transport, endpoints, &sync))
        rc = r->run(r->ctx, c, &step);
    if (c)
        client_close(c);
    mem_free(endpoints);
    mem_free(c);
    return rc;
}

static int serve(const struct ps_round *r, const struct ps_job *job)
{
    struct server *s;
    const struct server_config config = {.transport = r->transport,
                                         .bind = "", // its rank says it
                                         .curve = "",
                                         .index = job->rank - job->world,
                                         .servers = job->servers,
                                         .world = job->world,
                                         .threads = r->threads,
                                         .timeout_s = job->timeout_s};
    if (server_open(&s, &config))
        return -1;
    int rc = server_run(s);
    server_close(&s);
    return rc;
}

int ps_round_run(const struct ps_round *r)
{
    struct ps_job job = r->job;
    job.rank = r->cluster.rank;
    job.world = r->cluster.world;
    job.timeout_s = r->cluster.timeout_s;
    job.threadless = true;
    job.optim.kind = OPTIM_SGD;
    return job.rank < job.world ? work(r, &job) : serve(r, &job);
}
