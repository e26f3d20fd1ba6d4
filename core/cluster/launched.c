// launched.c - the launcher of this process, its rank and the number of ranks.
//
// Launchers put these into environment variables, each under its own names.
// Open MPI can join a job of its own mpirun, and a Slurm step with PMIx. The
// other launchers only give a rank and a world. Their workers meet at a
// rendezvous server of ours.

#include "cluster/cluster.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

static const struct launcher {
    const char *name, *rank, *world;
    const char *also; // a variable that must be set, too; NULL: none
    bool mpi;
} launchers[] = {
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL, true},
    {"srun --mpi=pmix", "PMIX_RANK", "SLURM_NTASKS", "SLURM_STEP_ID", true},
    {"srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_ID", false},
    {"PALS", "PALS_RANKID", "PMI_SIZE", NULL, false},
    {"PMI", "PMI_RANK", "PMI_SIZE", NULL, false},
    {"torchrun", "RANK", "WORLD_SIZE", NULL, false},
};

// The variable's whole number in [0, 2^31), or -1 if it holds none.
static int read_number(const char *name)
{
    const char *text = getenv(name);
    char *end;
    if (!text || !*text)
        return -1;
    long n = strtol(text, &end, 10);
    return *end || n < 0 || n > INT32_MAX ? -1 : (int)n;
}

static bool find(struct cluster_place *out, bool mpi)
{
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const struct launcher *l = &launchers[i];
        if (l->also && !getenv(l->also))
            continue;
        int rank = read_number(l->rank), world = read_number(l->world);
        if (world < 1 || rank < 0 || rank >= world)
            continue;
        *out = (struct cluster_place){l->name, rank, world};
        return l->mpi == mpi; // the first launcher found counts
    }
    return false;
}

bool cluster_launched(int *rank, int *world)
{
    struct cluster_place p;
    if (!find(&p, true))
        return false;
    *rank = p.rank;
    *world = p.world;
    return true;
}

bool cluster_named(struct cluster_place *out)
{
    return find(out, false) && out->world > 1;
}

bool cluster_several(struct cluster_place *out)
{
    return (find(out, true) || find(out, false)) && out->world > 1;
}

int cluster_rendezvous(char out[CLUSTER_ENDPOINT])
{
    const char *host = getenv("MASTER_ADDR");
    int port = read_number("MASTER_PORT");
    const char *agent = getenv("TORCHELASTIC_USE_AGENT_STORE");
    out[0] = '\0';
    if (!host || !*host || port < 1)
        return 0;
    // torchrun's own store may listen at the port already
    port += agent && !strcmp(agent, "True");
    return text_into(out, CLUSTER_ENDPOINT, "tcp://%s:%d", host, port);
}
