// algorithm.c - chooses libnbc's algorithm through MPI's tool interface.

#include "allreduce/algorithm.h"

#include "base/base.h"

#include <mpi.h>

static int write_variable(const char *name, int value)
{
    int index, count;
    MPI_T_cvar_handle handle;
    if (MPI_T_cvar_get_index(name, &index) ||
        MPI_T_cvar_handle_alloc(index, NULL, &handle, &count))
        return fail("this MPI has no %s", name);
    int error = MPI_T_cvar_write(handle, &value);
    MPI_T_cvar_handle_free(&handle);
    return error ? fail("%s cannot be set to %d", name, value) : 0;
}

int algorithm_variable(const char *name, int value)
{
    int provided;
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided))
        return fail("this MPI has no tool interface");
    int rc = write_variable(name, value);
    MPI_T_finalize();
    return rc;
}

int algorithm_use(enum algorithm a)
{
    static const int libnbc[] = {
        [ALGORITHM_AUTO] = 1,     [ALGORITHM_RING] = 1, [ALGORITHM_HALVING] = 3,
        [ALGORITHM_DOUBLING] = 4, [ALGORITHM_TREE] = 2, [ALGORITHM_LIBRARY] = 0,
    };
    int rc = algorithm_variable("coll_libnbc_iallreduce_algorithm", libnbc[a]);
    if (rc && a != ALGORITHM_AUTO && a != ALGORITHM_LIBRARY)
        return fail("allreduce: %s; try: algorithm=library", fail_message());
    return 0;
}
