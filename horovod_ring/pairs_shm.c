// pairs_shm.c - streams between all pairs of members of one host: a ring of
// bytes in the receiver's shared memory for each sender.

#include "horovod_ring/pairs.h"

#include "horovod_ring/regions.h"

#include "base/base.h"
#include "cluster/cluster.h"

#include <stdatomic.h>
#include <string.h>

enum { LINE = 64, TUBE = 1 << 17 }; // bytes

struct tube {                                // from one sender to one receiver
    _Alignas(LINE) _Atomic uint64_t written; // bytes so far
    _Alignas(LINE) _Atomic uint64_t read;
    _Alignas(LINE) char bytes[TUBE];
};

static struct tube *tube_of(const struct pairs *p, int from, int to)
{
    struct region *const *all = p->state;
    return (struct tube *)(*all)->at[to] + from;
}

static int tubes_open(struct pairs *p, struct cluster *c, const char *iface)
{
    (void)iface;
    size_t bytes = (size_t)p->world * sizeof(struct tube);
    return regions_add(p->state, c, NULL, p->name, NULL, bytes);
}

static ssize_t tubes_send(struct pairs *p, int to, const struct iovec *v, int n)
{
    struct tube *t = tube_of(p, p->rank, to);
    uint64_t written = atomic_load(&t->written), start = written;
    uint64_t end = atomic_load(&t->read) + TUBE;
    for (int i = 0; i < n; i++) {
        const char *from = v[i].iov_base;
        for (size_t left = v[i].iov_len; left > 0 && written < end;) {
            size_t at = written % TUBE, len = TUBE - at;
            len = len < end - written ? len : end - written;
            len = len < left ? len : left;
            memcpy(t->bytes + at, from, len);
            from += len;
            left -= len;
            written += len;
        }
    }
    if (written > start)
        atomic_store(&t->written, written);
    return (ssize_t)(written - start);
}

static ssize_t tubes_recv(struct pairs *p, int from, void *at, size_t bytes)
{
    struct tube *t = tube_of(p, from, p->rank);
    uint64_t read = atomic_load(&t->read), start = read;
    uint64_t end = atomic_load(&t->written);
    char *to = at;
    while (bytes > 0 && read < end) {
        size_t skip = read % TUBE, len = TUBE - skip;
        len = len < end - read ? len : end - read;
        len = len < bytes ? len : bytes;
        memcpy(to, t->bytes + skip, len);
        to += len;
        bytes -= len;
        read += len;
    }
    if (read > start)
        atomic_store(&t->read, read);
    return (ssize_t)(read - start);
}

bool pairs_shm_can_move(const struct pairs *p)
{
    for (int r = 0; r < p->world; r++) {
        if (r == p->rank)
            continue;
        const struct pair_line *in = &p->lines[IN][r];
        struct tube *to = tube_of(p, p->rank, r),
                    *from = tube_of(p, r, p->rank);
        if (pairs_wants(p, OUT, r) &&
            atomic_load(&to->written) < atomic_load(&to->read) + TUBE)
            return true;
        if (in->done < in->posted &&
            atomic_load(&from->read) < atomic_load(&from->written))
            return true;
    }
    return false;
}

static void tubes_close(struct pairs *p)
{
    regions_close(p->state);
}

const struct pairs_ops pairs_shm = {
    .state_size = sizeof(struct region *),
    .open = tubes_open,
    .send = tubes_send,
    .recv = tubes_recv,
    .close = tubes_close,
};
