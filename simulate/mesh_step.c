// mesh_step.c - times a step of a model on a mesh of simulated workers:
// replicas, stages and slices.
//
// This runs the code of training: the timetable says which micro-batch a stage
// takes next; joins, norm and gradients go through the ring that trains.
// Computing is a sleep; messages have a size and no contents. Replicas begin to
// exchange when all backwards are done (overlap=0).
//
//     forward    receive | compute, joins of the slices | send
//     backward   receive | compute, joins               | send
//     at the end tied table, gradients of all replicas, norm of all stages

#include "simulate/exchange.h"
#include "simulate/group_simulated.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "config/keys.h"
#include "config/mesh.h"
#include "message/carry.h"
#include "pipeline/timetable.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PAGE_BYTES = 4096, MOST_MESSAGE = 1 << 30, RANKS = 4096 };

// The settings. The text members are lists with one number for each stage.
struct mesh_settings {
    struct mesh mesh;
    int kind, micro, ahead;
    size_t stream; // bytes of a message between stages
    size_t join;   // floats that slices sum
    size_t tied;   // floats that the ends of the pipeline exchange
    char forward_s[CONFIG_PATH], backward_s[CONFIG_PATH];
    char joins_forward[CONFIG_PATH], joins_backward[CONFIG_PATH];
    char params[CONFIG_PATH];
};

#define AT(member) offsetof(struct mesh_settings, member), false
#define COUNT      KEY_INT64
#define LIST(name)                                                             \
    {                                                                          \
        NULL, #name, "", KEY_TEXT, AT(name), .help = "by stage"                \
    }

static const struct key rows[] = {
    {NULL, "mesh", "", KEY_PARTS, AT(mesh), .read = mesh_read,
     .show = mesh_show},
    {NULL, "pipeline", NULL, KEY_CHOICE, AT(kind), .words = pipeline_names},
    {NULL, "micro", "1", KEY_INT, AT(micro), .min = 1, .max = PIPELINE_MICRO},
    {NULL, "ahead", "0", KEY_INT, AT(ahead), .min = 0, .max = PIPELINE_STAGES},
    {NULL, "stream", "1", COUNT, AT(stream), .min = 1, .max = MOST_MESSAGE},
    {NULL, "join", "1", COUNT, AT(join), .min = 1, .max = MOST_MESSAGE},
    {NULL, "tied", "1", COUNT, AT(tied), .min = 1, .max = MOST_MESSAGE},
    LIST(forward_s),
    LIST(backward_s),
    LIST(joins_forward),
    LIST(joins_backward),
    LIST(params),
};

static const struct key_table keys = {rows, sizeof rows / sizeof *rows,
                                      "simulate/mesh_step.c"};

static double of_stage(const char *list, int stage)
{
    for (; stage > 0 && *list; stage--)
        list += strcspn(list, ",") + (list[strcspn(list, ",")] == ',');
    return strtod(list, NULL);
}

// ---- a ring of the ranks that differ along one axis only

struct ring {
    int ranks[RANKS]; // of the members, in the job
    struct cluster cluster;
    struct group *group;
};

static int ring_open(struct ring *r, const struct mesh *m, int rank,
                     enum mesh_axis axis, size_t most)
{
    struct cluster *c = &r->cluster;
    size_t message = most < MOST_MESSAGE ? most : MOST_MESSAGE;
    const struct group_job job = {.name = mesh_axis_name(axis),
                                  .cluster = c,
                                  .depth = 1,
                                  .slice_bytes = message};
    *c = (struct cluster){.ranks = r->ranks, .timeout_s = NO_DEADLINE_S};
    for (int k = 0; k < mesh_ranks(m); k++) {
        bool same = true;
        for (int a = 0; a < MESH_AXES; a++)
            same &= a == (int)axis || mesh_at(m, k, (enum mesh_axis)a) ==
                                          mesh_at(m, rank, (enum mesh_axis)a);
        if (!same)
            continue;
        if (k == rank)
            c->rank = c->world;
        r->ranks[c->world++] = k;
    }
    simulated_messages(message, 1, false);
    r->group = group_open(&ring_simulated, &job);
    return r->group ? 0 : -1;
}

static int ring_verb(struct ring *r, enum group_verb verb, float *v, size_t n)
{
    const struct group_op op = {.verb = verb, .vector = group_floats(v, n)};
    uint64_t ticket;
    return group_post(r->group, &op, &ticket) || group_await(r->group, ticket)
               ? -1
               : 0;
}

// ---- a stage

struct stage {
    const struct mesh_settings *q;
    struct pipeline plan;
    int rank, stage;
    struct ring rings[MESH_AXES];
    char *nothing;        // the contents of messages between stages
    float *vector;        // only its addresses matter
    MPI_Request *came[2]; // receives, by kind of action and micro-batch
    MPI_Request *sent;    // sends, in order
    int nsent;
};

static void compute(double seconds)
{
    struct timespec t = {(time_t)seconds,
                         (long)((seconds - (double)(time_t)seconds) * 1e9)};
    smpi_nanosleep(&t, NULL);
}

// The rank of the stage behind (step = 1) or before (step = -1).
static int beside(const struct stage *s, int step)
{
    int p = s->plan.stages;
    return s->rings[MESH_PP].ranks[(s->stage + step + p) % p];
}

static int tag_of(struct action a)
{
    return 16 + 2 * a.micro + (int)a.kind;
}

