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

static const struct carried tcp = {
    .ops = &ring_tcp,
    .halves_bytes = true,
    .law = tcp_law,
};

static void verbs(void **state)
{
    (void)state;
    carry_verbs(&tcp);
}

static void many(void **state)
{
    (void)state;
    carry_many(&tcp);
}

static void large(void **state)
{
    (void)state;
    carry_large(&tcp);
}

static void halves(void **state)
{
    (void)state;
    carry_halves(&tcp);
}

static void threads(void **state)
{
    (void)state;
    carry_threads(&tcp);
}

static void groups(void **state)
{
    (void)state;
    carry_groups(&tcp);
}

static void missing(void **state)
{
    (void)state;
    carry_missing(&tcp);
}

static void killed(void **state)
{
    (void)state;
    carry_killed(&tcp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verbs),   cmocka_unit_test(many),
        cmocka_unit_test(large),   cmocka_unit_test(halves),
        cmocka_unit_test(threads), cmocka_unit_test(groups),
        cmocka_unit_test(missing), cmocka_unit_test(killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
