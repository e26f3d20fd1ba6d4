// mail.c - letters through SimGrid's mailboxes.
//
// In a program under SMPI a mailbox copies the first eight bytes of what is
// sent: here the letter's own address, since all ranks live in one process. The
// time that it takes is that of the bytes that it is said to have. SimGrid keeps
// a list of what a rank has under way and searches it, so what has come in is
// cleared away soon.

#include "simulate/mail.h"

#include "base/base.h"

#include <simgrid/comm.h>
#include <simgrid/mailbox.h>
#include <string.h>

enum { HEAD_ONLY = 4096 }; // bytes; a row so small may go with the heads

struct sent {
    sg_comm_t comm;
    struct sent *next;
};

static void name_box(char name[32], int rank, int box)
{
    snprintf(name, 32, "%d of rank %d", box, rank);
}

void mail_open(struct mail *m, int rank)
{
    *m = (struct mail){.rank = rank};
    for (int box = 0; box < MAIL_BOXES; box++) {
        char name[32];
        name_box(name, rank, box);
        sg_mailbox_set_receiver(name);
    }
}

static void forget_first(struct mail *m)
{
    struct sent *s = m->first;
    m->first = s->next;
    if (!m->first)
        m->last = NULL;
    mem_free(s);
}

void mail_close(struct mail *m)
{
    while (m->first) {
        sg_comm_wait(m->first->comm);
        forget_first(m);
    }
}

int mail_send(struct mail *m, int to, int kind, int row, size_t bytes)
{
    char name[32];
    struct sent *s = mem_alloc(1, sizeof *s);
    struct letter *l = mem_alloc(1, sizeof *l);
    if (!s || !l) {
        mem_free(s);
        mem_free(l);
        return -1;
    }
    *l = (struct letter){l, m->rank, kind, row};
    name_box(name, to, bytes > HEAD_ONLY);
    s->comm = sg_mailbox_put_async(sg_mailbox_by_name(name), l, (long)bytes);
    if (m->last)
        m->last->next = s;
    else
        m->first = s;
    m->last = s;
    return 0;
}

static void expect(struct mail *m, int box)
{
    char name[32];
    name_box(name, m->rank, box);
    m->waits[box] =
        sg_mailbox_get_async(sg_mailbox_by_name(name), (void **)&m->next[box]);
}

struct letter mail_take(struct mail *m)
{
    for (int box = 0; box < MAIL_BOXES; box++)
        if (!m->waits[box])
            expect(m, box);
    for (;;) {
        sg_comm_t any[1 + MAIL_BOXES];
        int n = 0;
        if (m->first)
            any[n++] = m->first->comm;
        memcpy(any + n, m->waits, sizeof m->waits);
        ssize_t i = sg_comm_wait_any(any, (size_t)n + MAIL_BOXES);
        CHECK(i >= 0);
        if (i < n) {
            forget_first(m);
            continue;
        }
        struct letter l = *m->next[i - n];
        mem_free(m->next[i - n]);
        m->waits[i - n] = NULL;
        return l;
    }
}
