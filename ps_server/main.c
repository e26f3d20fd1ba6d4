// main.c - `ps_server`: one parameter server of one job.
//
//     ps_server bind=tcp://0.0.0.0:7000
//     trainer sync=dps servers=tcp://a:7000,tcp://b:7000 rank=0 world=2 ...
//     mpirun -n 2 trainer sync=sps transport=mpi servers=mpi://2 ... :
//            -n 1 ps_server transport=mpi
//
// Prints "@endpoint tcp://host:port" when it listens. The workers tell it the
// job, its shapes and its update rule.

#include "base/base.h"
#include "base/file.h"
#include "base/version.h"
#include "cluster/cluster.h"
#include "config/key_parts.h"
#include "config/keys.h"
#include "ps_server/server.h"
#include "telemetry/sampler.h"
#include "telemetry/span.h"
#include "telemetry/trace.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>

enum { RECORDS = 1 << 15, PATH = 1024 };

// What the server records of itself.
struct record {
    struct spans *spans; // NULL: nothing
    struct sampler *sampler;
};

// The settings of the command line.
struct words {
    int transport; // an index into its row's words
    char bind[CONFIG_PATH], curve[CONFIG_PATH], out[CONFIG_PATH];
    int index, servers, world, threads, elastic, trace;
    double timeout, samples;
};

#define AT(member) offsetof(struct words, member), false

static const struct key rows[] = {
    {"ps_server", "transport", "zmq", KEY_CHOICE, AT(transport),
     .words = (const char *const[]){"zmq", "mpi", NULL},
     .help = "zmq: ZeroMQ; mpi: the server is a rank of the workers' mpirun"},
    {"ps_server", "bind", "tcp://127.0.0.1:0", KEY_TEXT, AT(bind),
     .help = "where to listen; port 0: any free port; the server prints it"},
    {"ps_server", "timeout", "60", KEY_NUMBER, AT(timeout), 0.05, 86400,
     .unit = "s", .help = "longest wait for another process"},
    {"ps_server", "threads", "1", KEY_INT, AT(threads), 1, 1024,
     .help = "threads that add and update"},
    {"ps_server", "curve", "", KEY_TEXT, AT(curve), .unit = "path",
     .help = "folder of CURVE keys (lockstep keys)"},
    {"ps_server", "world", "0", KEY_INT, AT(world), 1, PS_MAX_WORLD,
     "as the workers say", .help = "number of workers to expect"},
    {"ps_server", "shards", "0", KEY_INT, AT(servers), 1, PS_MAX_WORLD,
     "as the workers say", .help = "number of servers of the job"},
    {"ps_server", "servers", "0", KEY_INT, AT(servers), 1, PS_MAX_WORLD,
     "as the workers say", .help = "the same as shards="},
    {"ps_server", "index", "-1", KEY_INT, AT(index), -1, PS_MAX_WORLD - 1,
     .help = "number of this server, from 0; -1: as the workers say"},
    {"ps_server", "elastic", "0", KEY_INT, AT(elastic), 0, 1,
     .help = "1: a worker that dies during the start may come again; later the "
             "workers say so"},
    {"ps_server", "out", "", KEY_TEXT, AT(out), .unit = "path",
     .help = "folder for its records (samples, trace)"},
    {"ps_server", "samples", "10", KEY_NUMBER, AT(samples), 0.1, 1000, "never",
     .unit = "per second", .help = "samples of its load: util.sINDEX.csv"},
    {"ps_server", "trace", "1", KEY_INT, AT(trace), 0, 1,
     .help = "1: record a trace: trace.sINDEX.json"},
};

static const struct key_table keys = {rows, sizeof rows / sizeof *rows,
                                      "ps_server --help"};

static int parse(struct words *w, struct server_config *c, int n, char **words)
{
    key_defaults(&keys, w);
    int endpoints;
    if (key_words(&keys, w, n, words) ||
        endpoints_check("bind", w->bind, &endpoints))
        return -1;
    if (endpoints != 1)
        return fail("bind=%s: want one endpoint", w->bind);
    *c = (struct server_config){.transport =
                                    w->transport ? &message_mpi : &message_zmq,
                                .bind = w->bind,
                                .curve = w->curve,
                                .index = w->index,
                                .servers = w->servers,
                                .world = w->world,
                                .threads = w->threads,
                                .elastic = w->elastic,
                                .timeout_s = w->timeout};
    return 0;
}

static int help(void)
{
    printf("ps_server key=value ... - one parameter server of one job.\nIt "
           "accepts connections from other hosts only if it has keys (curve=) "
           "or the job's\nsecret, in LOCKSTEP_SECRET or in the file that "
           "LOCKSTEP_SECRET_FILE names. Within one\nhost the user's own secret "
           "is enough.\n");
    key_help(stdout, &keys);
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

static int record_begin(struct record *r, const struct words *w,
                        struct server_config *c)
{
    char path[PATH], who[16];
    if (!*w->out)
        return 0;
    snprintf(who, sizeof who, "s%d", c->index < 0 ? 0 : c->index);
    if (file_make_folder(w->out) < 0 || spans_open(&r->spans, RECORDS) ||
        text_into(path, sizeof path, "%s/util.%s.csv", w->out, who))
        return -1;
    c->spans = r->spans;
    struct sampler_config config = {.path = path,
                                    .who = who,
                                    .spans = r->spans,
                                    .cores = c->threads,
                                    .per_s = w->samples,
                                    .server = true};
    return w->samples > 0 ? sampler_open(&r->sampler, &config) : 0;
}

// Writes the trace. Without the zero of time, which the workers send, a trace
// cannot be placed on the common time axis, so none is written.
static int record_end(struct record *r, const struct words *w, int index)
{
    char path[PATH], name[32];
    index = index < 0 ? 0 : index;
    struct trace_head head = {.pid = TRACE_SERVER + index, .name = name};
    snprintf(name, sizeof name, "server %d", index);
    int rc = sampler_close(&r->sampler);
    if (w->trace && spans_zero(r->spans))
        rc |=
            text_into(path, sizeof path, "%s/trace.s%d.json", w->out, index) ||
            trace_write(r->spans, path, &head);
    spans_close(&r->spans);
    return rc;
}

int main(int argc, char **argv)
{
    struct server_config config;
    struct cluster *servers = NULL;
    struct server *server;
    struct record record = {NULL, NULL};
    streams_begin();
    log_for_launcher();
    signal(SIGXFSZ, SIG_IGN); // a write fails instead, and names the file
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            return help();
        if (!strcmp(argv[i], "--version"))
            return version_print("ps_server");
    }
    struct words words;
    if (parse(&words, &config, argc - 1, argv + 1) ||
        join_servers(&servers, &config) ||
        record_begin(&record, &words, &config) || server_open(&server, &config))
        die("%s%s", fail_message(),
            strstr(fail_message(), "try:") || strstr(fail_message(), "--help")
                ? ""
                : "; try: ps_server --help");
    printf("@endpoint %s\n", server->endpoint->address);
    fflush(stdout);
    int rc = server_run(server);
    char why[512];
    snprintf(why, sizeof why, "%s", fail_message());
    server_close(&server);
    if (record_end(&record, &words, config.index))
        log_line("%s", fail_message());
    if (rc)
        die("%s", why);
    cluster_close(&servers);
    return 0;
}
