// pairs_tcp.c - streams between all pairs of members over TCP.
//
// A member connects to those of lower rank and accepts the others.

#include "horovod_ring/pairs.h"

#include "horovod_ring/meet.h"
#include "horovod_ring/tcp.h"

#include "base/base.h"
#include "cluster/cluster.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

struct streams {
    int *fd;          // by rank
    uint32_t *events; // by rank: the epoll events that are watched
    int watch;        // 1 + an epoll descriptor
};

static bool calls_lower(int from, int to, int world)
{
    (void)world;
    return to < from;
}

static int watch_all(struct pairs *p)
{
    struct streams *s = p->state;
    int watch = epoll_create1(EPOLL_CLOEXEC);
    if (watch < 0)
        return fail("%s: epoll: %s", p->name, strerror(errno));
    s->watch = watch + 1;
    for (int r = 0; r < p->world; r++) {
        struct epoll_event e = {.data.fd = r};
        if (r != p->rank && epoll_ctl(watch, EPOLL_CTL_ADD, s->fd[r], &e))
            return fail("%s: epoll: %s", p->name, strerror(errno));
    }
    return 0;
}

static int streams_open(struct pairs *p, struct cluster *c, const char *iface)
{
    struct streams *s = p->state;
    size_t world = (size_t)p->world;
    int *accepted = mem_alloc(world, sizeof *accepted);
    s->events = mem_alloc(world, sizeof *s->events);
    s->fd = accepted ? mem_alloc(world, sizeof *s->fd) : NULL;
    int rc = s->fd && s->events
                 ? meet(c, p->name, iface, calls_lower, s->fd, accepted)
                 : -1;
    for (int r = 0; s->fd && r < p->world; r++)
        s->fd[r] = s->fd[r] < 0 ? accepted[r] : s->fd[r];
    mem_free(accepted);
    return rc || watch_all(p) ? -1 : 0;
}

static ssize_t streams_send(struct pairs *p, int to, const struct iovec *v,
                            int n)
{
    const struct streams *s = p->state;
    return tcp_send_some(s->fd[to], v, n, p->name,
                         cluster_job_rank(p->ranks, to));
}

static ssize_t streams_recv(struct pairs *p, int from, void *at, size_t bytes)
{
    const struct streams *s = p->state;
    return tcp_recv_some(s->fd[from], at, bytes, p->name,
                         cluster_job_rank(p->ranks, from));
}

int pairs_tcp_watch(struct pairs *p)
{
    struct streams *s = p->state;
    for (int r = 0; r < p->world; r++) {
        if (r == p->rank)
            continue;
        uint32_t events = (pairs_wants(p, OUT, r) ? EPOLLOUT : 0) |
                          (pairs_wants(p, IN, r) ? EPOLLIN : 0);
        struct epoll_event e = {.events = events, .data.fd = r};
        if (events == s->events[r])
            continue;
        if (epoll_ctl(s->watch - 1, EPOLL_CTL_MOD, s->fd[r], &e))
            return fail("%s: epoll: %s", p->name, strerror(errno));
        s->events[r] = events;
    }
    p->listens = true;
    return s->watch - 1;
}

static void streams_close(struct pairs *p)
{
    struct streams *s = p->state;
    for (int r = 0; s->fd && r < p->world; r++)
        if (r != p->rank && s->fd[r] >= 0)
            close(s->fd[r]);
    if (s->watch > 0)
        close(s->watch - 1);
    mem_free(s->fd);
    mem_free(s->events);
}

const struct pairs_ops pairs_tcp = {
    .state_size = sizeof(struct streams),
    .open = streams_open,
    .send = streams_send,
    .recv = streams_recv,
    .close = streams_close,
};
