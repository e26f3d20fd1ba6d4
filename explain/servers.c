// servers.c - runs one exchange of parameter servers and their clients on a
// virtual cluster.
//
// The parameters are 0 before, so those that servers update become the sums of
// the gradients.

#include "explain/ways.h"

#include "explain/message_virtual.h"

#include "base/base.h"
#include "cluster/virtual_cluster.h"
#include "config/backends.h"
#include "ps_round/ps_round.h"
#include "ps_worker/client.h"

enum { GRADS, PARAMS };

// Deadlines count real time, but this cluster has a simulated clock.
static const double no_deadline_s = 9e5;

// ---- the part of a vector in a message

static struct story_place place(const struct story *s, const void *envelope,
                                const struct virtual_message *m)
{
    const struct ps_job *j = s->ctx;
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

static int tell(void *ctx, struct client *c, const struct ps_step *step)
{
    struct story *s = ctx;
    struct cluster cluster =
        cluster_virtual(virtual_self(), s->workers, no_deadline_s);
    int rank = cluster.rank;
    if (cluster_barrier(&cluster) || story_before(s, GRADS, rank, c->grads) ||
        story_before(s, PARAMS, rank, c->params) || client_round(c, step) ||
        story_after(s, GRADS, rank, c->grads) ||
        story_after(s, PARAMS, rank, c->params))
        return -1;
    const float *result = c->job.worker_updates ? c->grads : c->params;
    float sum = way_number(s->workers) - 1;
    for (size_t i = 0; i < c->job.n; i++)
        if (result[i] != sum)
            return fail("explain: element %zu of rank %d is %g, not the sum %g",
                        i, rank, (double)result[i], (double)sum);
    return 0;
}

static int run(struct virtual_rank *r, void *arg)
{
    struct story *s = arg;
    const struct ps_job *job = s->ctx;
    size_t n = job->n;
    float *v = mem_alloc(2 * n, sizeof *v); // a server needs none
    if (!v)
        return -1;
    const struct ps_round round = {.transport = &message_virtual,
                                   .cluster = cluster_virtual(r, s->workers,
                                                              no_deadline_s),
                                   .job = *job,
                                   .params = v,
                                   .grads = v + n,
                                   .threads = 1,
                                   .run = tell,
                                   .ctx = s};
    for (size_t i = 0; i < n; i++)
        v[n + i] = way_number(virtual_id(r));
    int rc = ps_round_run(&round);
    mem_free(v);
    return rc;
}

// ---- the law: bytes to and from every server on another host

static void set_law(struct story *s, const struct backend *b,
                    const struct ps_job *j)
{
    const struct law_case c = {.workers = s->workers,
                               .servers = j->beside ? 0 : j->servers,
                               .held = !j->worker_updates};
    const struct law law = law_of(b, &c);
    for (int k = 0; k < j->servers; k++) {
        struct shard shard;
        CHECK(!shard_make(&shard, j->n, j->slice, j->servers, k));
        uint64_t bytes = shard_elements(&shard) * sizeof(float);
        for (int r = 0; r < s->workers; r++)
            for (int d = 0; d < 2 && !(j->beside && r == k); d++) {
                s->law[d][r] += bytes;
                s->law[d][s->workers + k] += bytes;
            }
    }
    s->law_s = law_seconds(&law, &s->link, (double)j->n * sizeof(float));
}

int way_servers(struct story *s, const struct backend *b, int servers,
                bool worker_updates)
{
    size_t n = s->vectors[0].n,
           most = (n + (size_t)servers - 1) / (size_t)servers;
    const struct ps_job job = {.servers = servers,
                               .beside =
                                   b->servers < 0 && servers == s->workers,
                               .n = n,
                               .slice = most,
                               .worker_updates = worker_updates};
    s->servers = servers;
    s->place = place;
    s->ctx = &job;
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
              job.beside ? " Each server is on the host of a worker; "
                           "messages between the two cross no link."
                         : "");
    int rc = story_run(s, job.beside ? s->workers : 0, run, s);
    if (!rc)
        set_law(s, b, &job);
    if (!rc)
        rc = story_follow(s);
    s->ctx = NULL;
    return rc;
}
