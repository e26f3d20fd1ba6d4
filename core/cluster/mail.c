// mail.c - an end, whatever carries it.

#include "cluster/mail.h"

#include "base/base.h"

#include <string.h>

int mail_open(struct mail **out, const struct mail_ops *ops,
              const struct mail_config *c)
{
    struct mail *m = mem_alloc(1, sizeof *m);
    if (!m)
        return -1;
    m->ops = ops;
    m->state = mem_alloc(1, ops->state_size);
    if (!m->state || ops->open(m, c)) {
        mail_close(&m);
        return -1;
    }
    *out = m;
    return 0;
}

void mail_close(struct mail **m)
{
    if (!*m)
        return;
    if ((*m)->state)
        (*m)->ops->close(*m);
    mem_free((*m)->state);
    mem_free(*m);
    *m = NULL;
}

int mail_connect(struct mail *m, const char *endpoint)
{
    return m->ops->connect(m, endpoint);
}

struct mail_peer mail_server(int n)
{
    struct mail_peer p = {.n = sizeof n};
    memcpy(p.id, &n, sizeof n);
    return p;
}

bool mail_same(const struct mail_peer *a, const struct mail_peer *b)
{
    return a->n == b->n && !memcmp(a->id, b->id, a->n);
}

int mail_send(struct mail *m, const struct mail_peer *to, const void *head,
              size_t head_bytes, const struct mail_data *data)
{
    return m->ops->send(m, to, head, head_bytes, data);
}

void mail_lent(void *data, void *hint)
{
    (void)data;
    (void)hint;
}

struct parcel *mail_receive(struct mail *m)
{
    return m->ops->receive(m);
}

void mail_drop(struct parcel *p)
{
    if (p)
        p->mail->ops->drop(p);
}

void mail_wait(struct mail *m, int ms)
{
    m->ops->wait(m, ms);
}

void mail_wake(struct mail *m)
{
    m->ops->wake(m);
}

int mail_check(struct mail *m)
{
    return m->ops->check(m);
}

bool mail_is_up(struct mail *m, int server)
{
    return m->ops->is_up(m, server);
}
