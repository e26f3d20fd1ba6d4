// meet.c - members of a group find each other over TCP.

#include "horovod_ring/meet.h"

#include "horovod_ring/tcp.h"

#include "base/base.h"
#include "cluster/cluster.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

struct hello {
    char magic[8]; // "lockring"
    uint64_t token;
    uint32_t version;
    int32_t rank;
};

enum { VERSION = 1 };

struct place { // where a member listens; published
    struct sockaddr_in address;
    uint64_t token;
    char host[64];
};

static struct hello hello_make(uint64_t token, int rank)
{
    struct hello h = {.token = token, .version = VERSION, .rank = rank};
    memcpy(h.magic, "lockring", sizeof h.magic);
    return h;
}

static int place_make(const char *name, struct place *mine, int listener,
                      const struct sockaddr_in *address)
{
    socklen_t len = sizeof mine->address;
    *mine = (struct place){.address = *address};
    if (getsockname(listener, (struct sockaddr *)&mine->address, &len))
        return fail("%s: getsockname: %s", name, strerror(errno));
    if (getrandom(&mine->token, sizeof mine->token, 0) != sizeof mine->token)
        return fail("%s: getrandom: %s", name, strerror(errno));
    gethostname(mine->host, sizeof mine->host - 1);
    return 0;
}

// Loopback serves one host only.
static int check_hosts(const char *name, int world, const struct place *all)
{
    for (int r = 1; r < world; r++)
        if (strcmp(all[r].host, all[0].host) &&
            ntohl(all[r].address.sin_addr.s_addr) == INADDR_LOOPBACK)
            return fail("%s: workers run on %s and %s but meet on loopback; "
                        "try: iface=NAME or iface=10.0.0.0/24",
                        name, all[0].host, all[r].host);
    return 0;
}

static int call(const char *name, int rank, int to, const struct place *place,
                uint64_t deadline)
{
    int fd = tcp_connect(&place->address, deadline);
    if (fd < 0)
        return fail("%s: rank %d on %s: %s", name, to, place->host,
                    fail_message());
    struct hello h = hello_make(place->token, rank);
    if (send(fd, &h, sizeof h, MSG_NOSIGNAL) == sizeof h)
        return fd;
    close(fd);
    return fail("%s: rank %d on %s closed at once", name, to, place->host);
}

// The first member that we still expect; -1: none.
static int expected(const struct cluster *c, meet_rule *calls,
                    const int *accepted)
{
    for (int r = 0; r < c->world; r++)
        if (r != c->rank && calls(r, c->rank, c->world) && accepted[r] < 0)
            return r;
    return -1;
}

// Accept until all have shown our token that shall call.
static int accept_all(const struct cluster *c, const char *name, int listener,
                      uint64_t token, uint64_t deadline, meet_rule *calls,
                      int *accepted)
{
    for (int next; (next = expected(c, calls, accepted)) >= 0;) {
        struct hello got;
        int fd = tcp_accept(listener, deadline);
        if (fd < 0)
            return fail("%s: rank %d did not connect: %s", name, next,
                        fail_message());
        uint64_t soon = now_ns() + (deadline - now_ns()) / 4;
        bool knows = !tcp_read(fd, &got, sizeof got, soon);
        int r = knows ? got.rank : -1;
        struct hello want = hello_make(token, r);
        if (knows && !memcmp(&got, &want, sizeof want) && r >= 0 &&
            r < c->world && r != c->rank && calls(r, c->rank, c->world) &&
            accepted[r] < 0) {
            accepted[r] = fd;
            continue;
        }
        log_line("%s: turned a stranger away", name);
        close(fd);
    }
    return 0;
}

static int meet_all(struct cluster *c, const char *name, int listener,
                    const struct sockaddr_in *address, struct place *all,
                    meet_rule *calls, int *called, int *accepted)
{
    struct place mine;
    if (place_make(name, &mine, listener, address) ||
        cluster_allgather(c, &mine, all, sizeof mine) ||
        check_hosts(name, c->world, all))
        return -1;
    uint64_t deadline = now_ns() + (uint64_t)(c->timeout_s * 1e9);
    for (int i = 1; i < c->world; i++) {
        int r = (c->rank + i) % c->world; // not all call the same one at once
        if (!calls(c->rank, r, c->world))
            continue;
        called[r] = call(name, c->rank, r, &all[r], deadline);
        if (called[r] < 0)
            return -1;
    }
    return accept_all(c, name, listener, mine.token, deadline, calls, accepted);
}

int meet(struct cluster *c, const char *name, const char *iface,
         meet_rule *calls, int *called, int *accepted)
{
    struct sockaddr_in address;
    struct place *all = mem_alloc((size_t)c->world, sizeof *all);
    int rc = -1, listener = -1;
    for (int r = 0; r < c->world; r++)
        called[r] = accepted[r] = -1;
    if (!all || tcp_address(&address, iface))
        goto free_all;
    listener = tcp_listen(&address);
    if (listener < 0)
        goto free_all;
    rc = meet_all(c, name, listener, &address, all, calls, called, accepted);
    close(listener);
free_all:
    mem_free(all);
    return rc;
}
