// launch.c - starts the processes that sync= and workers= ask for.
//
// Parameter-server jobs are started without MPI, so that the death of one
// worker does not end the others. transport=mpi starts them with MPI. A worker
// gets the user's settings and, behind "--", those that the launcher adds.
// run.json records the two separately.

#include "lockstep/launch.h"

#include "base/base.h"
#include "base/secret.h"
#include "config/backends.h"
#include "lockstep/argv.h"
#include "lockstep/cores.h"
#include "lockstep/hosts.h"
#include "lockstep/openmpi.h"
#include "lockstep/supervise.h"
#include "netns/netns.h"
#include "sync/derive.h"

#include <stdlib.h>
#include <string.h>

enum { ENDPOINTS = LAUNCH_ENDPOINTS };

// Returns the run's backend. It is never NULL: sync= accepts only names of
// backends.
static const struct backend *row(const struct run *r)
{
    return backend_row(r->sync);
}

// Returns whether mpirun starts the job; -1 after fail() if the settings
// contradict each other.
static int uses_mpi(const struct run *r)
{
    const struct sync_settings *set = &r->settings;
    const char *zmq = NULL;
    if (row(r)->launch != LAUNCH_SERVERS)
        return row(r)->launch == LAUNCH_MPIRUN;
    if (r->hosts[0])
        zmq = "hosts=";
    else if (r->curve[0])
        zmq = "curve=";
    else if (set->servers.endpoints[0])
        zmq = "servers=ENDPOINTS";
    bool mpi = set->transport == TRANSPORT_MPI;
    if (mpi && zmq)
        return fail("%s does not work with transport=mpi; try: transport=zmq",
                    zmq);
    return mpi;
}

// Counts the servers to start: 0 if the backend has none, or if servers= names
// the endpoints of servers that run already.
static int count_servers(const struct run *r, int *out)
{
    const struct backend *b = row(r);
    struct sync_settings set = r->settings;
    *out = 0;
    if (!b->servers)
        return 0;
    sync_derive(&set, b, r->workers, 0);
    if (b->servers == 1 && set.servers.count > 1)
        return fail("servers=%d: sync=%s has one server; try: sync=dps",
                    set.servers.count, r->sync);
    *out = set.servers.endpoints[0] ? 0 : set.servers.count;
    return 0;
}

int launch_hosts(const struct run *r)
{
    return r->workers + (row(r)->servers == 1);
}

const char *launch_net(const struct run *r, bool emulated)
{
    return !*r->net    ? ""
           : !emulated ? LAUNCH_UNSHAPED
                       : r->net + (*r->net == '?');
}

// Returns the emulated host of a server. Servers have hosts of their own if
// there are more hosts than workers, and share the workers' hosts otherwise.
static int server_host(const struct run *r, const struct netns *net, int index)
{
    int own = netns_hosts(net) - r->workers;
    return own > 0 ? r->workers + index % own : index % netns_hosts(net);
}

int launch_children(const struct run *r)
{
    int servers;
    return uses_mpi(r) < 0 || count_servers(r, &servers) ? -1
                                                         : r->workers + servers;
}

// The hosts of a job's processes. Both are NULL if all run on this host.
struct place {
    const struct netns *net;
    const struct hosts *hosts;
};

// Makes *child run *a. With `slot`, *a is replaced by the command that runs it
// on that slot's host.
static int place_child(struct job_child *child, struct argv **a,
                       const struct slot *slot)
{
    if (slot) {
        struct argv *far = mem_alloc(1, sizeof *far);
        if (!far || hosts_wrap(far, slot, *a)) {
            mem_free(far);
            return -1;
        }
        mem_free(*a);
        *a = far;
    }
    child->argv = (*a)->at;
    child->watched = slot;
    return 0;
}

// Adds the program and the words that are the same for all servers.
static int add_server(struct argv *a, const struct run *r, int servers)
{
    return argv_add_program(a, "ps_server") ||
                   argv_add(a, "servers=%d", servers) ||
                   argv_add(a, "world=%d", r->workers) ||
                   argv_add(a, "threads=%d", r->settings.server_threads) ||
                   argv_add(a, "timeout=%.17g", r->timeout) ||
                   argv_add(a, "out=%s", r->out) ||
                   argv_add(a, "samples=%.17g", r->samples) ||
                   argv_add(a, "trace=%d", r->trace != TRACE_OFF)
               ? -1
               : 0;
}

