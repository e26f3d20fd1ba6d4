// servers.c - runs one exchange of parameter servers and their clients on a
// virtual cluster.
//
// Workers are ranks 0 .. workers-1; servers are the ranks after them. If the
// servers update, their rule is p := p + g. The parameters are 0 before, so the
// new parameters are the sums of the gradients.

#include "explain/ways.h"

#include "explain/message_virtual.h"

#include "base/base.h"
#include "cluster/virtual_cluster.h"
#include "config/backends.h"
#include "ps_server/server.h"
#include "ps_worker/client.h"

enum { GRADS, PARAMS };

// Deadlines count real time, but this cluster has a simulated clock.
static const double no_deadline_s = 9e5;

static const struct ps_step step = {.step = 1, .lr = -1, .grad_scale = 1};

struct round {
    struct story *story;
    struct ps_job job;
};

// ---- the part of a vector in a message

static struct story_place place(const struct story *s, const void *envelope,
                                const struct virtual_message *m)
{
    const struct round *round = s->ctx;
    const struct ps_job *j = &round->job;
    struct story_place none = {.vector = -1};
    struct shard shard;
    struct ps_head h;
    int server = (m->from < s->workers ? m->to : m->from) - s->workers;
    if (ps_head_get(&h, message_virtual_head(envelope), PS_HEAD) ||
        (h.kind != PS_PUSH && h.kind != PS_SLICE) ||
        shard_make(&shard, j->n, j->slice, j->servers, server))
        return none;
    struct slice slice = shard_slice(&shard, (int)h.row);
    bool sums = h.kind == PS_PUSH || j->worker_updates;
    return (struct story_place){sums ? GRADS : PARAMS, slice.off, slice.n};
}

// ---- the ranks

static int run_client(struct round *round, struct client *c, float *v,
                      struct cluster *cluster, const char *endpoints)
{
    struct story *s = round->story;
    size_t n = round->job.n;
    struct sync_job sync = {.cluster = cluster, .params = v, .grads = v + n};
    struct ps_job job = round->job;
    float *result = job.worker_updates ? sync.grads : sync.params;
    job.rank = cluster->rank;
    if (client_open(c, &job, &message_virtual, endpoints, &sync) ||
        cluster_barrier(cluster) ||
        story_before(s, GRADS, job.rank, sync.grads) ||
        story_before(s, PARAMS, job.rank, sync.params) ||
        client_round(c, &step) || story_after(s, GRADS, job.rank, sync.grads) ||
        story_after(s, PARAMS, job.rank, sync.params))
        return -1;
    float sum = way_number(s->workers) - 1;
    for (size_t i = 0; i < n; i++)
        if (result[i] != sum)
            return fail("explain: element %zu of rank %d is %g, not the sum %g",
                        i, job.rank, (double)result[i], (double)sum);
    return 0;
}

static int worker(struct virtual_rank *r, struct round *round)
{
    enum { NAME = 24 }; // "virtual://31,"
    const struct ps_job *j = &round->job;
    struct cluster cluster = cluster_virtual(r, j->world, no_deadline_s);
    char endpoints[STORY_RANKS * NAME] = "";
    struct client *c = mem_alloc(1, sizeof *c);
    float *v = mem_alloc(2 * j->n, sizeof *v);
    int rc = -1;
    for (int i = 0, at = 0; i < j->servers; i++)
        at += snprintf(endpoints + at, NAME, "%svirtual://%d", i ? "," : "",
                       j->world + i);
    for (size_t i = 0; v && i < j->n; i++)
        v[j->n + i] = way_number(cluster.rank);
    if (c && v)
        rc = run_client(round, c, v, &cluster, endpoints);
    if (c)
        client_close(c);
    mem_free(c);
    mem_free(v);
    return rc;
}

static int server(struct virtual_rank *r, const struct round *round)
{
    struct server *s;
    char bind[MESSAGE_ENDPOINT];
    const struct ps_job *j = &round->job;
    if (text_into(bind, sizeof bind, "virtual://%d", virtual_id(r)))
        return -1;
    const struct server_config config = {.transport = &message_virtual,
                                         .bind = bind,
                                         .curve = "",
                                         .index = virtual_id(r) - j->world,
                                         .servers = j->servers,
                                         .world = j->world,
                                         .threads = 1,
                                         .timeout_s = no_deadline_s};
    if (server_open(&s, &config))
        return -1;
    int rc = server_run(s);
    server_close(&s);
    return rc;
}

static int rank(struct virtual_rank *r, void *arg)
{
    struct round *round = arg;
    return virtual_id(r) < round->job.world ? worker(r, round)
                                            : server(r, round);
}

// ---- the law: bytes to and from every server on another host

static void set_law(struct story *s, const struct backend *b,
                    const struct ps_job *j)
{
    const struct law_case c = {.workers = j->world,
                               .servers = j->beside ? 0 : j->servers,
                               .held = !j->worker_updates};
    const struct law law = law_of(b, &c);
    for (int k = 0; k < j->servers; k++) {
        struct shard shard;
        CHECK(!shard_make(&shard, j->n, j->slice, j->servers, k));
        uint64_t bytes = shard_elements(&shard) * sizeof(float);
        for (int r = 0; r < j->world; r++)
            for (int d = 0; d < 2 && !(j->beside && r == k); d++) {
                s->law[d][r] += bytes;
                s->law[d][j->world + k] += bytes;
            }
    }
    s->law_s = law_seconds(&law, &s->link, (double)j->n * sizeof(float));
}

int way_servers(struct story *s, const struct backend *b, int servers,
                bool worker_updates)
{
    size_t n = s->vectors[0].n,
           most = (n + (size_t)servers - 1) / (size_t)servers;
    struct round round = {.story = s,
                          .job = {.world = s->workers,
                                  .servers = servers,
                                  .beside =
                                      b->servers < 0 && servers == s->workers,
                                  .n = n,
                                  .slice = most,
                                  .worker_updates = worker_updates,
                                  .threadless = true,
                                  .timeout_s = no_deadline_s,
                                  .optim = {.kind = OPTIM_SGD}}};
    s->servers = servers;
    s->place = place;
    s->ctx = &round;
    s->vectors[GRADS].name = "gradients";
    s->vectors[PARAMS] =
        (struct story_vector){.name = "parameters", .n = n, .updates = true};
    s->nvectors = worker_updates ? 1 : 2;
    for (int i = 0; i < servers; i++)
        s->vectors[GRADS].shown[s->workers + i] = true;
    text_into(s->note, sizeof s->note,
              "%s: %s. Workers send their gradients. %s.%s", b->name, b->help,
              worker_updates ? "Servers add them and send the sums back"
                             : "Servers add them, update, and send the "
                               "parameters back",
              round.job.beside ? " Each server is on the host of a worker; "
                                 "messages between the two cross no link."
                               : "");
    int rc = story_run(s, round.job.beside ? s->workers : 0, rank, &round);
    if (!rc)
        set_law(s, b, &round.job);
    if (!rc)
        rc = story_follow(s);
    s->ctx = NULL;
    return rc;
}
