// connection.h - ZeroMQ sockets as this house uses them: finite linger,
// heartbeats, large buffers, CURVE where asked; and a worker's end that notices
// when the other end is gone, which a DEALER alone never tells.

#ifndef MESSAGE_CONNECTION_H
#define MESSAGE_CONNECTION_H

#include "message/message.h"

#include <stdbool.h>
#include <stddef.h>

struct connection {
    void *socket; // ZMQ_DEALER
    void *events; // of its connection: poll it, then connection_check()
    char endpoint[MESSAGE_ENDPOINT];
    bool connected; // has been, at least once
    bool lost;      // and is no more
};

// Connect to endpoint; returns before the other end answers. `curve` is a
// folder of keys or "". 0, or -1 after fail(); connection_close() follows in
// either case.
int connection_open(struct connection *l, void *context, const char *endpoint,
                    const char *curve, double timeout_s);

// What happened to the connection since: 0, or -1 after fail() when it is lost
// or was refused.
int connection_check(struct connection *l);

// After a send that failed, which it does at once when the other end has turned
// us away: -1 after fail() with the reason.
int connection_not_sent(struct connection *l);

// Whether there is somebody to say goodbye to.
bool connection_is_up(struct connection *l);

// Close it. ZeroMQ goes on to send what waits, for as long as the timeout, and
// the end of its context waits for that.
void connection_close(struct connection *l);

// Close it and drop what waits: the other end has all that matters.
void connection_drop(struct connection *l);

// The server's end: a ROUTER bound to `endpoint` (port 0: any), whose real
// address is stored in bound[]. Sends fail with EHOSTUNREACH when the receiver
// is gone. *door is its doorkeeper, if any, to be closed after the socket. NULL
// after fail() that names address, reason and remedy.
struct door;
void *connection_listen(void *context, const char *endpoint, const char *curve,
                        double timeout_s, char bound[MESSAGE_ENDPOINT],
                        struct door **door);

#endif
