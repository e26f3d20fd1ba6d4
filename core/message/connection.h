// connection.h - ZeroMQ sockets with the options that we need: finite linger,
// heartbeats, large buffers, CURVE if wanted. A worker's socket also notices
// when the server is gone, which a DEALER alone never reports.

#pragma once

#include "message/message.h"

#include <stdbool.h>
#include <stddef.h>

struct connection {
    void *socket; // ZMQ_DEALER
    void *events; // poll it for news of the connection: connection_check()
    char endpoint[MESSAGE_ENDPOINT];
    bool connected; // it was connected at least once
    bool lost;      // it was connected, and is not any more
    int tries;      // handshakes that ended without a reason
};

// Begins to connect to `endpoint`, and does not wait for the other end. `curve`
// is a folder of keys or "". 0, or -1 after fail(). connection_close() must be
// called in both cases.
int connection_open(struct connection *l, void *context, const char *endpoint,
                    const char *curve, double timeout_s);

// Reads the events of the connection. 0, or -1 after fail() if it was lost or
// refused.
int connection_check(struct connection *l);

// To be called after a failed send: returns -1 after fail() with the reason. A
// send fails at once if the server has refused us.
int connection_not_sent(struct connection *l);

// Whether it is connected, so that a goodbye makes sense.
bool connection_is_up(struct connection *l);

// Closes it. ZeroMQ sends waiting messages for up to timeout_s more, and
// closing its context waits for that.
void connection_close(struct connection *l);

// The server's socket: a ROUTER bound to `endpoint` (port 0: any port). bound[]
// becomes its real address. Sends fail with EHOSTUNREACH if the receiver is
// gone. *auth becomes the socket's authenticator, or NULL; the caller closes
// the authenticator after the socket. Returns NULL after fail() with address,
// reason and remedy.
struct auth;
void *connection_listen(void *context, const char *endpoint, const char *curve,
                        double timeout_s, char bound[MESSAGE_ENDPOINT],
                        struct auth **auth);
