// streams_tcp.c - links over TCP: a connection for each.

#include "horovod_ring/streams.h"

#include "horovod_ring/meet.h"

#include "base/base.h"
#include "cluster/cluster.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

struct tcp {
    int *fd;               // 1 + a descriptor, by link; 0: none
    int event;             // 1 + a descriptor; wake() writes to it
    struct pollfd *polled; // places for a wait
};

static int links_open(struct streams *p, struct cluster *c,
                      const struct streams_config *config)
{
    struct tcp *s = p->state;
    s->event = 1 + eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (s->event == 0)
        return fail("%s: eventfd: %s", p->name, strerror(errno));
    s->fd = mem_alloc((size_t)p->n, sizeof *s->fd);
    s->polled = mem_alloc(1 + (size_t)(2 + c->world), sizeof *s->polled);
    return s->fd && s->polled ? meet(p, c, config->iface, s->fd) : -1;
}

// n: what sendmsg() or recv() has returned for a link.
static ssize_t moved(const struct streams *p, int link, ssize_t n)
{
    if (n > 0)
        return n;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return 0;
    return fail("%s: rank %d closed%s%s", p->name,
                streams_rank(p, p->links[link].member), n < 0 ? ": " : "",
                n < 0 ? strerror(errno) : "");
}

static ssize_t links_send(struct streams *p, int link, const struct iovec *v,
                          int n)
{
    const struct tcp *s = p->state;
    struct msghdr m = {.msg_iov = (struct iovec *)v, .msg_iovlen = (size_t)n};
    return moved(p, link,
                 sendmsg(s->fd[link] - 1, &m, MSG_NOSIGNAL | MSG_DONTWAIT));
}

static ssize_t links_recv(struct streams *p, int link, void *at, size_t bytes)
{
    const struct tcp *s = p->state;
    return moved(p, link, recv(s->fd[link] - 1, at, bytes, MSG_DONTWAIT));
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
