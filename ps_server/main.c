// main.c - `ps_server`: one parameter server of one job.
//
//     ps_server bind=tcp://0.0.0.0:7000
//     trainer sync=dps servers=tcp://a:7000,tcp://b:7000 rank=0 world=2 ...
//     mpirun -n 2 trainer sync=sps transport=mpi servers=mpi://2 ... :
//            -n 1 ps_server transport=mpi
//
// Prints "@endpoint tcp://host:port" when it listens. What the job is, its
// shapes and its update rule, the workers tell it.

#include "base/base.h"
#include "base/version.h"
#include "cluster/cluster.h"
#include "cluster/mpi.h"
#include "config/config.h"
#include "ps_server/server.h"
#include "telemetry/sampler.h"
#include "telemetry/span.h"
#include "telemetry/trace.h"

#include <signal.h>
#include <string.h>

static const char help[] =
    "ps_server key=value ... - one parameter server of one job\n"
    "\n"
    "  transport=zmq           or mpi: a rank of its workers' mpirun\n"
    "  bind=tcp://127.0.0.1:0  where to listen; port 0: any, which it prints\n"
    "  timeout=60              longest wait for anybody, s\n"
    "  threads=1               that add and update\n"
    "  curve=                  folder of CURVE keys (lockstep keys)\n"
    "  world=0                 workers it insists on; 0: what they say\n"
    "  shards=0                servers of the job; 0: what the workers say\n"
    "  index=-1                which of them this is; -1: what they say\n"
    "  out=                    folder for what it records\n"
    "  samples=10              of its load, per s: util.sINDEX.csv; 0: none\n"
    "  trace=1                 what it did when: trace.sINDEX.json; 0: not\n"
    "\n"
    "Without keys it should listen to this host only, as it does by default.\n";

enum { RECORDS = 1 << 15, PATH = 1024 };

// What it leaves behind, of itself.
struct record {
    const char *out; // "": nothing
    double per_s;
    long trace;
    struct spans *spans;
    struct sampler *sampler;
};

static int parse(struct server_config *c, struct record *r, struct opts **opts,
                 int n, char **words)
{
    static const char *const carriers[] = {"zmq", "mpi", NULL};
    long index, servers, world, threads;
    int carrier = 0;
    for (int i = 0; i < n; i++)
        if (opts_open(&opts[i], words[i]))
            return -1;
    *c = (struct server_config){.transport = &message_zmq,
                                .bind = "tcp://127.0.0.1:0",
                                .curve = "",
                                .index = -1,
                                .threads = 1,
                                .timeout_s = 60};
    *r = (struct record){.out = "", .per_s = 10, .trace = 1};
    for (int i = 0; i < n; i++) { // the last word wins
        struct opts *o = opts[i];
        c->bind = opts_text(o, "bind", c->bind);
        c->curve = opts_text(o, "curve", c->curve);
        r->out = opts_text(o, "out", r->out);
        if (opts_word(o, "transport", carrier, carriers, &carrier) ||
            opts_int(o, "index", c->index, -1, PS_MAX_WORLD - 1, &index) ||
            opts_int(o, "servers", c->servers, 0, PS_MAX_WORLD, &servers) ||
            opts_int(o, "shards", servers, 0, PS_MAX_WORLD, &servers) ||
            opts_int(o, "world", c->world, 0, PS_MAX_WORLD, &world) ||
            opts_int(o, "threads", c->threads, 1, 1024, &threads) ||
            opts_number(o, "timeout", c->timeout_s, 0.05, 86400,
                        &c->timeout_s) ||
            opts_number(o, "samples", r->per_s, 0, 1000, &r->per_s) ||
            opts_int(o, "trace", r->trace, 0, 1, &r->trace) ||
            opts_unread(o, "ps_server"))
            return -1;
        c->index = (int)index;
        c->servers = (int)servers;
        c->world = (int)world;
        c->threads = (int)threads;
        c->transport = carrier ? &message_mpi : &message_zmq;
    }
    return 0;
}

// Under mpirun the rank says which server this is.
static int join_servers(struct cluster **servers, struct server_config *c)
{
    struct cluster_config config = {.servers = true, .timeout_s = c->timeout_s};
    if (c->transport != &message_mpi)
        return 0;
    if (cluster_open(servers, &cluster_mpi, &config))
        return -1;
    c->index = (*servers)->rank;
    c->servers = (*servers)->world;
    return 0;
}

static int record_begin(struct record *r, struct server_config *c)
{
    char path[PATH], who[16];
    if (!*r->out)
        return 0;
    snprintf(who, sizeof who, "s%d", c->index < 0 ? 0 : c->index);
    if (spans_open(&r->spans, RECORDS) ||
        text_into(path, sizeof path, "%s/util.%s.csv", r->out, who))
        return -1;
    c->spans = r->spans;
    struct sampler_config config = {.path = path,
                                    .who = who,
                                    .spans = r->spans,
                                    .cores = c->threads,
                                    .per_s = r->per_s,
                                    .server = true};
    return r->per_s > 0 ? sampler_open(&r->sampler, &config) : 0;
}

// A trace has a place only once the workers have said where its zero lies.
static int record_end(struct record *r, int index)
{
    char path[PATH], name[32];
    index = index < 0 ? 0 : index;
    struct trace_head head = {.pid = TRACE_SERVER + index, .name = name};
    snprintf(name, sizeof name, "server %d", index);
    int rc = sampler_close(&r->sampler);
    if (r->trace && spans_zero(r->spans))
        rc |=
            text_into(path, sizeof path, "%s/trace.s%d.json", r->out, index) ||
            trace_write(r->spans, path, &head);
    spans_close(&r->spans);
    return rc;
}

// Whoever reaches an open port without keys can read and stop the job.
static void warn_if_open(const struct server_config *c)
{
    bool here = c->transport != &message_zmq || strstr(c->bind, "//127.") ||
                strstr(c->bind, "//localhost") || strstr(c->bind, "//[::1]") ||
                !strncmp(c->bind, "ipc:", 4);
    if (!here && !*c->curve)
        log_line("ps_server: %s is open to other hosts; try: curve=DIR of "
                 "lockstep keys",
                 c->bind);
}

int main(int argc, char **argv)
{
    struct server_config config;
    struct cluster *servers = NULL;
    struct server *server;
    struct record record;
    log_for_launcher();
    signal(SIGXFSZ, SIG_IGN); // as train/main.c
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            return fputs(help, stdout) < 0;
        if (!strcmp(argv[i], "--version"))
            return version_print("ps_server");
    }
    struct opts **opts = mem_alloc((size_t)argc, sizeof *opts);
    if (!opts || parse(&config, &record, opts, argc - 1, argv + 1) ||
        join_servers(&servers, &config) || record_begin(&record, &config) ||
        server_open(&server, &config))
        die("%s%s", fail_message(),
            strstr(fail_message(), "try:") ? "" : "; try: ps_server --help");
    warn_if_open(&config);
    printf("@endpoint %s\n", server->endpoint->address);
    fflush(stdout);
    int rc = server_run(server);
    char why[512];
    snprintf(why, sizeof why, "%s", fail_message());
    server_close(&server);
    if (record_end(&record, config.index))
        log_line("%s", fail_message());
    for (int i = 0; i < argc - 1; i++)
        opts_close(&opts[i]);
    mem_free(opts);
    if (rc)
        die("%s", why);
    cluster_close(&servers);
    return 0;
}
