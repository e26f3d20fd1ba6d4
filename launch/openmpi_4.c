// openmpi_4.c - mpirun of Open MPI 4. It prints
//
//     [1,3]<stdout>:text                        --tag-output
//
//       Process name: [[28543,1],1]            mpirun noticed that process rank
//       Exit code:    3                        1 with PID 0 on node x exited on
//                                              signal 9 (Killed).
//
// or, if it cannot start the job, a paragraph between two rules:
//
//     -----------------------------------------
//     Open RTE was unable to open the hostfile:
//         hosts.txt
//     Check to make sure the path and filename are correct.
//     -----------------------------------------

#include "launch/openmpi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Without these options Open MPI's TCP listens on all addresses of the host.
// The daemons that start its ranks still do (docs/security.md).
static const char one_host[] =
    "--mca btl vader,self --mca oob_tcp_if_include lo";

static const char emulated[] =
    "--mca plm rsh --mca plm_rsh_agent %agent "
    "--mca plm_rsh_no_tree_spawn 1 --mca pml ob1 --mca btl tcp,self "
    "--mca btl_tcp_if_include %subnet --mca oob_tcp_if_include %subnet";

static void note(struct openmpi_failure *f, const char *text)
{
    int job, step, rank, code;
    const char *by_signal = strstr(text, "exited on signal ");
    if (sscanf(text, " Process name: [[%d,%d],%d]", &job, &step, &rank) == 3 &&
        !f->rank)
        f->rank = rank + 1;
    else if (sscanf(text, " Exit code: %d", &code) == 1 && !f->code)
        f->code = code;
    else if (sscanf(text, "mpirun noticed that process rank %d", &rank) == 1) {
        f->rank = rank + 1;
        if (by_signal)
            f->signal = atoi(by_signal + strlen("exited on signal "));
    }
}

const struct openmpi openmpi_4 = {
    .one_host = one_host,
    .emulated = emulated,
    .reach = "--mca plm_rsh_agent %agent",
    .scratch = "--mca orte_tmpdir_base %files "
               "--mca btl_vader_backing_directory %memory",
    .tag_end = "",
    .blank_ends = true,
    .note = note,
};
