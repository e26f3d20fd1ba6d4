// servers.c - parameter servers of a bench: a thread beside some of its workers.

#include "bench/servers.h"

#include "ps_server/server.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "horovod_ring/tcp.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

struct servers {
    struct server *server;
    pthread_t thread;
    bool running;
    char why[512]; // it failed; "" if not
};

static void *serve(void *arg)
{
    struct servers *s = arg;
    if (server_run(s->server))
        snprintf(s->why, sizeof s->why, "%s", fail_message());
    return NULL;
}

static int start(struct servers *s, const struct server_config *config)
{
    if (server_open(&s->server, config))
        return -1;
    int error = pthread_create(&s->thread, NULL, serve, s);
    if (error)
        return fail("server: thread: %s", strerror(error));
    s->running = true;
    return 0;
}

// A server's threads may use all cores, whichever its worker is bound to.
static int start_unbound(struct servers *s, const struct server_config *config)
{
    cpu_set_t here, all;
    memset(&all, 0xff, sizeof all);
    bool bound = !sched_getaffinity(0, sizeof here, &here) &&
                 !sched_setaffinity(0, sizeof all, &all);
    int rc = start(s, config);
    if (bound)
        sched_setaffinity(0, sizeof here, &here);
    return rc;
}

static int bind_address(char *out, size_t size, const char *iface)
{
    struct sockaddr_in address;
    char text[INET_ADDRSTRLEN];
    if (tcp_address(&address, iface))
        return -1;
    inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
    return text_into(out, size, "tcp://%s:0", text);
}

int servers_open(struct servers **out, struct cluster *c, int count,
                 int threads, const char *iface, char *opts, size_t size)
{
    char bind[64], mine[LINK_ENDPOINT] = "";
    struct server_config config = {.bind = bind,
                                   .curve = "",
                                   .index = c->rank,
                                   .servers = count,
                                   .world = c->world,
                                   .threads = threads,
                                   .timeout_s = c->timeout_s};
    *out = NULL;
    char(*all)[LINK_ENDPOINT] = mem_alloc((size_t)c->world, sizeof *all);
    int rc = all && !bind_address(bind, sizeof bind, iface) ? 0 : -1;
    if (!rc && c->rank < count) {
        *out = mem_alloc(1, sizeof **out);
        rc = *out ? start_unbound(*out, &config) : -1;
        if (!rc)
            memcpy(mine, (*out)->server->endpoint, sizeof mine);
    }
    if (!rc)
        rc = cluster_allgather(c, mine, all, sizeof mine);
    for (int i = 0; !rc && i < count; i++) {
        size_t at = strlen(opts);
        const char *before = i ? "," : at ? ",servers=" : "servers=";
        rc = text_into(opts + at, size - at, "%s%s", before, all[i]);
    }
    mem_free(all);
    return rc;
}

int servers_close(struct servers **out, bool failed)
{
    struct servers *s = *out;
    if (!s)
        return 0;
    if (s->running && failed)
        server_stop(s->server);
    if (s->running)
        pthread_join(s->thread, NULL);
    int rc = !failed && *s->why ? fail("%s", s->why) : 0;
    server_close(&s->server);
    mem_free(s);
    *out = NULL;
    return rc;
}
