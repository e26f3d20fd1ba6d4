// launch.c - starts the processes that sync= and workers= ask for.
//
// Jobs that do not send by MPI are started without it. mpirun has no deadlines,
// and whoever reaches its port can stop it. Without servers, worker 0 is
// started first: it serves the rendezvous, and says where. A worker gets the
// user's settings and, behind "--", those that the launcher adds. run.json
// records the two separately.

#include "launch/launch.h"

#include "base/base.h"
#include "base/secret.h"
#include "config/backends.h"
#include "config/keys.h"
#include "launch/argv.h"
#include "launch/cores.h"
#include "launch/hosts.h"
#include "launch/launch_mpi.h"
#include "launch/supervise.h"
#include "netns/netns.h"
#include "sync/derive.h"

#include <stdlib.h>
#include <string.h>

// Returns the run's backend. It is never NULL: sync= accepts only names of
// backends.
static const struct backend *row(const struct run *r)
{
    return backend_find(r->sync);
}

// Returns whether mpirun starts the job; -1 after fail() if the settings
// contradict each other.
static int uses_mpi(const struct run *r)
{
    const struct sync_settings *set = &r->settings;
    const char *zmq = NULL;
    bool mpi = backend_needs_mpi(row(r), set);
    if (row(r)->launch != LAUNCH_SERVERS)
        return mpi;
    if (r->hosts[0])
        zmq = "hosts=";
    else if (r->curve[0])
        zmq = "curve=";
    else if (set->servers.endpoints[0])
        zmq = "servers=ENDPOINTS";
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

// Where a job's processes run, and where they meet.
struct place {
    const struct netns *net; // net and hosts are NULL: all run on this host
    const struct hosts *hosts;
    const char *servers;              // endpoints; "": none
    char rendezvous[LAUNCH_ENDPOINT]; // "": of the first server, or none
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
                   argv_add(a, "elastic=%d", r->settings.elastic) ||
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
                         const struct place *p,
                         char endpoints[LAUNCH_ENDPOINTS])
{
    int servers;
    if (count_servers(r, &servers))
        return -1;
    for (int i = 0; i < servers; i++) {
        char one[LAUNCH_ENDPOINT];
        size_t at = strlen(endpoints);
        if (start_server(j, r, p, i, servers, one, sizeof one) ||
            text_into(endpoints + at, LAUNCH_ENDPOINTS - at, "%s%s",
                      i ? "," : "", one))
            return -1;
    }
    return 0;
}

struct words {
    struct argv *a;
    bool full;
};

static void add_setting(void *ctx, const struct key *k, const char *value)
{
    struct words *w = ctx;
    w->full = w->full || argv_add(w->a, "%s=%s", k->name, value);
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

// Returns the emulated host of a worker. Without servers each host has a block
// of ranks, so that neighbours in a ring or mesh share a host where they can.
static int worker_host(const struct run *r, const struct netns *net, int rank)
{
    int hosts = netns_hosts(net);
    if (row(r)->servers)
        return rank % hosts;
    return hosts < r->workers ? rank * hosts / r->workers : rank;
}

// Adds a worker's place in the job, and where it meets the others.
static int add_place(struct argv *a, const struct run *r, const struct place *p,
                     int rank)
{
    if (r->workers > 1 &&
        (argv_add(a, "rank=%d", rank) || argv_add(a, "world=%d", r->workers)))
        return -1;
    if (*p->servers)
        return argv_add(a, "servers=%s", p->servers) ||
                       argv_add(a, "rendezvous=%.*s",
                                (int)strcspn(p->servers, ","), p->servers)
                   ? -1
                   : 0;
    if (p->net && config_listens(r) && argv_add(a, "iface=%s", netns_subnet()))
        return -1;
    return *p->rendezvous ? argv_add(a, "rendezvous=%s", p->rendezvous) : 0;
}

// Starts one trainer on its share of the cores. With hosts=, `lockstep pin`
// runs on the trainer's host, and finds the trainer's share there.
static int start_worker(struct job *j, const struct run *r,
                        const struct place *p, int rank)
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
               argv_add(a, "threads=%d", CPU_COUNT(&cores))) ||
              add_place(a, r, p, rank);
    struct job_child child = {.kind = JOB_WORKER, .rank = rank};
    child.cores = p->hosts ? NULL : &cores;
    child.host = net ? netns_name(net, worker_host(r, net, rank)) : NULL;
    if (!err)
        err = place_child(&child, &a, p->hosts ? &slot : NULL) ||
              job_start(j, &child);
    mem_free(a);
    return err ? -1 : 0;
}

