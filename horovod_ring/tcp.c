// tcp.c - the neighbours of a ring over TCP.
//
// Every worker listens on a port that the system picks, tells all others where
// through the cluster, connects to its right and accepts its left. Who connects
// must know the token of the one it meets, which only travels through the
// cluster: a stranger is turned away.

#include "horovod_ring/tcp.h"
#include "horovod_ring/transport.h"

#include "base/base.h"
#include "cluster/cluster.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

struct tcp {
    bool open;
    int fd[2]; // to the LEFT and the RIGHT
    int event; // wake() writes to it
};

struct hello {
    char magic[8]; // "lockring"
    uint64_t token;
    uint32_t version;
    int32_t rank;
};

enum { VERSION = 1 };

struct place { // where a worker listens; published
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

static int place_make(const struct transport *t, struct place *mine,
                      int listener, const struct sockaddr_in *address)
{
    socklen_t len = sizeof mine->address;
    *mine = (struct place){.address = *address};
    if (getsockname(listener, (struct sockaddr *)&mine->address, &len))
        return fail("%s: getsockname: %s", t->name, strerror(errno));
    if (getrandom(&mine->token, sizeof mine->token, 0) != sizeof mine->token)
        return fail("%s: getrandom: %s", t->name, strerror(errno));
    gethostname(mine->host, sizeof mine->host - 1);
    return 0;
}

// Loopback serves one host only.
static int check_hosts(const struct transport *t, const struct place *all)
{
    for (int r = 1; r < t->world; r++)
        if (strcmp(all[r].host, all[0].host) &&
            ntohl(all[r].address.sin_addr.s_addr) == INADDR_LOOPBACK)
            return fail("%s: workers run on %s and %s but meet on loopback; "
                        "try: iface=NAME or iface=10.0.0.0/24",
                        t->name, all[0].host, all[r].host);
    return 0;
}

// Accept until somebody shows our token and is the left neighbour.
static int meet_left(struct transport *t, int listener, uint64_t token,
                     uint64_t deadline)
{
    struct hello want = hello_make(token, t->peer[LEFT]), got;
    for (;;) {
        int fd = tcp_accept(listener, deadline);
        if (fd < 0)
            return fail("%s: rank %d did not connect: %s", t->name,
                        t->peer[LEFT], fail_message());
        uint64_t soon = now_ns() + (deadline - now_ns()) / 4;
        if (!tcp_read(fd, &got, sizeof got, soon) &&
            !memcmp(&got, &want, sizeof want))
            return fd;
        log_line("%s: turned a stranger away", t->name);
        close(fd);
    }
}

static int meet_right(struct transport *t, const struct place *right,
                      uint64_t deadline)
{
    int fd = tcp_connect(&right->address, deadline);
    if (fd < 0)
        return fail("%s: rank %d on %s: %s", t->name, t->peer[RIGHT],
                    right->host, fail_message());
    struct hello h = hello_make(right->token, t->rank);
    if (send(fd, &h, sizeof h, MSG_NOSIGNAL) == sizeof h)
        return fd;
    close(fd);
    return fail("%s: rank %d on %s closed at once", t->name, t->peer[RIGHT],
                right->host);
}

static int meet(struct transport *t, struct cluster *c, int listener,
                const struct sockaddr_in *address, struct place *all)
{
    struct tcp *p = t->state;
    struct place mine;
    if (place_make(t, &mine, listener, address) ||
        cluster_allgather(c, &mine, all, sizeof mine) || check_hosts(t, all))
        return -1;
    uint64_t deadline = now_ns() + (uint64_t)(c->timeout_s * 1e9);
    p->fd[RIGHT] = meet_right(t, &all[t->peer[RIGHT]], deadline);
    if (p->fd[RIGHT] < 0)
        return -1;
    p->fd[LEFT] = meet_left(t, listener, mine.token, deadline);
    return p->fd[LEFT] < 0 ? -1 : 0;
}

static int tcp_open(struct transport *t, struct cluster *c,
                    const struct transport_config *config)
{
    struct tcp *p = t->state;
    *p = (struct tcp){.open = true, .fd = {-1, -1}, .event = -1};
    p->event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (p->event < 0)
        return fail("%s: eventfd: %s", t->name, strerror(errno));
    struct sockaddr_in address;
    struct place *all = mem_alloc((size_t)t->world, sizeof *all);
    int rc = -1, listener = -1;
    if (!all || tcp_address(&address, config->iface))
        goto free_all;
    listener = tcp_listen(&address);
    if (listener < 0)
        goto free_all;
    rc = meet(t, c, listener, &address, all);
    close(listener);
free_all:
    mem_free(all);
    return rc;
}

static ssize_t lost(const struct transport *t, enum side side, ssize_t n)
{
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return 0;
    return fail("%s: rank %d closed%s%s", t->name, t->peer[side],
                n < 0 ? ": " : "", n < 0 ? strerror(errno) : "");
}

static ssize_t tcp_send(struct transport *t, enum side to,
                        const struct iovec *v, int n)
{
    const struct tcp *p = t->state;
    struct msghdr m = {.msg_iov = (struct iovec *)v, .msg_iovlen = (size_t)n};
    ssize_t sent = sendmsg(p->fd[to], &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent > 0 ? sent : lost(t, to, sent);
}

static ssize_t tcp_recv(struct transport *t, enum side from, void *buf,
                        size_t bytes)
{
    const struct tcp *p = t->state;
    ssize_t got = recv(p->fd[from], buf, bytes, MSG_DONTWAIT);
    return got > 0 ? got : lost(t, from, got);
}

static int tcp_wait(struct transport *t, unsigned wants, int timeout_ms)
{
    const struct tcp *p = t->state;
    short left = wants & WANT_RECV_LEFT ? POLLIN : 0;
    short right = (short)((wants & WANT_RECV_RIGHT ? POLLIN : 0) |
                          (wants & WANT_SEND_RIGHT ? POLLOUT : 0));
    // A side of which nothing is wanted may have closed: do not look at it.
    struct pollfd fds[] = {{.fd = p->event, .events = POLLIN},
                           {.fd = left ? p->fd[LEFT] : -1, .events = left},
                           {.fd = right ? p->fd[RIGHT] : -1, .events = right}};
    if (poll(fds, 3, timeout_ms) < 0 && errno != EINTR)
        return fail("%s: poll: %s", t->name, strerror(errno));
    uint64_t count;
    if (fds[0].revents && read(p->event, &count, sizeof count) < 0 &&
        errno != EAGAIN)
        return fail("%s: eventfd: %s", t->name, strerror(errno));
    return 0;
}

static void tcp_wake(struct transport *t)
{
    const struct tcp *p = t->state;
    uint64_t one = 1;
    CHECK(write(p->event, &one, sizeof one) == sizeof one);
}

static void tcp_close(struct transport *t)
{
    struct tcp *p = t->state;
    if (!p || !p->open)
        return;
    for (int i = 0; i < 2; i++)
        if (p->fd[i] >= 0)
            close(p->fd[i]);
    if (p->event >= 0)
        close(p->event);
}

const struct transport_ops transport_tcp = {
    .name = "tcp",
    .help = "sockets, on loopback or iface=",
    .state_size = sizeof(struct tcp),
    .open = tcp_open,
    .send = tcp_send,
    .recv = tcp_recv,
    .wait = tcp_wait,
    .wake = tcp_wake,
    .close = tcp_close,
};
