// pin.c - `lockstep pin PROGRAM words...` runs PROGRAM on this worker's share
// of the cores. mpirun and hosts.c start workers through it. So they get the
// same share as workers that the launcher starts itself, and end when mpirun
// ends.
//
//     lockstep pin trainer words... @server ps_server words...
//
// starts trainers and servers: the ranks behind the LOCKSTEP_WORKERS workers
// become servers. (mpirun can start two programs with a colon between them, but
// in Open MPI 5.0.7 of Debian 13 it then ends with SIGSEGV.)

#include "launch/command.h"

#include "base/base.h"
#include "launch/argv.h"
#include "launch/cores.h"
#include "launch/launch_mpi.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

// Finds this worker's index among the workers of this host, and their number.
// hosts.c or mpirun sets the variables. All emulated hosts are on this host.
static void local_place(int *index, int *count)
{
    static const char *const names[][2] = {
        {"LOCKSTEP_SLOT", "LOCKSTEP_SLOTS"},
        {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
        {"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    };
    int by = getenv("LOCKSTEP_SLOT") ? 0 : getenv("LOCKSTEP_EMULATED") ? 1 : 2;
    const char *rank = getenv(names[by][0]), *size = getenv(names[by][1]);
    *index = rank ? atoi(rank) : 0;
    *count = size ? atoi(size) : 1;
    const char *workers = getenv("LOCKSTEP_WORKERS"); // servers are behind them
    if (workers && atoi(workers) < *count)
        *count = atoi(workers);
    if (*count < 1 || *index < 0 || *index >= *count)
        *index = 0, *count = 1;
}

static bool has_threads(int nwords, char **words)
{
    for (int i = 1; i < nwords; i++)
        if (!strncmp(words[i], "threads=", strlen("threads=")))
            return true;
    return false;
}

// Returns whether this rank is a server. Reduces *words to those of this rank's
// own program.
static bool take_servers_words(int *nwords, char ***words)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    const char *workers = getenv("LOCKSTEP_WORKERS");
    int n = 0;
    while (n < *nwords && strcmp((*words)[n], PIN_SERVER) != 0)
        n++;
    bool server = n < *nwords && rank && workers && atoi(rank) >= atoi(workers);
    if (server) {
        *nwords -= n + 1;
        *words += n + 1;
    } else {
        *nwords = n;
    }
    return server;
}

static int pin(int nwords, char **words)
{
    int index, count;
    cpu_set_t cores;
    bool oversubscribed;
    struct argv *a = mem_alloc(1, sizeof *a);
    log_for_launcher();
    if (!a)
        return -1;
    bool server = take_servers_words(&nwords, &words);
    if (nwords < 1)
        return fail("pin: the program to run is missing");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (server) {
        execv(words[0], words);
        return fail("%s: %s", words[0], strerror(errno));
    }
    local_place(&index, &count);
    if (cores_share(index, count, &cores, &oversubscribed) ||
        argv_add_all(a, nwords, words) ||
        (!has_threads(nwords, words) &&
         argv_add(a, "threads=%d", CPU_COUNT(&cores))))
        return -1;
    if (oversubscribed)
        setenv("OMP_WAIT_POLICY", "passive", 0); // as launch.c does
    cores_take(&cores);
    execv(a->at[0], a->at);
    return fail("%s: %s", a->at[0], strerror(errno));
}

const struct command command_pin = {.name = "pin", .words = "", .run = pin};