// With transport=mpi, adds the words for servers: their ranks follow the
// workers'.
static int add_ranks(struct argv *trainer, struct argv *server,
                     const struct run *r, int servers)
{
    char list[LAUNCH_ENDPOINTS] = "";
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
              (net && !servers && config_listens(r) &&
               argv_add(a, "iface=%s", netns_subnet())) ||
              add_ranks(a, b, r, servers) ||
              launch_mpi(j, r, net, "trainer", a, servers, b);
    mem_free(b);
    mem_free(a);
    return err ? -1 : 0;
}

// Starts worker 0 of a job without servers. It listens on its host, at a port
// that it chooses, and the other workers are told where.
static int start_first(struct job *j, const struct run *r, struct place *p)
{
    const char *address = "127.0.0.1";
    if (p->net)
        address = netns_address(p->net, worker_host(r, p->net, 0));
    else if (p->hosts)
        address = hosts_slot(p->hosts, 0, r->workers).host->address;
    return text_into(p->rendezvous, LAUNCH_ENDPOINT, "tcp://%s:0", address) ||
                   start_worker(j, r, p, 0) ||
                   job_answer(j, "@endpoint ", LAUNCH_START_S + r->timeout,
                              p->rendezvous, LAUNCH_ENDPOINT)
               ? -1
               : 0;
}

// Starts the servers, then the trainers, without mpirun.
static int launch_each(struct job *j, const struct run *r, struct place *p,
                       char endpoints[LAUNCH_ENDPOINTS])
{
    bool meet = row(r)->launch == LAUNCH_WORKERS && r->workers > 1;
    setenv("LOCKSTEP_PROGRESS", "1", 1);
    if (p->net)
        setenv("LOCKSTEP_EMULATED", "1", 1);
    cores_wait_politely(!p->hosts && r->workers > cores_count());
    if (secret_make() || start_servers(j, r, p, endpoints) ||
        (meet && start_first(j, r, p)))
        return -1;
    for (int rank = meet; rank < r->workers; rank++)
        if (start_worker(j, r, p, rank))
            return -1;
    return 0;
}

// In a job of Slurm mpirun would use all its nodes. We use those of hosts=.
static void say_one_node(void)
{
    const char *nodes = getenv("SLURM_JOB_NUM_NODES");
    if (nodes && atoi(nodes) > 1)
        log_line("this Slurm job has %s nodes, and all processes run on this "
                 "one; try: examples/slurm.sh, or hosts=FILE",
                 nodes);
}

// Finds the place of the job. The caller frees *hosts. 0, or -1 after fail().
static int find_place(struct place *p, const struct run *r,
                      const struct netns *net, const char *servers,
                      struct hosts **hosts)
{
    *hosts = r->hosts[0] ? mem_alloc(1, sizeof **hosts) : NULL;
    *p = (struct place){.net = net, .hosts = *hosts, .servers = servers};
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
    if (!r->hosts[0] && r->workers > 1)
        say_one_node();
    int err = find_place(&p, r, net, servers, &hosts) ||
              launch_each(j, r, &p, servers);
    mem_free(hosts);
    return err ? -1 : 0;
}

int launch_worker(struct job *j, const struct run *r, const struct netns *net,
                  int rank, const char *servers)
{
    struct hosts *hosts;
    struct place p;
    int err =
        find_place(&p, r, net, servers, &hosts) || start_worker(j, r, &p, rank);
    mem_free(hosts);
    return err ? -1 : 0;
}
