// openmpi.c - mpirun of Open MPI 4; that of Open MPI 5 is PRRTE's prterun. They
// print
//
//     [1,3]<stdout>:text                        --tag-output; 5: ": text"
//
//       Process name: [[28543,1],1]            mpirun noticed that process rank
//       Exit code:    3                        1 with PID 0 on node x exited on
//                                              signal 9 (Killed).
//
//       5: [prterun-x-719@1,1]                 5: prterun noticed ..
//
// or, if they cannot start the job, a paragraph between two rules:
//
//     -----------------------------------------
//     Open RTE was unable to open the hostfile:
//         hosts.txt
//     Check to make sure the path and filename are correct.
//     -----------------------------------------
//
// 5 truncates long lines, and its paragraphs contain empty lines.

#include "launch/openmpi.h"

// Without these options for one host Open MPI's TCP listens on all addresses of
// the host. The daemons that start its ranks still do (docs/security.md).
const struct openmpi openmpi_4 = {
    .one_host = "--mca btl vader,self --mca oob_tcp_if_include lo",
    .emulated = "--mca plm rsh --mca plm_rsh_agent %agent "
                "--mca plm_rsh_no_tree_spawn 1 --mca pml ob1 "
                "--mca btl tcp,self --mca btl_tcp_if_include %subnet "
                "--mca oob_tcp_if_include %subnet",
    .reach = "--mca plm_rsh_agent %agent",
    .scratch = "--mca orte_tmpdir_base %files "
               "--mca btl_vader_backing_directory %memory",
    .tag_end = "",
    .blank_ends = true,
};

// PRRTE cannot use the loopback for its own connections (docs/security.md).
const struct openmpi openmpi_5 = {
    .one_host = "--mca btl sm,self",
    .emulated = "--prtemca plm ssh --prtemca plm_ssh_agent %agent "
                "--prtemca plm_ssh_no_tree_spawn 1 --mca pml ob1 "
                "--mca btl tcp,self --mca btl_tcp_if_include %subnet "
                "--prtemca prte_if_include %subnet",
    .reach = "--prtemca plm_ssh_agent %agent",
    .scratch = "--prtemca prte_tmpdir_base %files "
               "--mca btl_sm_backing_directory %memory",
    .tag_end = " ",
};

const struct openmpi *const openmpi_here = &OPENMPI;
