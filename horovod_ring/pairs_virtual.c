// pairs_virtual.c - messages between pairs of members of a virtual cluster.

#include "horovod_ring/pairs_virtual.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "cluster/virtual_cluster.h"
#include "virtual/line.h"

struct lines {
    struct virtual_line *of[2];  // by direction, by rank
    struct virtual_line **watch; // the result of pairs_virtual_watch()
};

static size_t payload(const void *head)
{
    const struct pair_head *h = head;
    return h->kind == PAIR_MESSAGE ? h->bytes : 0;
}

static int lines_open(struct pairs *p, struct cluster *c, const char *iface)
{
    struct lines *s = p->state;
    struct virtual_rank *rank = cluster_virtual_rank(c);
    size_t world = (size_t)p->world;
    int stream = virtual_stream(rank);
    (void)iface;
    s->watch = mem_alloc(2 * world, sizeof *s->watch);
    for (int d = 0; d < 2; d++) {
        s->of[d] = mem_alloc(world, sizeof *s->of[d]);
        for (int r = 0; s->of[d] && r < p->world; r++)
            s->of[d][r] =
                (struct virtual_line){.rank = rank,
                                      .peer = r,
                                      .stream = stream,
                                      .head_bytes = sizeof(struct pair_head),
                                      .payload = payload};
    }
    return s->watch && s->of[IN] && s->of[OUT] ? 0 : -1;
}

static ssize_t lines_send(struct pairs *p, int to, const struct iovec *v, int n)
{
    const struct lines *s = p->state;
    return virtual_line_send(&s->of[OUT][to], v, n);
}

static ssize_t lines_recv(struct pairs *p, int from, void *at, size_t bytes)
{
    const struct lines *s = p->state;
    return virtual_line_recv(&s->of[IN][from], at, bytes);
}

static bool is_pending(const struct pairs *p, enum direction d, int rank)
{
    const struct pair_line *l = &p->lines[d][rank];
    return l->done < l->posted;
}

int pairs_virtual_watch(struct pairs *p, struct virtual_line *const **lines)
{
    struct lines *s = p->state;
    int n = 0;
    for (int r = 0; r < p->world; r++)
        for (int d = 0; d < 2; d++)
            if (is_pending(p, (enum direction)d, r))
                s->watch[n++] = &s->of[d][r];
    for (int r = 0; r < p->world; r++) {
        if (!is_pending(p, OUT, r) || is_pending(p, IN, r) ||
            p->lines[IN][r].closed)
            continue;
        s->watch[n++] = &s->of[IN][r];
        if (virtual_line_listen(&s->of[IN][r]))
            return -1;
    }
    p->listens = true;
    *lines = s->watch;
    return n;
}

static void lines_close(struct pairs *p)
{
    struct lines *s = p->state;
    for (int d = 0; d < 2; d++) {
        for (int r = 0; s->of[d] && r < p->world; r++)
            virtual_line_close(&s->of[d][r]);
        mem_free(s->of[d]);
    }
    mem_free(s->watch);
}

const struct pairs_ops pairs_virtual = {
    .state_size = sizeof(struct lines),
    .open = lines_open,
    .send = lines_send,
    .recv = lines_recv,
    .close = lines_close,
};
