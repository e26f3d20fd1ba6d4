// test_ring_virtual.c - the ring on a virtual cluster, in one process. The ring
// passes the cases of every carrier and every strategy. The cluster counts the
// ring's bytes and its time, and names dead ranks and deadlocks.

#include "cluster/virtual_cluster.h"
#include "horovod_ring/carriers.h"
#include "horovod_ring/plan.h"
#include "sync/law.h"
#include "sync/replicas.h"
#include "tests/group_cases.h"
#include "tests/sync_cases.h"
#include "tests/virtual_world.h"
#include "zero/zero.h"

#include "tests/virtual_run.h"

// ---- the cases of all carriers and strategies

static void law(const struct group *g, const struct group_op *op, uint64_t *out,
                uint64_t *in)
{
    const struct plan p = {.rank = g->rank,
                           .world = g->size,
                           .grain = g->job.grain};
    size_t size = dtype_bytes(op->vector.wire);
    *out = plan_elements(&p, op, OUT) * size;
    *in = plan_elements(&p, op, IN) * size;
}

static const struct carried carrier = {.ops = &ring_virtual,
                                       .run = virtual_world,
                                       .halves_bytes = true,
                                       .law = law};

static void verbs_give_exact_results(void **state)
{
    (void)state;
    carry_verbs(&carrier);
    carry_many(&carrier);
}

static void large_vectors_travel_in_pieces(void **state)
{
    (void)state;
    carry_large(&carrier);
    carry_halves(&carrier);
}

static void groups_and_pairs_work(void **state)
{
    (void)state;
    carry_groups(&carrier);
    carry_pairs(&carrier);
}

static void parts_of_any_length_travel(void **state)
{
    (void)state;
    carry_uneven(&carrier);
    carry_all_to_all(&carrier);
    carry_all_to_all_many(&carrier);
}

static const struct group_ops *const carriers[] = {&ring_virtual, NULL};

static const struct fixture strategies[] = {
    {.sync = "ring",
     .few = true,
     .ops = &sync_replicas,
     .carriers = carriers,
     .run = virtual_world,
     .opts = "slice_kb=1"},
    {.sync = "zero",
     .few = true,
     .ops = &sync_zero,
     .carriers = carriers,
     .run = virtual_world,
     .opts = "slice_kb=1"},
};

// ---- bytes and seconds

enum { MOST = 20011, DEPTH = 2 };

struct job {
    int world;
    enum group_verb verb;
    size_t n;
    double timeout_s;
};

static struct group *open_group(struct cluster *c, const char *name)
{
    const struct group_job job = {.name = name,
                                  .cluster = c,
                                  .depth = DEPTH,
                                  .pairs = true,
                                  .slice_bytes = MOST * sizeof(float)};
    return group_open(&ring_virtual, &job);
}

// Runs one verb on a vector of ones. Its root, if it has one, is rank 0.
static int one_verb(struct virtual_rank *r, void *arg)
{
    const struct job *job = arg;
    struct cluster c = cluster_virtual(r, job->world, job->timeout_s);
    float v[MOST];
    const struct group_op op = {.verb = job->verb,
                                .vector = group_floats(v, job->n)};
    uint64_t ticket;
    for (size_t i = 0; i < job->n; i++)
        v[i] = 1;
    struct group *g = open_group(&c, "dp");
    if (!g)
        return -1;
    int rc = group_post(g, &op, &ticket) || group_await(g, ticket) ? -1 : 0;
    group_close(&g);
    return rc;
}

