// streams_tcp.c - links over TCP: a connection for each.

#include "horovod_ring/streams.h"

#include "horovod_ring/meet.h"
#include "horovod_ring/tcp.h"

#include "base/base.h"
#include "cluster/cluster.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct tcp {
    int *fd;               // 1 + a descriptor, by link; 0: none
    int event;             // 1 + a descriptor; wake() writes to it
    struct pollfd *polled; // places for a wait
};

static int connect_all(struct streams *p, struct cluster *c, const char *iface)
{
    struct tcp *s = p->state;
    int *fds = mem_alloc(2 * (size_t)p->world, sizeof *fds);
    if (!fds)
        return -1;
    int *called = fds, *accepted = fds + p->world;
    int rc = meet(c, p->name, iface, p->who, called, accepted);
    for (int k = 0; k < p->n; k++) {
        const struct streams_link *l = &p->links[k];
        s->fd[k] = 1 + (l->calls ? called : accepted)[l->member];
    }
    mem_free(fds);
    return rc;
}

static int links_open(struct streams *p, struct cluster *c,
                      const struct streams_config *config)
{
    struct tcp *s = p->state;
    s->event = 1 + eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (s->event == 0)
        return fail("%s: eventfd: %s", p->name, strerror(errno));
    s->fd = mem_alloc((size_t)p->n, sizeof *s->fd);
    s->polled = mem_alloc(1 + (size_t)(2 + c->world), sizeof *s->polled);
    return s->fd && s->polled ? connect_all(p, c, config->iface) : -1;
}

static ssize_t links_send(struct streams *p, int link, const struct iovec *v,
                          int n)
{
    const struct tcp *s = p->state;
    return tcp_send_some(s->fd[link] - 1, v, n, p->name,
                         streams_rank(p, p->links[link].member));
}

static ssize_t links_recv(struct streams *p, int link, void *at, size_t bytes)
{
    const struct tcp *s = p->state;
    return tcp_recv_some(s->fd[link] - 1, at, bytes, p->name,
                         streams_rank(p, p->links[link].member));
}

// Only links that are wanted are polled: another one may have closed already.
static int add_wanted(const struct streams *p, struct pollfd *to)
{
    const struct tcp *s = p->state;
    int n = 0;
    for (int k = 0; k < p->n; k++) {
        unsigned wants = p->links[k].wants;
        short events =
            (short)((wants & STREAMS_OUT ? POLLOUT : 0) |
                    (wants & (STREAMS_IN | STREAMS_HEAR) ? POLLIN : 0));
        if (events)
            to[n++] = (struct pollfd){.fd = s->fd[k] - 1, .events = events};
    }
    return n;
}

static int links_wait(struct streams *p, int timeout_ms)
{
    const struct tcp *s = p->state;
    struct pollfd *fds = s->polled;
    int n = 1;
    fds[0] = (struct pollfd){.fd = s->event - 1, .events = POLLIN};
    n += add_wanted(p, fds + n);
    if (p->beside)
        n += add_wanted(p->beside, fds + n);
    if (poll(fds, (nfds_t)n, timeout_ms) < 0 && errno != EINTR)
        return fail("%s: poll: %s", p->name, strerror(errno));
    uint64_t count;
    if (fds[0].revents && read(fds[0].fd, &count, sizeof count) < 0 &&
        errno != EAGAIN)
        return fail("%s: eventfd: %s", p->name, strerror(errno));
    return 0;
}

static void links_wake(struct streams *p)
{
    const struct tcp *s = p->state;
    uint64_t one = 1;
    CHECK(write(s->event - 1, &one, sizeof one) == sizeof one);
}

static void links_close(struct streams *p)
{
    struct tcp *s = p->state;
    for (int k = 0; s->fd && k < p->n; k++)
        if (s->fd[k] > 0)
            close(s->fd[k] - 1);
    if (s->event > 0)
        close(s->event - 1);
    mem_free(s->fd);
    mem_free(s->polled);
}

const struct streams_ops streams_tcp = {
    .state_size = sizeof(struct tcp),
    .open = links_open,
    .send = links_send,
    .recv = links_recv,
    .wait = links_wait,
    .wake = links_wake,
    .close = links_close,
};
