// line.c - one direction of a stream between two ranks of a virtual cluster.

#include "virtual/line.h"

#include "base/base.h"

#include <string.h>

static bool is_idle(const struct virtual_line *l)
{
    return !l->envelope.op && !l->data.op;
}

static bool is_done(const struct virtual_line *l, const struct virtual_req *r)
{
    return !r->op || virtual_is_done(l->rank, r);
}

static int post(struct virtual_line *l, const struct iovec *v, int n)
{
    int k = 0;
    l->data_bytes = 0;
    if (l->left == 0) {
        CHECK(v[0].iov_len == l->head_bytes && l->head_bytes <= VIRTUAL_HEAD);
        memcpy(l->head, v[k++].iov_base, l->head_bytes);
        l->left = l->payload(l->head);
        if (virtual_isend_on(l->rank, VIRTUAL_ENVELOPE | l->stream, l->peer,
                             l->head, l->head_bytes, &l->envelope))
            return -1;
    }
    if (k == n)
        return 0;
    CHECK(k == n - 1 && v[k].iov_len <= l->left);
    l->data_bytes = v[k].iov_len;
    return virtual_isend_on(l->rank, l->stream, l->peer, v[k].iov_base,
                            v[k].iov_len, &l->data);
}

// Ends operations that are complete or have failed.
static int settle(struct virtual_line *l)
{
    int rc = l->envelope.op ? virtual_wait(l->rank, &l->envelope, 1) : 0;
    if (l->data.op && virtual_wait(l->rank, &l->data, 1))
        rc = -1;
    return rc;
}

ssize_t virtual_line_send(struct virtual_line *l, const struct iovec *v, int n)
{
    size_t bytes = 0;
    if (is_idle(l) && post(l, v, n))
        return -1;
    if (!is_done(l, &l->envelope) || !is_done(l, &l->data))
        return 0;
    if (settle(l))
        return -1;
    for (int i = 0; i < n; i++)
        bytes += v[i].iov_len;
    l->left -= l->data_bytes;
    return (ssize_t)bytes;
}

int virtual_line_listen(struct virtual_line *l)
{
    if (!is_idle(l) || l->left > 0)
        return 0;
    return virtual_irecv_on(l->rank, VIRTUAL_ENVELOPE | l->stream, l->peer,
                            l->head, l->head_bytes, &l->envelope);
}

static ssize_t recv_head(struct virtual_line *l, void *p, size_t bytes)
{
    CHECK(bytes == l->head_bytes);
    if (virtual_line_listen(l))
        return -1;
    if (!is_done(l, &l->envelope))
        return 0;
    if (settle(l))
        return -1;
    memcpy(p, l->head, bytes);
    l->left = l->payload(l->head);
    return (ssize_t)bytes;
}

ssize_t virtual_line_recv(struct virtual_line *l, void *p, size_t bytes)
{
    if (l->left == 0)
        return recv_head(l, p, bytes);
    CHECK(bytes <= l->left);
    if (!l->data.op &&
        virtual_irecv_on(l->rank, l->stream, l->peer, p, bytes, &l->data))
        return -1;
    if (!is_done(l, &l->data))
        return 0;
    if (settle(l))
        return -1;
    l->left -= bytes;
    return (ssize_t)bytes;
}

const struct virtual_req *virtual_line_waits(const struct virtual_line *l)
{
    if (l->data.op)
        return &l->data;
    return l->envelope.op ? &l->envelope : NULL;
}

void virtual_line_close(struct virtual_line *l)
{
    if (l->envelope.op)
        virtual_cancel(l->rank, &l->envelope);
    if (l->data.op)
        virtual_cancel(l->rank, &l->data);
}
