// launch_mpi.c - builds the command line of mpirun, on this host, on emulated
// hosts and on hosts=FILE.

#include "launch/launch_mpi.h"

#include "base/base.h"
#include "base/beat.h"
#include "base/secret.h"
#include "launch/argv.h"
#include "launch/cores.h"
#include "launch/openmpi.h"
#include "launch/scratch.h"
#include "launch/supervise.h"
#include "netns/netns.h"

#include <stdlib.h>
#include <string.h>

// Adds options of openmpi.h, with what stands for their %words.
static int add_openmpi(struct argv *a, const char *words, const char *agent,
                       const struct scratch *s)
{
    char copy[512], *rest;
    if (text_into(copy, sizeof copy, "%s", words))
        return -1;
    for (char *w = strtok_r(copy, " ", &rest); w;
         w = strtok_r(NULL, " ", &rest))
        if (argv_add(a, "%s",
                     !strcmp(w, "%agent")    ? agent
                     : !strcmp(w, "%subnet") ? netns_subnet()
                     : !strcmp(w, "%files")  ? s->path[SCRATCH_FILES]
                     : !strcmp(w, "%memory") ? s->path[SCRATCH_MEMORY]
                                             : w))
            return -1;
    return 0;
}

// Returns the first of `ranks` ranks on host i. Each host has a block of ranks,
// and the blocks are as equal as possible. Hosts beyond `ranks` have none.
static int first_rank(const struct netns *net, int ranks, int i)
{
    int hosts = netns_hosts(net) < ranks ? netns_hosts(net) : ranks;
    return i < hosts ? (i * ranks + hosts - 1) / hosts : ranks;
}

// Writes the hosts for mpirun's --host: "NAME:RANKS" for each, or with
// `in_turn` only the names, for one rank on each host in turn.
static int list_hosts(const struct netns *net, int ranks, bool in_turn,
                      char *out, size_t size)
{
    for (int i = 0; i < netns_hosts(net); i++) {
        int here = first_rank(net, ranks, i + 1) - first_rank(net, ranks, i);
        size_t at = strlen(out);
        const char *name = netns_name(net, i), *comma = i ? "," : "";
        if (in_turn ? text_into(out + at, size - at, "%s%s", comma, name)
            : here
                ? text_into(out + at, size - at, "%s%s:%d", comma, name, here)
                : 0)
            return -1;
    }
    return 0;
}

// Puts the folder of a program first in PATH.
static int find_first(const char *program)
{
    char path[4 * CONFIG_PATH];
    const char *slash = strrchr(program, '/'), *old = getenv("PATH");
    return !slash ? 0
           : text_into(path, sizeof path, "%.*s:%s", (int)(slash - program),
                       program, old ? old : "")
               ? -1
               : setenv("PATH", path, 1);
}

// mpirun runs on the first emulated host. It reaches the other hosts through
// `lockstep enter` instead of ssh. It cuts the agent at blanks, so it must find
// `lockstep` by PATH, whose folder may have a blank in its name.
static int add_emulated(struct argv *a, const struct netns *net, int workers,
                        int servers, const struct scratch *s)
{
    char list[NETNS_HOSTS * (NETNS_NAME + 6)] = "";
    struct argv *program = mem_alloc(1, sizeof *program);
    int err = program ? argv_add_program(program, "lockstep") ||
                            find_first(program->at[0])
                      : -1;
    mem_free(program);
    return err || list_hosts(net, workers, servers > 0, list, sizeof list) ||
                   argv_add_text(a, servers ? "--map-by node --host"
                                            : "--map-by slot --host") ||
                   argv_add(a, "%s", list) ||
                   add_openmpi(a, openmpi_here->emulated, "lockstep enter",
                               s) ||
                   add_openmpi(a, openmpi_here->scratch, "", s)
               ? -1
               : 0;
}

// Ranks of one host exchange by shared memory, unless the user chose otherwise.
static int add_one_host(struct argv *a, const struct scratch *s)
{
    return (!getenv("OMPI_MCA_btl") &&
            add_openmpi(a, openmpi_here->one_host, "", s)) ||
                   add_openmpi(a, openmpi_here->scratch, "", s)
               ? -1
               : 0;
}

// mpirun reaches hosts as hosts.c does: by LOCKSTEP_RSH if it is set.
// Other hosts do not have the folders of *s, so Open MPI uses its own there.
static int add_hosts(struct argv *a, const char *hosts, const struct scratch *s)
{
    const char *agent = getenv("LOCKSTEP_RSH");
    return argv_add(a, "--hostfile") || argv_add(a, "%s", hosts) ||
                   argv_add(a, "-x") || argv_add(a, "%s", secret_name()) ||
                   (agent && add_openmpi(a, openmpi_here->reach, agent, s))
               ? -1
               : 0;
}

int launch_mpi(struct job *j, const struct run *r, const struct netns *net,
               const char *program, const struct argv *words, int servers,
               const struct argv *server)
{
    char workers[16];
    snprintf(workers, sizeof workers, "%d", r->workers);
    setenv("LOCKSTEP_WORKERS", workers, 1);
    setenv("LOCKSTEP_PROGRESS", "1", 1);
    setenv(BEAT_VARIABLE, "1", 1);
    cores_wait_politely(r->workers > cores_count());
    if (net)
        setenv("LOCKSTEP_EMULATED", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    struct scratch *s = NULL;
    struct argv *a = mem_alloc(1, sizeof *a);
    int err = a ? secret_make() || scratch_open(&s) : -1;
    if (!err)
        err = argv_add_text(a, "mpirun -n") ||
              argv_add(a, "%d", r->workers + servers) ||
              argv_add_text(a, "--bind-to none --oversubscribe --tag-output "
                               "-x LOCKSTEP_PROGRESS -x LOCKSTEP_WORKERS "
                               "-x " BEAT_VARIABLE) ||
              (getenv("LOCKSTEP_RESTARTS") &&
               argv_add_text(a, "-x LOCKSTEP_RESTARTS")) ||
              (net && (argv_add_text(a, "-x LOCKSTEP_EMULATED") ||
                       add_emulated(a, net, r->workers, servers, s))) ||
              (!net && !r->hosts[0] && add_one_host(a, s)) ||
              (r->hosts[0] && add_hosts(a, r->hosts, s)) ||
              (r->workers > cores_count() &&
               argv_add_text(a, "--mca mpi_yield_when_idle 1")) ||
              argv_add_program(a, "lockstep") || argv_add(a, "pin") ||
              argv_add_program(a, program) ||
              argv_add_all(a, words->n, words->at) ||
              (servers && (argv_add(a, PIN_SERVER) ||
                           argv_add_all(a, server->n, server->at)));
    struct job_child child = {.kind = JOB_MPIRUN,
                              .rank = servers ? r->workers : 0};
    child.argv = a ? a->at : NULL;
    child.scratch = s;
    child.host = net ? netns_name(net, 0) : NULL;
    if (!err)
        err = job_start(j, &child);
    if (err)
        scratch_close(&s);
    mem_free(a);
    return err ? -1 : 0;
}
