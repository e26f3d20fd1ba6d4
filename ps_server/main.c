// main.c - `ps_server`: one parameter server of one job.
//
//     ps_server bind=tcp://0.0.0.0:7000
//     trainer sync=dps servers=tcp://a:7000,tcp://b:7000 rank=0 world=2 ...
//
// Prints "@endpoint tcp://host:port" when it listens. What the job is, its
// shapes and its update rule, the workers tell it.

#include "base/base.h"
#include "config/config.h"
#include "ps_server/server.h"
#include "telemetry/sampler.h"

#include <string.h>

static const char help[] =
    "ps_server key=value ... - one parameter server of one job\n"
    "\n"
    "  bind=tcp://127.0.0.1:0  where to listen; port 0: any, which it prints\n"
    "  timeout=60              longest wait for anybody, s\n"
    "  threads=1               that add and update\n"
    "  curve=                  folder of CURVE keys (lockstep keys)\n"
    "  world=0                 workers it insists on; 0: what they say\n"
    "  shards=0                servers of the job; 0: what the workers say\n"
    "  index=-1                which of them this is; -1: what they say\n"
    "  out=                    folder for util.sINDEX.csv: its load, ten times "
    "a second\n"
    "\n"
    "Without keys it should listen to this host only, as it does by default.\n";

static int parse(struct server_config *c, struct opts **opts, int n,
                 char **words, const char **out)
{
    long index, servers, world, threads;
    for (int i = 0; i < n; i++)
        if (opts_open(&opts[i], words[i]))
            return -1;
    *c = (struct server_config){.bind = "tcp://127.0.0.1:0",
                                .curve = "",
                                .index = -1,
                                .threads = 1,
                                .timeout_s = 60};
    for (int i = 0; i < n; i++) { // the last word wins
        struct opts *o = opts[i];
        c->bind = opts_text(o, "bind", c->bind);
        c->curve = opts_text(o, "curve", c->curve);
        *out = opts_text(o, "out", *out);
        if (opts_int(o, "index", c->index, -1, PS_MAX_WORLD - 1, &index) ||
            opts_int(o, "servers", c->servers, 0, PS_MAX_WORLD, &servers) ||
            opts_int(o, "shards", servers, 0, PS_MAX_WORLD, &servers) ||
            opts_int(o, "world", c->world, 0, PS_MAX_WORLD, &world) ||
            opts_int(o, "threads", c->threads, 1, 1024, &threads) ||
            opts_number(o, "timeout", c->timeout_s, 0.05, 86400,
                        &c->timeout_s) ||
            opts_unread(o, "ps_server"))
            return -1;
        c->index = (int)index;
        c->servers = (int)servers;
        c->world = (int)world;
        c->threads = (int)threads;
    }
    return 0;
}

// Its load, from now on: t_s counts from here.
static int start_sampler(struct sampler **s, const char *out,
                         const struct server_config *c)
{
    char path[1024], who[16];
    snprintf(who, sizeof who, "s%d", c->index < 0 ? 0 : c->index);
    if (text_into(path, sizeof path, "%s/util.%s.csv", out, who))
        return -1;
    struct sampler_config config = {.path = path,
                                    .who = who,
                                    .cores = c->threads,
                                    .per_s = 10,
                                    .zero_ns = now_ns(),
                                    .gpu = -1};
    return sampler_open(s, &config);
}

// Whoever reaches an open port without keys can read and stop the job.
static void warn_if_open(const struct server_config *c)
{
    bool here = strstr(c->bind, "//127.") || strstr(c->bind, "//localhost") ||
                strstr(c->bind, "//[::1]") || !strncmp(c->bind, "ipc:", 4);
    if (!here && !*c->curve)
        log_line("ps_server: %s is open to other hosts; try: curve=DIR of "
                 "lockstep keys",
                 c->bind);
}

int main(int argc, char **argv)
{
    struct server_config config;
    struct server *server;
    struct sampler *sampler = NULL;
    const char *out = "";
    if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
        fputs(help, stdout);
        return 0;
    }
    struct opts **opts = mem_alloc((size_t)argc, sizeof *opts);
    if (!opts || parse(&config, opts, argc - 1, argv + 1, &out) ||
        server_open(&server, &config) ||
        (*out && start_sampler(&sampler, out, &config)))
        die("%s%s", fail_message(),
            strstr(fail_message(), "try:") ? "" : "; try: ps_server --help");
    warn_if_open(&config);
    printf("@endpoint %s\n", server->endpoint);
    fflush(stdout);
    int rc = server_run(server);
    char why[512];
    snprintf(why, sizeof why, "%s", fail_message());
    server_close(&server);
    if (sampler_close(&sampler))
        log_line("%s", fail_message());
    for (int i = 0; i < argc - 1; i++)
        opts_close(&opts[i]);
    mem_free(opts);
    if (rc)
        die("%s", why);
    return 0;
}
