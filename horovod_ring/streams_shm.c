// streams_shm.c - links between all members of one host: for each sender, a
// ring buffer in the receiver's shared memory.

#include "horovod_ring/streams.h"

#include "horovod_ring/regions.h"

#include "base/base.h"
#include "cluster/cluster.h"

#include <stdatomic.h>
#include <string.h>

// Bytes. A line is two cache lines of most processors, or one of Apple's.
enum { LINE = 128, RING_BYTES = 1 << 17 };

// The sender stores `written` after the bytes, so the receiver that loads it
// sees them. The receiver stores `read` after it has copied bytes, so the
// sender that loads it may overwrite them.
struct byte_ring {                           // from one sender to one receiver
    _Alignas(LINE) _Atomic uint64_t written; // bytes so far
    _Alignas(LINE) _Atomic uint64_t read;
    _Alignas(LINE) char bytes[RING_BYTES];
};

static struct byte_ring *ring_of(const struct streams *p, int from, int to)
{
    struct region *const *all = p->state;
    return (struct byte_ring *)(*all)->at[to] + from;
}

static int rings_open(struct streams *p, struct cluster *c,
                      const struct streams_config *config)
{
    CHECK(config->who == STREAMS_ALL);
    size_t bytes = (size_t)p->world * sizeof(struct byte_ring);
    return regions_add(p->state, c, NULL, p->name, NULL, bytes);
}

static ssize_t rings_send(struct streams *p, int to, const struct iovec *v,
                          int n)
{
    struct byte_ring *t = ring_of(p, p->rank, to);
    uint64_t written = atomic_load(&t->written), start = written;
    uint64_t end = atomic_load(&t->read) + RING_BYTES;
    for (int i = 0; i < n; i++) {
        const char *from = v[i].iov_base;
        for (size_t left = v[i].iov_len; left > 0 && written < end;) {
            size_t at = written % RING_BYTES, len = RING_BYTES - at;
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

static ssize_t rings_recv(struct streams *p, int from, void *at, size_t bytes)
{
    struct byte_ring *t = ring_of(p, from, p->rank);
    uint64_t read = atomic_load(&t->read), start = read;
    uint64_t end = atomic_load(&t->written);
    char *to = at;
    while (bytes > 0 && read < end) {
        size_t skip = read % RING_BYTES, len = RING_BYTES - skip;
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

bool streams_shm_can_move(const struct streams *p)
{
    for (int r = 0; r < p->n; r++) {
        unsigned wants = p->links[r].wants;
        struct byte_ring *to = ring_of(p, p->rank, r),
                         *from = ring_of(p, r, p->rank);
        if (wants & STREAMS_OUT &&
            atomic_load(&to->written) < atomic_load(&to->read) + RING_BYTES)
            return true;
        if (wants & STREAMS_IN &&
            atomic_load(&from->read) < atomic_load(&from->written))
            return true;
    }
    return false;
}

static void rings_close(struct streams *p)
{
    regions_close(p->state);
}

const struct streams_ops streams_shm = {
    .state_size = sizeof(struct region *),
    .open = rings_open,
    .send = rings_send,
    .recv = rings_recv,
    .close = rings_close,
};
