// openmpi.c - MPI's own blocking all-reduce with a chosen algorithm, for
// comparison.

#include "bench/openmpi.h"

#include "allreduce/algorithm.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "config/backends.h"

#include <limits.h>
#include <mpi.h>
#include <stdlib.h>

struct openmpi {
    MPI_Comm comm; // has the algorithm that was set when it was made
    bool open;
};

void openmpi_prepare(void)
{
    setenv("OMPI_MCA_coll_tuned_use_dynamic_rules", "1", 0);
    // A process that waits in MPI moves its own bytes. A progress thread would
    // compete with it for the core.
    setenv("OMPI_MCA_btl_tcp_progress_thread", "0", 0);
}

// Sets a variable of Open MPI. Value 0 stands for the library's own choice;
// then a missing variable is no error.
static int set_variable(const char *name, int value)
{
    return algorithm_variable(name, value) && value
               ? fail("openmpi: %s", fail_message())
               : 0;
}

static int choose(int algorithm, int segment)
{
    return set_variable("coll_tuned_allreduce_algorithm", algorithm) ||
                   set_variable("coll_tuned_allreduce_algorithm_segmentsize",
                                segment)
               ? -1
               : 0;
}

// The numbers of coll_tuned's algorithms, by ompi_info --param coll tuned
// --level 9.
enum { SEGMENTED_RING = 5 };
static const int tuned[] = {
    [ALGORITHM_AUTO] = 0,     [ALGORITHM_LIBRARY] = 0, [ALGORITHM_TREE] = 2,
    [ALGORITHM_DOUBLING] = 3, [ALGORITHM_RING] = 4,    [ALGORITHM_HALVING] = 6,
};

static int openmpi_open(struct sync *s)
{
    struct openmpi *m = s->state;
    const struct sync_settings *set = s->job.settings;
    bool segments = backend_reads(s->job.backend, "slice_kb");
    if (segments ? choose(SEGMENTED_RING, set->slice_kb * 1024)
                 : choose(tuned[set->algorithm], 0))
        return -1;
    if (s->job.n > INT_MAX)
        return fail("openmpi: %zu elements are more than %d", s->job.n,
                    INT_MAX);
    m->open = !MPI_Comm_dup(MPI_COMM_WORLD, &m->comm);
    return m->open ? choose(0, 0) : fail("openmpi: no communicator left");
}

static int openmpi_step(struct sync *s, const struct sync_in *in,
                        struct sync_out *out)
{
    struct openmpi *m = s->state;
    uint64_t bytes = s->job.n * sizeof(float);
    uint64_t world = (uint64_t)s->job.cluster->world;
    (void)in;
    (void)out;
    if (MPI_Allreduce(MPI_IN_PLACE, s->job.grads, (int)s->job.n, MPI_FLOAT,
                      MPI_SUM, m->comm))
        return fail("openmpi: all-reduce failed");
    s->stats.bytes_out += bytes * 2 * (world - 1) / world; // as a ring
    return 0;
}

static void openmpi_close(struct sync *s)
{
    struct openmpi *m = s->state;
    if (m->open)
        MPI_Comm_free(&m->comm);
}

const struct sync_ops sync_openmpi = {
    .state_size = sizeof(struct openmpi),
    .open = openmpi_open,
    .step = openmpi_step,
    .close = openmpi_close,
};