// Every message has a buffer (train/stages.c), so all receives are posted at
// the start of a step.
static void expect(struct stage *s)
{
    for (int kind = 0; kind < 2; kind++)
        for (int i = 0; i < s->plan.micro; i++) {
            struct action a = {(enum action_kind)kind, i, 0};
            bool forward = kind == ACTION_FORWARD;
            s->came[kind][i] = MPI_REQUEST_NULL;
            if (s->stage == (forward ? 0 : s->plan.stages - 1))
                continue;
            MPI_Irecv(s->nothing, (int)s->q->stream, MPI_BYTE,
                      beside(s, forward ? -1 : 1), tag_of(a), MPI_COMM_WORLD,
                      &s->came[kind][i]);
        }
}

static int run_action(struct stage *s, struct action a)
{
    const struct mesh_settings *q = s->q;
    bool forward = a.kind == ACTION_FORWARD;
    bool sends = s->stage != (forward ? s->plan.stages - 1 : 0);
    int joins =
        (int)of_stage(forward ? q->joins_forward : q->joins_backward, s->stage);
    double takes = of_stage(forward ? q->forward_s : q->backward_s, s->stage);
    MPI_Wait(&s->came[a.kind][a.micro], MPI_STATUS_IGNORE);
    compute(takes / (joins + 1));
    for (int k = 0; k < joins; k++) {
        if (ring_verb(&s->rings[MESH_TP], GROUP_ALL_REDUCE, s->vector, q->join))
            return -1;
        compute(takes / (joins + 1));
    }
    if (sends)
        MPI_Isend(s->nothing, (int)q->stream, MPI_BYTE,
                  beside(s, forward ? 1 : -1), tag_of(a), MPI_COMM_WORLD,
                  &s->sent[s->nsent++]);
    return 0;
}

static void tie(const struct stage *s)
{
    int other = s->stage ? 0 : s->plan.stages - 1;
    bool end = s->stage == 0 || s->stage == s->plan.stages - 1;
    int bytes = (int)(s->q->tied * sizeof(float));
    if (s->plan.stages == 1 || !end)
        return;
    MPI_Sendrecv(s->nothing, bytes, MPI_BYTE, s->rings[MESH_PP].ranks[other], 2,
                 s->nothing, bytes, MPI_BYTE, s->rings[MESH_PP].ranks[other], 2,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static int run(struct stage *s)
{
    size_t norm = 2 * sizeof(double) / sizeof(float);
    expect(s);
    for (int k = 0; k < timetable_length(&s->plan); k++)
        if (run_action(s, timetable_action(&s->plan, s->stage, k)))
            return -1;
    MPI_Waitall(s->nsent, s->sent, MPI_STATUSES_IGNORE);
    tie(s);
    size_t n = (size_t)of_stage(s->q->params, s->stage);
    return ring_verb(&s->rings[MESH_DP], GROUP_ALL_REDUCE, s->vector, n) ||
                   ring_verb(&s->rings[MESH_PP], GROUP_ALL_GATHER, s->vector,
                             norm * (size_t)s->plan.stages)
               ? -1
               : 0;
}

// Length of the longest vector of any rank, in floats.
static size_t longest(const struct stage *s)
{
    const struct mesh_settings *q = s->q;
    size_t most = q->join > q->tied ? q->join : q->tied;
    size_t stream = q->stream / sizeof(float) + 1;
    most = stream > most ? stream : most;
    for (int k = 0; k < s->plan.stages; k++) {
        size_t params = (size_t)of_stage(q->params, k);
        most = params > most ? params : most;
    }
    return most;
}

// Opens a ring for each axis. Its longest message is a chunk of the vector that
// it sums.
static int open_rings(struct stage *s)
{
    const struct mesh *m = &s->q->mesh;
    size_t most[MESH_AXES] = {0};
    most[MESH_DP] = (size_t)of_stage(s->q->params, s->stage);
    most[MESH_PP] = PAGE_BYTES;
    most[MESH_TP] = s->q->join;
    for (int a = 0; a < MESH_AXES; a++) {
        int members = mesh_size(m, (enum mesh_axis)a);
        size_t chunk = most[a] / (size_t)members + 1;
        if (ring_open(&s->rings[a], m, s->rank, (enum mesh_axis)a,
                      chunk * sizeof(float)))
            return -1;
    }
    return 0;
}

int simulate_mesh(int nwords, char **words, double *seconds)
{
    struct mesh_settings q;
    key_defaults(&keys, &q);
    if (key_words(&keys, &q, nwords, words))
        return -1;
    struct stage *s = mem_alloc(1, sizeof *s);
    struct exchange e = {.n = 1};
    int rc = -1;
    if (!s)
        return -1;
    MPI_Comm_rank(MPI_COMM_WORLD, &s->rank);
    s->q = &q;
    s->stage = mesh_at(&q.mesh, s->rank, MESH_PP);
    s->plan =
        (struct pipeline){(enum pipeline_kind)q.kind,
                          mesh_size(&q.mesh, MESH_PP), q.micro, 1, q.ahead};
    e.n = longest(s);
    s->vector = gradient_open(&e);
    contents_open(&e, e.n * sizeof(float));
    s->nothing = carry_buffer(e.n * sizeof(float));
    s->sent = mem_alloc(2 * (size_t)q.micro, sizeof(MPI_Request));
    for (int kind = 0; kind < 2; kind++)
        s->came[kind] = mem_alloc((size_t)q.micro, sizeof(MPI_Request));
    if (!s->vector || !s->sent || !s->came[0] || !s->came[1] ||
        pipeline_check(&s->plan) || open_rings(s))
        goto close_stage;
    MPI_Barrier(MPI_COMM_WORLD);
    double began = MPI_Wtime();
    rc = run(s);
    *seconds = MPI_Wtime() - began;
close_stage:
    for (int a = 0; a < MESH_AXES; a++)
        group_close(&s->rings[a].group);
    gradient_close(&e, s->vector);
    mem_free(s->came[0]);
    mem_free(s->came[1]);
    mem_free(s->sent);
    mem_free(s);
    return rc;
}
