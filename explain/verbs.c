// verbs.c - runs one verb of group.h over our ring, or one collective by a
// textbook's algorithm, on a virtual cluster.

#include "explain/ways.h"

#include "base/base.h"
#include "cluster/virtual_cluster.h"
#include "device/vector.h"
#include "horovod_ring/carriers.h"

struct job {
    struct story *story;
    enum group_verb verb;
    struct schedule schedule;
};

// ---- verbs of group.h

static struct group_chunk owned(enum group_verb verb, size_t n, int world,
                                int rank)
{
    bool has = verb == GROUP_BROADCAST ? rank == 0 : group_is_sum(verb);
    return verb == GROUP_ALL_GATHER ? group_chunk(n, 1, world, rank)
                                    : (struct group_chunk){0, has ? n : 0};
}

static int run_verb(struct virtual_rank *r, void *arg)
{
    const struct job *j = arg;
    struct story *s = j->story;
    size_t n = s->vectors[0].n;
    struct cluster cluster = cluster_virtual(r, s->workers, 0);
    const struct group_job job = {.name = "explain",
                                  .cluster = &cluster,
                                  .depth = 1};
    struct group_chunk own = owned(j->verb, n, s->workers, cluster.rank);
    float *v = mem_alloc(n, sizeof *v);
    struct group *g = v ? group_open(&ring_virtual, &job) : NULL;
    const struct group_op op = {.verb = j->verb, .vector = group_floats(v, n)};
    uint64_t ticket;
    for (size_t i = 0; v && i < own.n; i++)
        v[own.off + i] = way_number(cluster.rank);
    int rc = g && !story_before(s, 0, cluster.rank, v) &&
                     !group_post(g, &op, &ticket) &&
                     !group_await(g, ticket) &&
                     !story_after(s, 0, cluster.rank, v)
                 ? 0
                 : -1;
    group_close(&g);
    mem_free(v);
    return rc;
}

int way_verb(struct story *s, enum group_verb verb)
{
    struct job job = {.story = s, .verb = verb};
    const struct group_op op = {.verb = verb, .vector.n = s->vectors[0].n};
    s->vectors[0].name = "vector";
    s->nvectors = 1;
    text_into(s->note, sizeof s->note,
              "The verb %s of group.h, by our ring: each worker sends only to "
              "its right neighbour.",
              group_verb_name(verb));
    if (story_run(s, 0, run_verb, &job))
        return -1;
    for (int r = 0; r < s->workers; r++)
        for (int d = 0; d < 2; d++) {
            const struct plan p = {r, s->workers, 1};
            s->law[d][r] =
                plan_elements(&p, &op, (enum direction)d) * sizeof(float);
        }
    return 0;
}

// ---- textbook/schedule.h

static int move(struct virtual_rank *r, const struct move *m, float *own,
                float *landing, struct virtual_req *req)
{
    size_t bytes = m->span.n * sizeof(float);
    return m->sends ? virtual_isend(r, m->peer, own + m->span.off, bytes, req)
                    : virtual_irecv(r, m->peer,
                                    (m->adds ? landing : own) + m->span.off,
                                    bytes, req);
}

int way_moves(struct virtual_rank *r, const struct schedule *s, float *own,
              float *landing)
{
    struct move m[2];
    struct virtual_req req[2];
    for (int k = 0, n; (n = schedule_next(s, virtual_id(r), k, m)) > 0;
         k += n) {
        for (int i = 0; i < n; i++)
            if (move(r, &m[i], own, landing, &req[i]))
                return -1;
        if (virtual_wait(r, req, n))
            return -1;
        if (m[0].adds)
            vector_add(own + m[0].span.off, landing + m[0].span.off, DTYPE_F32,
                       m[0].span.n);
    }
    return 0;
}

static int run_textbook(struct virtual_rank *r, void *arg)
{
    const struct job *j = arg;
    const struct schedule *s = &j->schedule;
    int rank = virtual_id(r);
    bool all =
        s->op == SCHEDULE_REDUCE || (rank == 0 && s->op != SCHEDULE_GATHER);
    struct group_chunk own = {0, all ? s->n : 0};
    if (s->op == SCHEDULE_GATHER)
        own = group_chunk(s->n, 1, s->world, rank);
    float *v = mem_alloc(2 * s->n, sizeof *v);
    for (size_t i = 0; v && i < own.n; i++)
        v[own.off + i] = way_number(rank);
    int rc = v && !story_before(j->story, 0, rank, v) &&
                     !way_moves(r, s, v, v + s->n) &&
                     !story_after(j->story, 0, rank, v)
                 ? 0
                 : -1;
    mem_free(v);
    return rc;
}

void way_moves_law(struct story *s, const struct schedule *schedule)
{
    struct move m;
    for (int r = 0; r < s->workers; r++)
        for (int i = 0; schedule_move(schedule, r, i, &m); i++)
            if (m.sends) {
                s->law[OUT][r] += m.span.n * sizeof(float);
                s->law[IN][m.peer] += m.span.n * sizeof(float);
            }
}

int way_textbook(struct story *s, enum schedule_op op,
                 enum schedule_algorithm algorithm, size_t piece)
{
    struct job job = {.story = s,
                      .schedule = {.op = op,
                                   .algorithm = algorithm,
                                   .world = s->workers,
                                   .n = s->vectors[0].n,
                                   .piece = piece}};
    const struct law law = schedule_law(&job.schedule);
    double n = (double)job.schedule.n;
    s->vectors[0].name = "vector";
    s->nvectors = 1;
    text_into(s->note, sizeof s->note,
              "%s by a textbook's algorithm, %s, in %d rounds. The root is "
              "worker 0.",
              schedule_op_names[op], schedule_algorithm_names[algorithm],
              schedule_rounds(&job.schedule));
    if (story_run(s, 0, run_textbook, &job))
        return -1;
    way_moves_law(s, &job.schedule);
    s->law_s = law_seconds(&law, &s->link, n * sizeof(float));
    return 0;
}
