// servers.c - servers of a bench: each runs in a thread of a worker's process.

#include "bench/servers.h"

#include "bench/echo.h"
#include "ps_server/server.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "horovod_ring/tcp.h"
#include "netns/netns.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

struct servers {
    struct server *server; // NULL: an echo
    struct echo *echo;
    char endpoint[MESSAGE_ENDPOINT];
    pthread_t thread;
    bool running;
    char why[512]; // the error; "": none
};

static void *serve(void *arg)
{
    struct servers *s = arg;
    if (s->echo ? echo_run(s->echo) : server_run(s->server))
        snprintf(s->why, sizeof s->why, "%s", fail_message());
    return NULL;
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

struct starter {
    struct servers *s;
    struct server_config config;
    const char *host, *iface;
    bool echo;
};

static int listen_at(struct servers *s, const struct starter *t)
{
    const struct server_config *c = &t->config;
    if (t->echo)
        return echo_open(&s->echo, c->bind, c->timeout_s, s->endpoint);
    if (server_open(&s->server, c))
        return -1;
    memcpy(s->endpoint, s->server->endpoint->address, sizeof s->endpoint);
    return 0;
}

// Runs in its own thread, because it changes the cores and the network
// namespace of this thread. The server's threads inherit both: they may use all
// cores, and may be on another emulated host than the worker.
static void *start(void *arg)
{
    struct starter *t = arg;
    struct servers *s = t->s;
    char bind[64];
    cpu_set_t all;
    memset(&all, 0xff, sizeof all);
    sched_setaffinity(0, sizeof all, &all);
    t->config.bind = bind;
    int rc = *t->host && netns_enter(t->host)
                 ? fail("server: host %s: %s", t->host, strerror(errno))
                 : bind_address(bind, sizeof bind, t->iface) || listen_at(s, t);
    int error = rc ? 0 : pthread_create(&s->thread, NULL, serve, s);
    if (error)
        fail("server: thread: %s", strerror(error));
    s->running = !rc && !error;
    if (!s->running)
        snprintf(s->why, sizeof s->why, "%s", fail_message());
    return NULL;
}

static int start_one(struct starter *t)
{
    pthread_t thread;
    t->s = mem_alloc(1, sizeof *t->s);
    if (!t->s)
        return -1;
    int error = pthread_create(&thread, NULL, start, t);
    if (error)
        return fail("server: thread: %s", strerror(error));
    pthread_join(thread, NULL);
    return t->s->running ? 0 : fail("%s", t->s->why);
}

int servers_open(struct servers **out, struct cluster *c, int count, bool echo,
                 int threads, const char *host, const char *iface,
                 struct sync_servers *where)
{
    char mine[MESSAGE_ENDPOINT] = "";
    struct starter t = {.config = {.transport = &message_zmq,
                                   .curve = "",
                                   .index = c->rank,
                                   .servers = count,
                                   .world = c->world,
                                   .threads = threads,
                                   .timeout_s = c->timeout_s},
                        .host = host,
                        .iface = iface,
                        .echo = echo};
    char(*all)[MESSAGE_ENDPOINT] = mem_alloc((size_t)c->world, sizeof *all);
    int rc = all ? 0 : -1;
    if (!rc && c->rank < count) {
        rc = start_one(&t);
        if (!rc)
            memcpy(mine, t.s->endpoint, sizeof mine);
    }
    *out = t.s;
    if (!rc)
        rc = cluster_allgather(c, mine, all, sizeof mine);
    *where = (struct sync_servers){.count = count};
    for (int i = 0; !rc && i < count; i++) {
        size_t at = strlen(where->endpoints);
        rc = text_into(where->endpoints + at, sizeof where->endpoints - at,
                       "%s%s", i ? "," : "", all[i]);
    }
    mem_free(all);
    return rc;
}

int servers_close(struct servers **out, bool failed)
{
    struct servers *s = *out;
    if (!s)
        return 0;
    if (s->running && s->echo)
        echo_stop(s->echo);
    else if (s->running && failed)
        server_stop(s->server);
    if (s->running)
        pthread_join(s->thread, NULL);
    int rc = !failed && *s->why ? fail("%s", s->why) : 0;
    server_close(&s->server);
    echo_close(&s->echo);
    mem_free(s);
    *out = NULL;
    return rc;
}
