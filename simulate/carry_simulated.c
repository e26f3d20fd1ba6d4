// carry_simulated.c - implements message/carry.h for simulated messages over
// MPI.
//
// Simulated time passes only while all ranks wait, so carry_wait() blocks
// instead of polling. Messages always arrive, and SimGrid itself ends a run in
// which all ranks wait for ever. Without payload, data have a size and no
// contents: all messages go from and to one block that all ranks share, which
// SimGrid neither copies nor touches.

#include "message/carry.h"

#include "base/base.h"
#include "device/vector.h"
#include "message/mpi_call.h"
#include "simulate/exchange.h"

// The block without contents. All ranks are in one process and use the same.
static char *nothing;

void contents_open(const struct exchange *e, size_t most)
{
    if (!e->payload && !nothing)
        nothing = SMPI_SHARED_MALLOC(most);
}

bool contents_travel(void)
{
    return !nothing;
}

void *carry_buffer(size_t bytes)
{
    return nothing ? nothing : mem_alloc(bytes, 1);
}

void carry_free(void *buffer)
{
    if (!nothing)
        mem_free(buffer);
}

void carry_send(const void *data, size_t bytes, int rank, MPI_Request *r)
{
    MPI_Isend(nothing ? nothing : data, (int)bytes, MPI_BYTE, rank, CARRY_DATA,
              MPI_COMM_WORLD, r);
}

void carry_receive(void *buffer, size_t bytes, int rank, MPI_Request *r)
{
    MPI_Irecv(buffer, (int)bytes, MPI_BYTE, rank, CARRY_DATA, MPI_COMM_WORLD,
              r);
}

// SimGrid searches a list of all requests of a rank. It removes a request only
// when the rank has waited for it; a test does not remove it. So this function
// tests nothing (until_ns = 0), and only waits.
int carry_wait(MPI_Request *r, int n, uint64_t until_ns,
               const atomic_bool *wake, MPI_Status *status)
{
    int which = MPI_UNDEFINED;
    (void)wake; // there is one thread
    if (until_ns)
        MPI_Waitany(n, r, &which, status);
    return which == MPI_UNDEFINED ? -1 : which;
}

// ---- functions that the linker puts in place of core/device/vector.c's

REPLACES(vector_cast);
void __wrap_vector_cast(void *dst, enum dtype to, const void *src,
                        enum dtype from, size_t n)
{
    if (!nothing)
        __real_vector_cast(dst, to, src, from, n);
}

REPLACES(vector_add);
void __wrap_vector_add(float *dst, const void *src, enum dtype from, size_t n)
{
    if (!nothing)
        __real_vector_add(dst, src, from, n);
}

void mpi_check(int code, const char *file, int line, const char *call)
{
    if (code != MPI_SUCCESS)
        die("%s:%d: %s: error %d", file, line, call, code);
}
