// lab.c - the calls of lab.h, through the table of their implementation.

#include "labs/lab.h"

#include "labs/ops.h"

int lab_isend(struct lab *l, int to, const void *p, size_t bytes,
              struct lab_req *r)
{
    return l->ops->isend(l, to, p, bytes, r);
}

int lab_irecv(struct lab *l, int from, void *p, size_t bytes, struct lab_req *r)
{
    return l->ops->irecv(l, from, p, bytes, r);
}

int lab_wait(struct lab *l, struct lab_req *r, int n)
{
    return l->ops->wait(l, r, n);
}

int lab_send(struct lab *l, int to, const void *p, size_t bytes)
{
    struct lab_req r;
    return lab_isend(l, to, p, bytes, &r) ? -1 : lab_wait(l, &r, 1);
}

int lab_recv(struct lab *l, int from, void *p, size_t bytes)
{
    struct lab_req r;
    return lab_irecv(l, from, p, bytes, &r) ? -1 : lab_wait(l, &r, 1);
}

int lab_recv_any(struct lab *l, struct lab_note *n, void *p, size_t most)
{
    return l->ops->recv_any(l, n, p, most);
}

double lab_now(const struct lab *l)
{
    return l->ops->now(l);
}

void lab_compute(struct lab *l, double seconds)
{
    l->ops->compute(l, seconds);
}

void *lab_alloc(struct lab *l, size_t n, size_t size)
{
    return l->ops->alloc(l, n, size);
}

int lab_missing(struct lab *l, int rank, const char *why)
{
    return l->ops->missing(l, rank, why);
}
