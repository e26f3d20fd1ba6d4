// test_allreduce.c - MPI's all-reduce passes the cases that every backend must
// pass. Also tests the control messages of the cluster over MPI.
//
//     mpirun -n 3 test_allreduce          all cases of a world of three
//     mpirun -n 3 test_allreduce missing  the last rank takes no second step
//     mpirun -n 3 test_allreduce absent   the last rank enters no barrier

#include "allreduce/library_carriers.h"
#include "cluster/cluster.h"
#include "sync/replicas.h"
#include "tests/sync_cases.h"

#include "base/base.h"

#include <unistd.h>

#include "tests/test.h"

// The bytes given to MPI. MPI does not report how many it sends.
static void law(const struct sync_job *job, int rank, int world,
                enum dtype wire, uint64_t *out, uint64_t *in)
{
    (void)rank;
    *out = *in = world > 1 ? job->n * dtype_bytes(wire) : 0;
}

static const struct group_ops *const library[] = {&library_mpi, NULL};

static struct fixture mpi = {
    .sync = "allreduce",
    .ops = &sync_replicas,
    .carriers = library,
    .opts = "",
    .law = law,
};

// Every algorithm of MPI gives the same sum.
static void all_algorithms_give_the_same_sum(void **state)
{
    (void)state;
    static const char *const opts[] = {"algorithm=halving",
                                       "algorithm=doubling", "algorithm=tree",
                                       "algorithm=library"};
    struct fixture f = mpi;
    f.few = true;
    for (size_t i = 0; i < sizeof opts / sizeof *opts; i++) {
        f.opts = opts[i];
        case_integers(&f);
    }
}

static void control_messages_reach_all_ranks(void **state)
{
    (void)state;
    struct cluster *c = mpi.cluster;
    double v[2] = {1, c->rank};
    assert_int_equal(cluster_sum(c, v, 2), 0);
    assert_true(v[0] == c->world && v[1] == c->world * (c->world - 1) / 2.0);
    int word = c->rank + 7;
    assert_int_equal(cluster_bcast(c, &word, sizeof word), 0);
    assert_int_equal(word, 7);
    assert_int_equal(cluster_barrier(c), 0);
    assert_int_equal(cluster_check_same(c, "lr=1\n"), 0);
    if (c->world == 1)
        return;
    assert_int_equal(cluster_check_same(c, c->rank ? "lr=1\n" : "lr=2\n"), -1);
    assert_non_null(strstr(fail_message(), "lr=2"));
}

// ---- separate programs: the job must end with an error

static int stay_away(struct worker *w)
{
    struct sync_out out;
    worker_normals(w, 1);
    if (worker_step(w, 1, &out))
        return -1;
    if (w->rank == w->world - 1)
        sleep(60); // mpirun ends it
    return worker_step(w, 2, &out);
}

static int missing(void)
{
    struct setup s = {.world = mpi.cluster->world, .n = 5000, .bucket = 2000};
    return world_run(&mpi, &s, stay_away, NULL);
}

static int absent(void)
{
    struct cluster *c = mpi.cluster;
    if (c->rank == c->world - 1)
        sleep(60);
    int rc = cluster_barrier(c);
    cluster_close(&mpi.cluster); // prints the cause
    return rc;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(control_messages_reach_all_ranks),
        CASE(integers, &mpi),
        cmocka_unit_test(all_algorithms_give_the_same_sum),
        CASE(replicas, &mpi),
        CASE(reruns, &mpi),
        CASE(overflow, &mpi),
        CASE(divides_first, &mpi),
        CASE(bytes, &mpi),
        CASE(state, &mpi),
        CASE(bcast, &mpi),
        CASE(disagree, &mpi),
    };
    const struct cluster_config config = {.timeout_s = argc > 1 ? 2 : 60};
    if (cluster_open(&mpi.cluster, &cluster_mpi, &config))
        die("%s", fail_message());
    if (argc > 1)
        return (!strcmp(argv[1], "missing") ? missing() : absent()) ? 1 : 0;
    int bad = cmocka_run_group_tests(tests, NULL, NULL);
    fail("%s", bad ? "a test failed" : "");
    cluster_close(&mpi.cluster);
    return bad;
}
