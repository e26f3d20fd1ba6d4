// openmpi_5.c - mpirun of Open MPI 5, which is PRRTE's prterun. It prints
//
//     [1,3]<stdout>: text                       --tag-output
//
//        Process name: [prterun-x-719@1,0]   prterun noticed that process rank
//        Exit code:    3                     1 with PID 7222 on node x exited
//                                            on signal 9 (Killed).
//
// It truncates long lines, and its paragraphs contain empty lines.

#include "launch/openmpi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// PRRTE cannot use the loopback for its own connections (docs/security.md).
static const char one_host[] = "--mca btl sm,self";

static const char emulated[] =
    "--prtemca plm ssh --prtemca plm_ssh_agent %agent "
    "--prtemca plm_ssh_no_tree_spawn 1 --mca pml ob1 --mca btl tcp,self "
    "--mca btl_tcp_if_include %subnet --prtemca prte_if_include %subnet";

static void note(struct openmpi_failure *f, const char *text)
{
    int rank, code, sig;
    const char *by_signal = strstr(text, "exited on signal ");
    if (sscanf(text, " Process name: [%*[^],],%d]", &rank) == 1 && !f->rank)
        f->rank = rank + 1;
    else if (sscanf(text, " Exit code: %d", &code) == 1 && !f->code)
        f->code = code;
    else if (sscanf(text, "prterun noticed that process rank %d", &rank) == 1) {
        f->rank = rank + 1;
        if (by_signal)
            f->signal = atoi(by_signal + strlen("exited on signal "));
    } else if (f->rank && !f->signal && sscanf(text, "signal %d (", &sig) == 1)
        f->signal = sig;
}

const struct openmpi openmpi_5 = {
    .one_host = one_host,
    .emulated = emulated,
    .reach = "--prtemca plm_ssh_agent %agent",
    .scratch = "--prtemca prte_tmpdir_base %files "
               "--mca btl_sm_backing_directory %memory",
    .tag_end = " ",
    .note = note,
};
