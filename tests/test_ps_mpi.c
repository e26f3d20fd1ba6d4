// test_ps_mpi.c - sps and dps over MPI pass the cases that every backend must
// pass.
//
//     mpirun -n 3 test_ps_mpi 2      two workers, one server: sps
//     mpirun -n 6 test_ps_mpi 3      three workers, a server beside each: dps
//
// A server serves one world after the other. Rank 0 tells it when each begins.

#include "base/base.h"
#include "cluster/cluster.h"
#include "message/mpi_call.h"
#include "ps_server/server.h"
#include "ps_worker/ps_worker.h"
#include "tests/sync_cases.h"

#include <stdlib.h>

#include "tests/test.h"

enum { TAG = 99 };

static int servers, workers;
static struct cluster *cluster;

static int start(int world, char opts[CASE_TEXT], void **state)
{
    *state = NULL;
    for (int i = 0; i < servers; i++) {
        size_t at = strlen(opts);
        int rank = -1, one = 1;
        if (text_into(opts + at, CASE_TEXT - at, "%smpi://%d",
                      i    ? ","
                      : at ? ",servers="
                           : "servers=",
                      world + i))
            return -1;
        MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
        if (rank == 0)
            MPI(MPI_Send(&one, 1, MPI_INT, world + i, TAG, MPI_COMM_WORLD));
    }
    return 0;
}

// Waits until the servers of this world have closed their endpoints. Otherwise
// they would receive messages that are meant for the next world's servers.
static void stop(void *state)
{
    int rank, word;
    (void)state;
    MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    for (int i = 0; rank == 0 && i < servers; i++)
        MPI(MPI_Recv(&word, 1, MPI_INT, workers + i, TAG, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE));
    assert_int_equal(cluster_barrier(cluster), 0);
}

// sps: the whole vector goes out and comes in. dps: counts the worker and the
// server beside it, which move n - n / world elements each.
static void law(const struct sync_job *job, int rank, int world,
                enum dtype wire, uint64_t *out, uint64_t *in)
{
    (void)rank;
    size_t n = servers == 1 ? job->n : 2 * (job->n - job->n / (size_t)world);
    *out = *in = n * dtype_bytes(wire);
}

static struct fixture over_mpi = {.ops = &sync_servers,
                                  .opts = "slice_kb=1,transport=mpi",
                                  .start = start,
                                  .stop = stop,
                                  .law = law};

// Slices that are too large for an eager message, and the workers' own update.
static void large_slices_give_exact_results(void **state)
{
    (void)state;
    struct fixture f = over_mpi;
    f.opts = "slice_kb=16,transport=mpi,update=worker";
    f.few = true;
    case_integers(&f);
}

static void the_remaining_cases_pass(void **state)
{
    (void)state;
    case_replicas(&over_mpi);
    case_reruns(&over_mpi);
    case_overflow(&over_mpi);
    case_divides_first(&over_mpi);
    case_bcast(&over_mpi);
    case_state(&over_mpi);
}

static void bytes_follow_the_law(void **state)
{
    (void)state;
    if (servers != 1)
        skip(); // the law of dps needs one server for each worker
    case_bytes(&over_mpi);
}

static int serve(const struct cluster *c)
{
    const struct server_config config = {.transport = &message_mpi,
                                         .bind = "",
                                         .curve = "",
                                         .index = c->rank,
                                         .servers = servers,
                                         .threads = 1,
                                         .timeout_s = 60};
    for (;;) {
        struct server *s;
        int go = 0;
        MPI(MPI_Recv(&go, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE));
        if (!go)
            return 0;
        if (server_open(&s, &config))
            return -1;
        if (server_run(s))
            log_line("server ends: %s", fail_message());
        server_close(&s);
        MPI(MPI_Send(&go, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD));
    }
}

static int work(void)
{
    const struct CMUnitTest tests[] = {
        CASE(integers, &over_mpi),
        cmocka_unit_test(large_slices_give_exact_results),
        cmocka_unit_test(the_remaining_cases_pass),
        cmocka_unit_test(bytes_follow_the_law),
    };
    int bad = cmocka_run_group_tests(tests, NULL, NULL), end = 0;
    for (int i = 0; cluster->rank == 0 && i < servers; i++)
        MPI(MPI_Send(&end, 1, MPI_INT, workers + i, TAG, MPI_COMM_WORLD));
    return bad;
}

int main(int argc, char **argv)
{
    struct cluster_config config = {.timeout_s = 60};
    int rank = atoi(getenv("OMPI_COMM_WORLD_RANK"));
    workers = argc > 1 ? atoi(argv[1]) : 1;
    config.servers = rank >= workers;
    if (cluster_open(&cluster, &cluster_mpi, &config))
        die("%s", fail_message());
    servers = atoi(getenv("OMPI_COMM_WORLD_SIZE")) - workers;
    over_mpi.sync = servers == 1 ? "sps" : "dps";
    over_mpi.cluster = cluster;
    int bad = config.servers ? serve(cluster) : work();
    fail("%s", bad ? "a test failed" : "");
    cluster_close(&cluster);
    return bad;
}
