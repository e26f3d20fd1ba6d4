// cores.c - divides the machine's cores among the workers. The cores of one
// worker are neighbours in the machine's topology.

#include "launch/cores.h"

#include "base/base.h"

#include <errno.h>
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Lists the allowed hardware threads in the order of the topology: those of one
// core, one cache or one socket are next to each other. Returns how many, or -1
// after fail().
static int list_cores(int out[CPU_SETSIZE])
{
    cpu_set_t allowed;
    hwloc_topology_t topology;
    if (sched_getaffinity(0, sizeof allowed, &allowed))
        return fail("sched_getaffinity: more cores than %d", CPU_SETSIZE);
    if (hwloc_topology_init(&topology))
        return fail("hwloc: cannot read this machine's topology");
    int n = 0;
    if (hwloc_topology_load(topology) == 0) {
        hwloc_obj_t pu = NULL;
        while ((pu = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, pu))) {
            if (pu->os_index < CPU_SETSIZE && CPU_ISSET(pu->os_index, &allowed))
                out[n++] = (int)pu->os_index;
        }
    }
    hwloc_topology_destroy(topology);
    return n > 0 ? n : fail("hwloc: found no core that this process may use");
}

int cores_count(void)
{
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed))
        return 1;
    return CPU_COUNT(&allowed);
}

int cores_share(int index, int count, cpu_set_t *out, bool *oversubscribed)
{
    int cores[CPU_SETSIZE], n = list_cores(cores);
    if (n < 0)
        return -1;
    int each = n / count > 0 ? n / count : 1;
    CPU_ZERO(out);
    for (int i = 0; i < each; i++)
        CPU_SET(cores[(index * each + i) % n], out);
    *oversubscribed = count > n;
    return 0;
}

void cores_take(const cpu_set_t *cores)
{
    if (sched_setaffinity(0, sizeof *cores, cores))
        dprintf(STDERR_FILENO,
                "cores: %s: this worker is not kept on cores of its own, which "
                "may make it slower\n",
                strerror(errno));
}

// train/main.c does the same, but only for the trainer; this is for every
// program that is launched. If workers share cores, threads do not spin at all:
// a run with spinning threads took ten times as long on a busy machine.
void cores_wait_politely(bool oversubscribed)
{
    if (getenv("OMP_WAIT_POLICY"))
        return; // the user chose
    if (oversubscribed)
        setenv("OMP_WAIT_POLICY", "passive", 0);
    else
        setenv("GOMP_SPINCOUNT", "1000", 0);
}
