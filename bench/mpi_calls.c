// mpi_calls.c - MPI's own blocking calls, to compare our verbs with.

#include "bench/mpi_calls.h"

#include "bench/workers.h"

#include "base/base.h"
#include "message/mpi_call.h"

#include <limits.h>

enum { ROOT = 0, TAG = 1 };

static void sendrecv(float *own, float *received, int n, int rank, int world)
{
    int right = (rank + 1) % world, left = (rank + world - 1) % world;
    MPI(MPI_Sendrecv(own, n, MPI_FLOAT, right, TAG, received, n, MPI_FLOAT,
                     left, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

static void all_to_all(float *own, float *received, int part, int world)
{
    int counts[WORKERS_MOST], at[WORKERS_MOST];
    CHECK(world <= WORKERS_MOST);
    for (int r = 0; r < world; r++) {
        counts[r] = part;
        at[r] = r * part;
    }
    MPI(MPI_Alltoallv(own, counts, at, MPI_FLOAT, received, counts, at,
                      MPI_FLOAT, MPI_COMM_WORLD));
}

void mpi_call(enum collect_verb verb, float *own, float *received, size_t n,
              int rank, int world)
{
    const MPI_Comm all = MPI_COMM_WORLD;
    int count = (int)n, part = count / world;
    float *mine = own + (size_t)rank * (size_t)part;
    float *sum = received + (size_t)rank * (size_t)part;
    bool root = rank == ROOT;
    CHECK(n <= INT_MAX);
    switch (verb) {
    case COLLECT_ALL_REDUCE:
        MPI(MPI_Allreduce(MPI_IN_PLACE, own, count, MPI_FLOAT, MPI_SUM, all));
        break;
    case COLLECT_REDUCE_SCATTER:
        MPI(MPI_Reduce_scatter_block(own, sum, part, MPI_FLOAT, MPI_SUM, all));
        break;
    case COLLECT_ALL_GATHER:
        MPI(MPI_Allgather(MPI_IN_PLACE, 0, MPI_FLOAT, own, part, MPI_FLOAT,
                          all));
        break;
    case COLLECT_BROADCAST:
        MPI(MPI_Bcast(own, count, MPI_FLOAT, ROOT, all));
        break;
    case COLLECT_REDUCE:
        MPI(MPI_Reduce(root ? MPI_IN_PLACE : own, root ? own : NULL, count,
                       MPI_FLOAT, MPI_SUM, ROOT, all));
        break;
    case COLLECT_SCATTER:
        MPI(MPI_Scatter(own, part, MPI_FLOAT, root ? MPI_IN_PLACE : mine, part,
                        MPI_FLOAT, ROOT, all));
        break;
    case COLLECT_GATHER:
        MPI(MPI_Gather(root ? MPI_IN_PLACE : mine, part, MPI_FLOAT, own, part,
                       MPI_FLOAT, ROOT, all));
        break;
    case COLLECT_ALL_TO_ALL:
        all_to_all(own, received, part, world);
        break;
    default:
        sendrecv(own, received, count, rank, world);
    }
}
