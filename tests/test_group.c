// test_group.c - our own carriers against what every carrier must pass.

#include "horovod_ring/carriers.h"
#include "horovod_ring/plan.h"
#include "tests/group_cases.h"

#include "tests/test.h"

static void tcp_law(const struct group *g, const struct group_op *op,
                    uint64_t *out, uint64_t *in)
{
    const struct plan p = {.rank = g->rank,
                           .world = g->size,
                           .grain = g->job.grain};
    size_t size = dtype_bytes(op->vector.wire);
    *out = plan_elements(&p, op, OUT) * size;
    *in = plan_elements(&p, op, IN) * size;
}

static void shm_law(const struct group *g, const struct group_op *op,
                    uint64_t *out, uint64_t *in)
{
    size_t size = dtype_bytes(op->vector.type);
    *out = ring_shm_elements(op, g->job.grain, g->rank, g->size, OUT) * size;
    *in = ring_shm_elements(op, g->job.grain, g->rank, g->size, IN) * size;
}

static const struct carried carriers[] = {
    {.ops = &ring_tcp, .halves_bytes = true, .law = tcp_law},
    {.ops = &ring_shm, .memory = CARRY_SHARED, .law = shm_law},
    {.ops = &ring_shm, .memory = CARRY_COPIED, .law = shm_law},
    {.ops = &ring_shm, .memory = CARRY_OWN, .law = shm_law},
};

static void on_all(void (*check)(const struct carried *c))
{
    for (size_t i = 0; i < sizeof carriers / sizeof *carriers; i++)
        check(&carriers[i]);
}

static void verbs(void **state)
{
    (void)state;
    on_all(carry_verbs);
}

static void many(void **state)
{
    (void)state;
    on_all(carry_many);
}

static void large(void **state)
{
    (void)state;
    on_all(carry_large);
}

static void halves(void **state)
{
    (void)state;
    on_all(carry_halves);
}

static void threads(void **state)
{
    (void)state;
    on_all(carry_threads);
}

static void same_bits(void **state)
{
    (void)state;
    carry_same_bits(&carriers[0], &carriers[1]);
    carry_same_bits(&carriers[0], &carriers[3]);
}

static void groups(void **state)
{
    (void)state;
    on_all(carry_groups);
}

static void faults_missing(void **state)
{
    (void)state;
    on_all(carry_missing);
}

static void faults_killed(void **state)
{
    (void)state;
    on_all(carry_killed);
}

static void pairs(void **state)
{
    (void)state;
    carry_pairs(&carriers[0]);
    carry_pairs(&carriers[1]);
}

static void faults_orphans(void **state)
{
    (void)state;
    carry_orphans(&carriers[0]);
    carry_orphans(&carriers[1]);
}

// Faults are another test: they wait for deadlines, and what computes need not
// wait for them.
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verbs),          cmocka_unit_test(many),
        cmocka_unit_test(large),          cmocka_unit_test(halves),
        cmocka_unit_test(threads),        cmocka_unit_test(same_bits),
        cmocka_unit_test(groups),         cmocka_unit_test(pairs),
        cmocka_unit_test(faults_missing), cmocka_unit_test(faults_killed),
        cmocka_unit_test(faults_orphans),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    else
        cmocka_set_skip_filter("faults_*");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
