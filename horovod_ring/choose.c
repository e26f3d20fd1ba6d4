// choose.c - chooses between our carriers for host memory.

#include "horovod_ring/carriers.h"

const struct group_ops *ring_choose(const struct group_job *job, bool tcp)
{
    char why[128];
    int can = tcp ? 0 : group_is_supported(&ring_shm, job, why);
    return can < 0 ? NULL : can ? &ring_shm : &ring_tcp;
}
