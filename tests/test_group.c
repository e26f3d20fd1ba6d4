// test_group.c - our own carriers pass the cases that every carrier must pass
// (group_cases.h).

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

static void verbs_give_exact_results(void **state)
{
    (void)state;
    on_all(carry_verbs);
}

static void a_world_of_16_gives_exact_results(void **state)
{
    (void)state;
    on_all(carry_many);
}

static void large_vectors_travel_in_pieces(void **state)
{
    (void)state;
    on_all(carry_large);
}

static void reduce_scatter_and_all_gather_are_all_reduce(void **state)
{
    (void)state;
    on_all(carry_halves);
}

static void a_thread_changes_no_bit(void **state)
{
    (void)state;
    on_all(carry_threads);
}

static void tcp_and_shared_memory_give_the_same_bits(void **state)
{
    (void)state;
    carry_same_bits(&carriers[0], &carriers[1]);
    carry_same_bits(&carriers[0], &carriers[3]);
}

static void two_groups_can_be_interleaved(void **state)
{
    (void)state;
    on_all(carry_groups);
}

static void faults_a_missing_member_is_named(void **state)
{
    (void)state;
    on_all(carry_missing);
}

static void faults_a_killed_member_is_named(void **state)
{
    (void)state;
    on_all(carry_killed);
}

static void pairs_send_and_receive(void **state)
{
    (void)state;
    carry_pairs(&carriers[0]);
    carry_pairs(&carriers[1]);
}

static void chunks_may_have_any_length(void **state)
{
    (void)state;
    on_all(carry_uneven);
}

static void all_to_all_moves_each_part(void **state)
{
    (void)state;
    on_all(carry_all_to_all);
}

static void all_to_all_works_in_a_world_of_16(void **state)
{
    (void)state;
    on_all(carry_all_to_all_many);
}

static void faults_a_dead_sender_is_named(void **state)
{
    (void)state;
    carry_orphans(&carriers[0]);
    carry_orphans(&carriers[1]);
}

// The faults are a test of their own in CTest (group_faults), since they wait
// for deadlines and would delay the other cases.
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verbs_give_exact_results),
        cmocka_unit_test(a_world_of_16_gives_exact_results),
        cmocka_unit_test(large_vectors_travel_in_pieces),
        cmocka_unit_test(reduce_scatter_and_all_gather_are_all_reduce),
        cmocka_unit_test(a_thread_changes_no_bit),
        cmocka_unit_test(tcp_and_shared_memory_give_the_same_bits),
        cmocka_unit_test(two_groups_can_be_interleaved),
        cmocka_unit_test(pairs_send_and_receive),
        cmocka_unit_test(chunks_may_have_any_length),
        cmocka_unit_test(all_to_all_moves_each_part),
        cmocka_unit_test(all_to_all_works_in_a_world_of_16),
        cmocka_unit_test(faults_a_missing_member_is_named),
        cmocka_unit_test(faults_a_killed_member_is_named),
        cmocka_unit_test(faults_a_dead_sender_is_named),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    else
        cmocka_set_skip_filter("faults_*");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
