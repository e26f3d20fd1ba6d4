// tcp.c - the neighbours of a ring over TCP.
//
// Every worker connects to its right neighbour and accepts its left (meet.h).

#include "horovod_ring/tcp.h"
#include "horovod_ring/meet.h"
#include "horovod_ring/transport.h"

#include "base/base.h"
#include "cluster/cluster.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct tcp {
    bool open;
    int fd[2]; // to the LEFT and the RIGHT
    int event; // wake() writes to it
};

static bool calls_right(int from, int to, int world)
{
    return to == (from + 1) % world;
}

static int tcp_open(struct transport *t, struct cluster *c,
                    const struct transport_config *config)
{
    struct tcp *p = t->state;
    *p = (struct tcp){.open = true, .fd = {-1, -1}, .event = -1};
    p->event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (p->event < 0)
        return fail("%s: eventfd: %s", t->name, strerror(errno));
    int *fds = mem_alloc(2 * (size_t)t->world, sizeof *fds);
    if (!fds)
        return -1;
    int *called = fds, *accepted = fds + t->world;
    int rc = meet(c, t->name, config->iface, calls_right, called, accepted);
    p->fd[RIGHT] = called[t->peer[RIGHT]];
    p->fd[LEFT] = accepted[t->peer[LEFT]];
    mem_free(fds);
    return rc;
}

static ssize_t tcp_send(struct transport *t, enum side to,
                        const struct iovec *v, int n)
{
    const struct tcp *p = t->state;
    return tcp_send_some(p->fd[to], v, n, t->name,
                         cluster_job_rank(t->ranks, t->peer[to]));
}

static ssize_t tcp_recv(struct transport *t, enum side from, void *buf,
                        size_t bytes)
{
    const struct tcp *p = t->state;
    return tcp_recv_some(p->fd[from], buf, bytes, t->name,
                         cluster_job_rank(t->ranks, t->peer[from]));
}

static int tcp_wait(struct transport *t, unsigned wants, int timeout_ms)
{
    const struct tcp *p = t->state;
    short left = wants & WANT_RECV_LEFT ? POLLIN : 0;
    short right = (short)((wants & WANT_RECV_RIGHT ? POLLIN : 0) |
                          (wants & WANT_SEND_RIGHT ? POLLOUT : 0));
    // Poll only sides that are wanted: another one may have closed already.
    struct pollfd fds[] = {{.fd = p->event, .events = POLLIN},
                           {.fd = left ? p->fd[LEFT] : -1, .events = left},
                           {.fd = right ? p->fd[RIGHT] : -1, .events = right},
                           {.fd = t->also, .events = POLLIN}};
    if (poll(fds, 4, timeout_ms) < 0 && errno != EINTR)
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
    .state_size = sizeof(struct tcp),
    .open = tcp_open,
    .send = tcp_send,
    .recv = tcp_recv,
    .wait = tcp_wait,
    .wake = tcp_wake,
    .close = tcp_close,
};
