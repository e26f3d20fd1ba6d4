// message.c - passes the calls of an endpoint on to its transport.

#include "message/message.h"

#include "base/base.h"

#include <string.h>

int endpoint_open(struct endpoint **out, const struct message_ops *ops,
                  const struct endpoint_config *c)
{
    struct endpoint *m = mem_alloc(1, sizeof *m);
    if (!m)
        return -1;
    m->ops = ops;
    m->state = mem_alloc(1, ops->state_size);
    if (!m->state || ops->open(m, c)) {
        endpoint_close(&m);
        return -1;
    }
    *out = m;
    return 0;
}

void endpoint_close(struct endpoint **m)
{
    if (!*m)
        return;
    if ((*m)->state)
        (*m)->ops->close(*m);
    mem_free((*m)->state);
    mem_free(*m);
    *m = NULL;
}

int endpoint_connect(struct endpoint *m, const char *endpoint)
{
    return m->ops->connect(m, endpoint);
}

struct message_peer message_server(int n)
{
    struct message_peer p = {.n = sizeof n};
    memcpy(p.id, &n, sizeof n);
    return p;
}

bool message_same_peer(const struct message_peer *a,
                       const struct message_peer *b)
{
    return a->n == b->n && !memcmp(a->id, b->id, a->n);
}

int endpoint_send(struct endpoint *m, const struct message_peer *to,
                  const void *head, size_t head_bytes,
                  const struct payload *data)
{
    return m->ops->send(m, to, head, head_bytes, data);
}

void message_lent(void *data, void *hint)
{
    (void)data;
    (void)hint;
}

struct message *endpoint_receive(struct endpoint *m)
{
    return m->ops->receive(m);
}

void message_drop(struct message *p)
{
    if (p)
        p->endpoint->ops->drop(p);
}

void message_put(struct message_queue *q, struct message *p)
{
    p->next = NULL;
    if (q->first)
        q->last->next = p;
    else
        q->first = p;
    q->last = p;
}

struct message *message_take(struct message_queue *q)
{
    struct message *p = q->first;
    if (p)
        q->first = p->next;
    return p;
}

void endpoint_wait(struct endpoint *m, int ms)
{
    m->ops->wait(m, ms);
}

void endpoint_wake(struct endpoint *m)
{
    if (m->ops->wake)
        m->ops->wake(m);
}

int endpoint_check(struct endpoint *m)
{
    return m->ops->check ? m->ops->check(m) : 0;
}

bool endpoint_is_up(struct endpoint *m, int server)
{
    return !m->ops->is_up || m->ops->is_up(m, server);
}
