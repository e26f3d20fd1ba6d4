// streams_mpi.c - moves the messages between a ring's neighbours over MPI.
//
// A call of send() becomes one message. Two messages to the right may be under
// way, so that the latency of one overlaps with the bytes of the other;
// receives for them are posted ahead. Without payload only the first piece of a
// message, its head, is real. The rest is on pages that all ranks share, which
// SimGrid neither copies nor touches.

#include "simulate/streams_mpi.h"

#include "base/base.h"
#include "cluster/cluster.h"

#include <mpi.h>
#include <string.h>

enum { OUT_SLOTS = 2, IN_SLOTS = 3, PAGE = 4096, TAG = 1 };

struct slot {
    char *data;
    int bytes; // that came in
    size_t at; // how many of these the caller has taken
};

struct lane {
    bool payload;
    size_t most; // bytes of a message
    int slots;   // messages under way to the right
    struct slot out[OUT_SLOTS], in[IN_SLOTS];
    MPI_Request sending[OUT_SLOTS], receiving[IN_SLOTS];
    unsigned long sent, taken;
};

static char *slot_alloc(const struct lane *l)
{
    size_t shared[2] = {PAGE, 2 * PAGE};
    if (l->payload)
        return mem_alloc(l->most, 1);
    return SMPI_PARTIAL_SHARED_MALLOC(shared[1], shared, 1);
}

static void slot_free(const struct lane *l, struct slot *s)
{
    if (l->payload)
        mem_free(s->data);
    else if (s->data)
        SMPI_SHARED_FREE(s->data);
}

static void post(struct streams *p, int i)
{
    struct lane *l = p->state;
    MPI_Irecv(l->in[i].data, (int)l->most, MPI_BYTE,
              streams_rank(p, p->links[LEFT].member), TAG, MPI_COMM_WORLD,
              &l->receiving[i]);
}

static int lane_open(struct streams *p, struct cluster *c,
                     const struct streams_config *config)
{
    struct lane *l = p->state;
    (void)c;
    for (int i = 0; i < OUT_SLOTS; i++)
        l->sending[i] = MPI_REQUEST_NULL;
    for (int i = 0; i < IN_SLOTS; i++)
        l->receiving[i] = MPI_REQUEST_NULL;
    l->payload = config->payload;
    l->most = config->message;
    l->slots = p->ops == &streams_mpi_stream ? 1 : OUT_SLOTS;
    for (int i = 0; i < l->slots; i++)
        if (!(l->out[i].data = slot_alloc(l)))
            return -1;
    for (int i = 0; i < IN_SLOTS; i++) {
        if (!(l->in[i].data = slot_alloc(l)))
            return -1;
        post(p, i);
    }
    return 0;
}

static ssize_t lane_send(struct streams *p, int to, const struct iovec *v,
                         int n)
{
    struct lane *l = p->state;
    int i = (int)(l->sent % (unsigned long)l->slots);
    if (to != RIGHT || l->sending[i] != MPI_REQUEST_NULL)
        return 0;
    size_t bytes = 0;
    for (int k = 0; k < n; k++) {
        CHECK(bytes + v[k].iov_len <= l->most);
        if (k == 0 || l->payload)
            memcpy(l->out[i].data + bytes, v[k].iov_base, v[k].iov_len);
        bytes += v[k].iov_len;
    }
    MPI_Isend(l->out[i].data, (int)bytes, MPI_BYTE,
              streams_rank(p, p->links[RIGHT].member), TAG, MPI_COMM_WORLD,
              &l->sending[i]);
    l->sent++;
    return (ssize_t)bytes;
}

static ssize_t lane_recv(struct streams *p, int from, void *at, size_t bytes)
{
    struct lane *l = p->state;
    int i = (int)(l->taken % IN_SLOTS);
    struct slot *s = &l->in[i];
    if (from != LEFT || l->receiving[i] != MPI_REQUEST_NULL)
        return 0;
    size_t left = (size_t)s->bytes - s->at, n = bytes < left ? bytes : left;
    if (s->at == 0 || l->payload)
        memcpy(at, s->data + s->at, n);
    s->at += n;
    if (n == left) {
        s->at = 0;
        post(p, i);
        l->taken++;
    }
    return (ssize_t)n;
}

// Simulated messages always come, so there is no time limit; SimGrid itself
// ends a run in which all ranks wait.
static int lane_wait(struct streams *p, int timeout_ms)
{
    struct lane *l = p->state;
    int in = (int)(l->taken % IN_SLOTS),
        out = (int)(l->sent % (unsigned long)l->slots);
    MPI_Request both[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status status;
    int which;
    (void)timeout_ms;
    if (p->links[LEFT].wants & STREAMS_IN)
        both[0] = l->receiving[in];
    if (p->links[RIGHT].wants & STREAMS_OUT)
        both[1] = l->sending[out];
    MPI_Waitany(2, both, &which, &status);
    if (which == 0) {
        l->receiving[in] = MPI_REQUEST_NULL;
        MPI_Get_count(&status, MPI_BYTE, &l->in[in].bytes);
    } else if (which == 1) {
        l->sending[out] = MPI_REQUEST_NULL;
    } else {
        return fail("ring: nothing to wait for");
    }
    return 0;
}

static void lane_close(struct streams *p)
{
    struct lane *l = p->state;
    MPI_Waitall(OUT_SLOTS, l->sending, MPI_STATUSES_IGNORE);
    for (int i = 0; i < IN_SLOTS; i++) {
        if (l->receiving[i] == MPI_REQUEST_NULL)
            continue;
        MPI_Cancel(&l->receiving[i]);
        MPI_Request_free(&l->receiving[i]);
    }
    for (int i = 0; i < OUT_SLOTS; i++)
        slot_free(l, &l->out[i]);
    for (int i = 0; i < IN_SLOTS; i++)
        slot_free(l, &l->in[i]);
}

#define LANE                                                                   \
    {                                                                          \
        .state_size = sizeof(struct lane), .open = lane_open,                  \
        .send = lane_send, .recv = lane_recv, .wait = lane_wait,               \
        .close = lane_close,                                                   \
    }

const struct streams_ops streams_mpi = LANE;
const struct streams_ops streams_mpi_stream = LANE;
