// line.h - one direction of a stream between two ranks of a virtual
// cluster (virtual/virtual.h).
//
// A line carries heads, each followed by the payload that the head announces. A
// head is an envelope, which takes no time and is not counted. Payload is
// received directly where it belongs, without a buffer in between.

#pragma once

#include "virtual/virtual.h"

#include <sys/types.h>
#include <sys/uio.h>

enum { VIRTUAL_HEAD = 1024 }; // bytes of a head, at most

struct virtual_line {
    struct virtual_rank *rank;
    int peer, stream;
    size_t head_bytes;                   // of every head
    size_t (*payload)(const void *head); // bytes that follow a head
    char head[VIRTUAL_HEAD];             // the one that is sent or received
    size_t left;                         // bytes of its payload still to come
    struct virtual_req envelope, data;   // requests; .op is NULL: none
    size_t data_bytes;                   // of `data`
};

// virtual_line_send() sends a head with payload after it, or more payload of
// the last head. virtual_line_recv() receives a head, or payload. Both return
// the number of all bytes asked for; or 0 if the call must wait, and then it
// must be repeated with the same arguments; or -1 after fail() if the peer is
// gone.
ssize_t virtual_line_send(struct virtual_line *l, const struct iovec *v, int n);
ssize_t virtual_line_recv(struct virtual_line *l, void *p, size_t bytes);

// Posts a receive for the next head, if no request is under way. 0, or -1 after
// fail().
int virtual_line_listen(struct virtual_line *l);

// The request for which the line waits; NULL: none.
const struct virtual_req *virtual_line_waits(const struct virtual_line *l);

// Cancels the requests under way.
void virtual_line_close(struct virtual_line *l);