static int start_server(struct job *j, const struct run *r,
                        const struct place *p, int index, int servers,
                        char *endpoint, size_t size)
{
    const struct netns *net = p->net;
    int host = net ? server_host(r, net, index) : 0;
    struct slot slot = {0};
    if (p->hosts)
        slot = hosts_slot(p->hosts, index, r->workers);
    struct argv *a = mem_alloc(1, sizeof *a);
    int err = a ? add_server(a, r, servers) : -1;
    if (!err)
        err = argv_add(a, "bind=tcp://%s:0",
                       net                  ? netns_address(net, host)
                       : p->hosts           ? slot.host->address
                       : *r->settings.iface ? r->settings.iface
                                            : "127.0.0.1") ||
              argv_add(a, "index=%d", index) ||
              (r->curve[0] && argv_add(a, "curve=%s", r->curve));
    struct job_child child = {.kind = JOB_SERVER, .rank = index};
    child.host = net ? netns_name(net, host) : NULL;
    if (!err)
        err = place_child(&child, &a, p->hosts ? &slot : NULL) ||
              job_start(j, &child) ||
              job_answer(j, "@endpoint ", r->timeout, endpoint, size);
    mem_free(a);
    return err ? -1 : 0;
}

// Starts the servers of the job, and returns their endpoints, comma-separated.
static int start_servers(struct job *j, const struct run *r,
                         const struct place *p, char endpoints[ENDPOINTS])
{
    int servers;
    if (count_servers(r, &servers))
        return -1;
    for (int i = 0; i < servers; i++) {
        char one[128];
        size_t at = strlen(endpoints);
        if (start_server(j, r, p, i, servers, one, sizeof one) ||
            text_into(endpoints + at, ENDPOINTS - at, "%s%s", i ? "," : "",
                      one))
            return -1;
    }
    return 0;
}

struct words {
    struct argv *a;
    bool full;
};

static void add_setting(void *ctx, const char *key, const char *value,
                        bool is_number, bool shared)
{
    struct words *w = ctx;
    (void)is_number;
    (void)shared;
    w->full = w->full || argv_add(w->a, "%s=%s", key, value);
}

// Adds the user's settings and, behind "--", the launcher's for all workers.
static int add_common(struct argv *a, const struct run *r,
                      const struct netns *net)
{
    struct words w = {.a = a};
    config_each_asked(r, false, add_setting, &w);
    return w.full || argv_add(a, "--") || argv_add(a, "out=%s", r->out) ||
           (*r->net && argv_add(a, "net=%s", launch_net(r, net)));
}

// Starts one trainer on its share of the cores. With hosts=, `lockstep pin`
// runs on the trainer's host, and finds the trainer's share there.
static int start_worker(struct job *j, const struct run *r,
                        const struct place *p, int rank, const char *endpoints)
{
    const struct netns *net = p->net;
    struct slot slot = {0};
    cpu_set_t cores;
    bool oversubscribed;
    if (p->hosts)
        slot = hosts_slot(p->hosts, rank, r->workers);
    else if (cores_share(rank, r->workers, &cores, &oversubscribed))
        return -1;
    struct argv *a = mem_alloc(1, sizeof *a);
    int err = a ? 0 : -1;
    if (!err && p->hosts)
        err = argv_add_program(a, "lockstep") || argv_add(a, "pin");
    if (!err)
        err = argv_add_program(a, "trainer") || add_common(a, r, net) ||
              (!p->hosts && !config_asked(r, "threads") &&
               argv_add(a, "threads=%d", CPU_COUNT(&cores)));
    if (!err && r->workers > 1)
        err =
            argv_add(a, "rank=%d", rank) || argv_add(a, "world=%d", r->workers);
    if (!err && endpoints[0])
        err = argv_add(a, "servers=%s", endpoints) ||
              argv_add(a, "rendezvous=%.*s", (int)strcspn(endpoints, ","),
                       endpoints);
    struct job_child child = {.kind = JOB_WORKER, .rank = rank};
    child.cores = p->hosts ? NULL : &cores;
    child.host = net ? netns_name(net, rank % netns_hosts(net)) : NULL;
    if (!err)
        err = place_child(&child, &a, p->hosts ? &slot : NULL) ||
              job_start(j, &child);
    mem_free(a);
    return err ? -1 : 0;
}

