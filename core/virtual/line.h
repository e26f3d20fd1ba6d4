// line.h - one direction of a stream between two ranks of a virtual
// cluster (virtual/virtual.h).
//
// What travels is a head, and the payload that it announces. A head is an
// envelope, which takes no time and is not counted; payload moves from where it
// is to where it belongs.

#ifndef VIRTUAL_LINE_H
#define VIRTUAL_LINE_H

#include "virtual/virtual.h"

#include <sys/types.h>
#include <sys/uio.h>

enum { VIRTUAL_HEAD = 1024 }; // bytes of a head, at most

struct virtual_line {
    struct virtual_rank *rank;
    int peer, stream;
    size_t head_bytes;                   // of every head
    size_t (*payload)(const void *head); // bytes that follow a head
    char head[VIRTUAL_HEAD];             // as it travels
    size_t left;                         // payload still due
    struct virtual_req envelope, data;   // under way; .op of NULL: not
    size_t data_bytes;
};

// Send a head with payload behind it, or more of the payload of the last head;
// receive a head, or payload. All of it, or 0 where that cannot be now: call
// again with the same. -1 after fail(): the peer is gone.
ssize_t virtual_line_send(struct virtual_line *l, const struct iovec *v, int n);
ssize_t virtual_line_recv(struct virtual_line *l, void *p, size_t bytes);

// Be ready for the next head, if nothing is under way.
int virtual_line_listen(struct virtual_line *l);

// What it waits for; NULL: nothing.
const struct virtual_req *virtual_line_waits(const struct virtual_line *l);

// Give up what is under way.
void virtual_line_close(struct virtual_line *l);

#endif
