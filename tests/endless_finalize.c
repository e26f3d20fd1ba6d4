// endless_finalize.c - an MPI_Finalize() that never returns, as if one of
// mpirun's daemons did not answer. Tests preload it.

#include <unistd.h>

int MPI_Finalize(void);

int MPI_Finalize(void)
{
    for (;;)
        pause();
}