static void bytes_follow_the_law(void **state)
{
    (void)state;
    static const int worlds[] = {1, 2, 3, 4, 16};
    static const size_t sizes[] = {1, 7, 16, MOST};
    for (size_t w = 0; w < sizeof worlds / sizeof *worlds; w++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
            for (int verb = 0; verb < GROUP_SEND; verb++) {
                struct job job = {.world = worlds[w],
                                  .verb = (enum group_verb)verb,
                                  .n = sizes[k]};
                struct virtual_setup s = setup(job.world);
                struct virtual_result *v = run(&s, one_verb, &job);
                const struct group_op op = {.verb = job.verb,
                                            .vector.n = job.n};
                assert_clean(v);
                for (int r = 0; r < job.world; r++) {
                    const struct plan p = {r, job.world, 1};
                    assert_int_equal(v->rank[r].bytes_out,
                                     4 * plan_elements(&p, &op, OUT));
                    assert_int_equal(v->rank[r].bytes_in,
                                     4 * plan_elements(&p, &op, IN));
                }
                virtual_close(&v);
            }
}

static void time_follows_the_law(void **state)
{
    (void)state;
    static const int worlds[] = {2, 3, 4, 16};
    for (size_t w = 0; w < sizeof worlds / sizeof *worlds; w++) {
        struct job job = {.world = worlds[w],
                          .verb = GROUP_ALL_REDUCE,
                          .n = 600 * (size_t)worlds[w]};
        struct virtual_setup s = setup(job.world);
        const struct law ring = law_ring(job.world);
        const struct link link = {alpha_s, bytes_per_s};
        struct virtual_result *v = run(&s, one_verb, &job);
        assert_clean(v);
        assert_seconds(v->seconds,
                       law_seconds(&ring, &link, 4.0 * (double)job.n));
        virtual_close(&v);
    }
}

// ---- death and deadlock

static void the_dead_rank_is_named(void **state)
{
    (void)state;
    enum { WORLD = 4, DEAD = 2, LAST = 40 };
    struct job job = {.world = WORLD, .verb = GROUP_ALL_REDUCE, .n = 4000};
    int killed = 0;
    for (int way = 0; way < 2; way++)
        for (long call = 1; call <= LAST; call += 3) {
            struct virtual_setup s = setup(WORLD);
            s.kill = (struct virtual_kill){DEAD, call, way};
            job.timeout_s = way ? 0 : 5; // a silent death needs a timeout
            s.returns = true;
            struct virtual_result *v = run(&s, one_verb, &job);
            bool dies = v->rank[DEAD].end == VIRTUAL_KILLED;
            killed += dies;
            for (int r = 0; r < WORLD; r++) {
                if (r == DEAD || !dies || !v->rank[r].value)
                    continue;
                if (!strstr(v->rank[r].error, "rank 2") &&
                    !strstr(v->rank[r].error, "from 2") &&
                    !strstr(v->rank[r].error, "to 2"))
                    print_error("call %ld: rank %d: %s\n", call, r,
                                v->rank[r].error);
                assert_true(strstr(v->rank[r].error, "rank 2") ||
                            strstr(v->rank[r].error, "from 2") ||
                            strstr(v->rank[r].error, "to 2"));
            }
            virtual_close(&v);
        }
    assert_true(killed > 10);
}

// Both ranks receive before either sends.
static int both_receive(struct virtual_rank *r, void *arg)
{
    struct cluster c = cluster_virtual(r, 2, 0);
    int other = 1 - virtual_id(r);
    float v[3] = {0};
    struct group_vector x = group_floats(v, 3);
    uint64_t ticket;
    (void)arg;
    struct group *g = open_group(&c, "pp");
    int rc = !g || group_recv(g, &x, other, &ticket) ||
                     group_await(g, ticket) ||
                     group_send(g, &x, other, &ticket) || group_await(g, ticket)
                 ? -1
                 : 0;
    group_close(&g);
    return rc;
}

static void a_deadlock_is_reported_as_a_cycle(void **state)
{
    (void)state;
    struct virtual_setup s = setup(2);
    s.returns = true;
    struct virtual_result *v = run(&s, both_receive, NULL);
    assert_non_null(strstr(v->deadlock, "0 receives from 1 (message 1), 1 "
                                        "receives from 0 (message 1): nobody "
                                        "sends"));
    for (int r = 0; r < 2; r++) {
        assert_int_equal(v->rank[r].end, VIRTUAL_STUCK);
        assert_int_equal(v->rank[r].value, -1);
    }
    virtual_close(&v);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verbs_give_exact_results),
        cmocka_unit_test(large_vectors_travel_in_pieces),
        cmocka_unit_test(groups_and_pairs_work),
        cmocka_unit_test(parts_of_any_length_travel),
        CASE(integers, &strategies[0]),
        CASE(many, &strategies[0]),
        CASE(overflow, &strategies[0]),
        CASE(integers, &strategies[1]),
        CASE(overflow, &strategies[1]),
        cmocka_unit_test(bytes_follow_the_law),
        cmocka_unit_test(time_follows_the_law),
        cmocka_unit_test(the_dead_rank_is_named),
        cmocka_unit_test(a_deadlock_is_reported_as_a_cycle),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