static int add_openmpi(struct argv *a, const char *words, const char *agent)
{
    char copy[512], *rest;
    if (text_into(copy, sizeof copy, "%s", words))
        return -1;
    for (char *w = strtok_r(copy, " ", &rest); w;
         w = strtok_r(NULL, " ", &rest))
        if (argv_add(a, "%s",
                     !strcmp(w, "%agent")    ? agent
                     : !strcmp(w, "%subnet") ? netns_subnet()
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

// mpirun runs on the first emulated host. It reaches the other hosts through
// `lockstep enter` instead of ssh.
static int add_emulated(struct argv *a, const struct netns *net, int workers,
                        int servers)
{
    char agent[CONFIG_PATH], list[NETNS_HOSTS * (NETNS_NAME + 6)] = "";
    struct argv *program = mem_alloc(1, sizeof *program);
    int err =
        program ? argv_add_program(program, "lockstep") ||
                      text_into(agent, sizeof agent, "%s enter", program->at[0])
                : -1;
    mem_free(program);
    return err || list_hosts(net, workers, servers > 0, list, sizeof list) ||
                   argv_add(a, "--map-by") ||
                   argv_add(a, servers ? "node" : "slot") ||
                   argv_add(a, "--host") || argv_add(a, "%s", list) ||
                   add_openmpi(a, openmpi_here->emulated, agent)
               ? -1
               : 0;
}

// Ranks of one host exchange by shared memory, unless the user chose otherwise.
static int add_one_host(struct argv *a)
{
    return getenv("OMPI_MCA_btl") ? 0
                                  : add_openmpi(a, openmpi_here->one_host, "");
}

// mpirun reaches hosts as hosts.c does: by LOCKSTEP_RSH if it is set.
static int add_hosts(struct argv *a, const char *hosts)
{
    const char *agent = getenv("LOCKSTEP_RSH");
    return argv_add(a, "--hostfile") || argv_add(a, "%s", hosts) ||
                   argv_add(a, "-x") || argv_add(a, "%s", secret_name()) ||
                   (agent && add_openmpi(a, openmpi_here->reach, agent))
               ? -1
               : 0;
}

// Sets how long OpenMP's threads spin. train/main.c does the same, but only for
// the trainer; this is for every program that is launched. If workers share
// cores, threads do not spin at all: a run with spinning threads took ten times
// as long on a busy machine.
static void wait_politely(bool oversubscribed)
{
    if (getenv("OMP_WAIT_POLICY"))
        return; // the user chose
    if (oversubscribed)
        setenv("OMP_WAIT_POLICY", "passive", 0);
    else
        setenv("GOMP_SPINCOUNT", "1000", 0);
}

int launch_mpi(struct job *j, const struct run *r, const struct netns *net,
               const char *program, const struct argv *words, int servers,
               const struct argv *server)
{
    char workers[16];
    snprintf(workers, sizeof workers, "%d", r->workers);
    setenv("LOCKSTEP_WORKERS", workers, 1);
    setenv("LOCKSTEP_PROGRESS", "1", 1);
    wait_politely(r->workers > cores_count());
    if (net)
        setenv("LOCKSTEP_EMULATED", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    struct argv *a = mem_alloc(1, sizeof *a);
    int err = a ? secret_make() : -1;
    if (!err)
        err = argv_add(a, "mpirun") || argv_add(a, "-n") ||
              argv_add(a, "%d", r->workers + servers) ||
              argv_add(a, "--bind-to") || argv_add(a, "none") ||
              argv_add(a, "--oversubscribe") || argv_add(a, "--tag-output") ||
              argv_add(a, "-x") || argv_add(a, "LOCKSTEP_PROGRESS") ||
              argv_add(a, "-x") || argv_add(a, "LOCKSTEP_WORKERS") ||
              (getenv("LOCKSTEP_RESTARTS") &&
               (argv_add(a, "-x") || argv_add(a, "LOCKSTEP_RESTARTS"))) ||
              (net && (argv_add(a, "-x") || argv_add(a, "LOCKSTEP_EMULATED") ||
                       add_emulated(a, net, r->workers, servers))) ||
              (!net && !r->hosts[0] && add_one_host(a)) ||
              (r->hosts[0] && add_hosts(a, r->hosts)) ||
              (r->workers > cores_count() &&
               (argv_add(a, "--mca") || argv_add(a, "mpi_yield_when_idle") ||
                argv_add(a, "1"))) ||
              argv_add_program(a, "lockstep") || argv_add(a, "pin") ||
              argv_add_program(a, program) ||
              argv_add_all(a, words->n, words->at) ||
              (servers && (argv_add(a, PIN_SERVER) ||
                           argv_add_all(a, server->n, server->at)));
    struct job_child child = {.kind = JOB_MPIRUN,
                              .rank = servers ? r->workers : 0};
    child.argv = a ? a->at : NULL;
    child.host = net ? netns_name(net, 0) : NULL;
    if (!err)
        err = job_start(j, &child);
    mem_free(a);
    return err ? -1 : 0;
}

// With transport=mpi, adds the words for servers: their ranks follow the
// workers'.
static int add_ranks(struct argv *trainer, struct argv *server,
                     const struct run *r, int servers)
{
    char list[ENDPOINTS] = "";
    for (int i = 0; i < servers; i++) {
        size_t at = strlen(list);
        if (text_into(list + at, sizeof list - at, "%smpi://%d", i ? "," : "",
                      r->workers + i))
            return -1;
    }
    return servers && (argv_add(trainer, "servers=%s", list) ||
                       add_server(server, r, servers) ||
                       argv_add(server, "transport=mpi"))
               ? -1
               : 0;
}

static int launch_trainers(struct job *j, const struct run *r,
                           const struct netns *net)
{
    struct argv *a = mem_alloc(1, sizeof *a), *b = mem_alloc(1, sizeof *b);
    int servers;
    int err = !a || !b || count_servers(r, &servers) || add_common(a, r, net) ||
              (net && !servers && backend_reads(row(r), "iface") &&
               argv_add(a, "iface=%s", netns_subnet())) ||
              add_ranks(a, b, r, servers) ||
              launch_mpi(j, r, net, "trainer", a, servers, b);
    mem_free(b);
    mem_free(a);
    return err ? -1 : 0;
}

// Starts the servers, then the trainers, without mpirun.
static int launch_each(struct job *j, const struct run *r,
                       const struct place *p, char endpoints[ENDPOINTS])
{
    setenv("LOCKSTEP_PROGRESS", "1", 1);
    if (p->net)
        setenv("LOCKSTEP_EMULATED", "1", 1);
    wait_politely(!p->hosts && r->workers > cores_count());
    if (secret_make() || start_servers(j, r, p, endpoints))
        return -1;
    for (int rank = 0; rank < r->workers; rank++) {
        if (start_worker(j, r, p, rank, endpoints))
            return -1;
    }
    return 0;
}

// Finds the place of the job. The caller frees *hosts. 0, or -1 after fail().
static int find_place(struct place *p, const struct run *r,
                      const struct netns *net, struct hosts **hosts)
{
    *hosts = r->hosts[0] ? mem_alloc(1, sizeof **hosts) : NULL;
    *p = (struct place){net, *hosts};
    return r->hosts[0] && (!*hosts || hosts_read(*hosts, r->hosts)) ? -1 : 0;
}

int launch(struct job *j, const struct run *r, const struct netns *net,
           char servers[LAUNCH_ENDPOINTS])
{
    int mpi = uses_mpi(r);
    struct hosts *hosts;
    struct place p;
    *servers = '\0';
    if (mpi)
        return mpi < 0 ? -1 : launch_trainers(j, r, net);
    int err = find_place(&p, r, net, &hosts) || launch_each(j, r, &p, servers);
    mem_free(hosts);
    return err ? -1 : 0;
}

int launch_worker(struct job *j, const struct run *r, const struct netns *net,
                  int rank, const char *servers)
{
    struct hosts *hosts;
    struct place p;
    int err =
        find_place(&p, r, net, &hosts) || start_worker(j, r, &p, rank, servers);
    mem_free(hosts);
    return err ? -1 : 0;
}
