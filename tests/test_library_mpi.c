// test_library_mpi.c - the carrier over Open MPI's collectives passes the cases
// that every carrier must pass.
//
//     mpirun -n 3 test_library_mpi            all cases of a world of three
//     mpirun -n 16 test_library_mpi           the one case of a world of 16
//     mpirun -n 3 test_library_mpi missing    the last rank posts fewer verbs
//     mpirun -n 4 test_library_mpi part       the same, only in ranks 2, 3
//     mpirun -n 4 test_library_mpi halves     two clusters, a group in each

#include "allreduce/algorithm.h"
#include "allreduce/library_carriers.h"
#include "cluster/cluster.h"
#include "cluster/split.h"
#include "tests/group_cases.h"

#include "base/base.h"

#include <string.h>
#include <unistd.h>

#include "tests/test.h"

// The expected bytes: those given to the library, and those taken from it.
static void law(const struct group *g, const struct group_op *op, uint64_t *out,
                uint64_t *in)
{
    size_t n = op->vector.n, size = dtype_bytes(op->vector.wire);
    size_t own = group_chunk_of(&op->vector, g->job.grain, g->size, g->rank).n;
    bool root = g->rank == op->peer;
    const size_t given[] = {n, n, own, root ? n : 0, n, n, 0};
    const size_t taken[] = {n, own, n, root ? 0 : n, root ? n : 0, 0, n};
    *out = given[op->verb] * size;
    *in = taken[op->verb] * size;
}

static struct carried mpi = {.ops = &library_mpi, .law = law};

static void verbs_give_exact_results(void **state)
{
    (void)state;
    carry_verbs(&mpi);
}

// Every algorithm of MPI gives the same sum.
static void all_algorithms_give_the_same_sum(void **state)
{
    (void)state;
    struct carried c = mpi;
    for (c.algorithm = ALGORITHM_HALVING; c.algorithm <= ALGORITHM_LIBRARY;
         c.algorithm++)
        carry_verbs(&c);
}

static void large_vectors_travel_in_pieces(void **state)
{
    (void)state;
    carry_large(&mpi);
}

static void a_thread_changes_no_bit(void **state)
{
    (void)state;
    carry_threads(&mpi);
}

static void two_groups_can_be_interleaved(void **state)
{
    (void)state;
    carry_groups(&mpi);
}

static void pairs_send_and_receive(void **state)
{
    (void)state;
    carry_pairs(&mpi);
}

static void chunks_may_have_any_length(void **state)
{
    (void)state;
    carry_uneven(&mpi);
}

static void all_to_all_moves_each_part(void **state)
{
    (void)state;
    carry_all_to_all(&mpi);
}

static void all_to_all_works_in_a_world_of_16(void **state)
{
    (void)state;
    carry_all_to_all_many(&mpi);
}

// ---- separate programs

// The last rank posts one verb, the others three or more. They must end the job
// and name the last rank, not a rank that waits for a later ticket than theirs.
static int stay_away(struct member *m)
{
    struct trial t = {
        .op = trial_op(m, GROUP_ALL_REDUCE, 5000, DTYPE_F32, DTYPE_F32, 0)};
    trial_fill(m, &t);
    if (trial_post(m, m->group, &t) || group_await(m->group, t.ticket))
        return -1;
    const int *ranks = mpi.cluster->ranks;
    if (m->rank == m->world - 1 || (ranks && ranks[0] == 0))
        sleep(60); // mpirun ends it
    for (int i = 0; i < 2 + m->rank; i++) {
        t.off += trial_bytes(&t);
        if (trial_post(m, m->group, &t))
            return -1;
    }
    return group_await(m->group, t.ticket);
}

static int run(int (*body)(struct member *m))
{
    struct carry_setup s = {.world = mpi.cluster->world, .thread = true};
    return carry_run(&mpi, &s, body, NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verbs_give_exact_results),
        cmocka_unit_test(all_algorithms_give_the_same_sum),
        cmocka_unit_test(large_vectors_travel_in_pieces),
        cmocka_unit_test(a_thread_changes_no_bit),
        cmocka_unit_test(two_groups_can_be_interleaved),
        cmocka_unit_test(pairs_send_and_receive),
        cmocka_unit_test(chunks_may_have_any_length),
        cmocka_unit_test(all_to_all_moves_each_part),
        cmocka_unit_test(all_to_all_works_in_a_world_of_16),
    };
    const char *part = argc > 1 ? argv[1] : "";
    bool in_part = !strcmp(part, "part");
    bool missing = in_part || !strcmp(part, "missing");
    int rank = 0, world = 1;
    cluster_launched(&rank, &world);
    const struct cluster_config config = {.servers = !strcmp(part, "halves") &&
                                                     rank >= world / 2,
                                          .timeout_s = missing ? 1 : 60};
    if (cluster_open(&mpi.cluster, &cluster_mpi, &config))
        die("%s", fail_message());
    if (in_part && cluster_split(&mpi.cluster, mpi.cluster, rank / 2))
        die("%s", fail_message());
    if (missing)
        return run(stay_away) ? 1 : 0;
    int bad = cmocka_run_group_tests(tests, NULL, NULL);
    fail("%s", bad ? "a test failed" : "");
    cluster_close(&mpi.cluster);
    return bad;
}
