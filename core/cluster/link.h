// link.h - ZeroMQ sockets as this house uses them: finite linger, heartbeats,
// large buffers, CURVE where asked; and a worker's end that notices when the
// other end is gone, which a DEALER alone never tells.

#ifndef CLUSTER_LINK_H
#define CLUSTER_LINK_H

#include "cluster/mail.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct link {
    void *socket; // ZMQ_DEALER
    void *events; // what happens to its connection; poll it, then link_check()
    char endpoint[MAIL_ENDPOINT];
    bool connected; // has been, at least once
    bool lost;      // and is no more
};

// Connect to endpoint; returns before the other end answers. `curve` is a
// folder of keys or "". 0, or -1 after fail(); link_close() follows either way.
int link_open(struct link *l, void *context, const char *endpoint,
              const char *curve, double timeout_s);

// What happened to the connection since: 0, or -1 after fail() when it is lost
// or was refused.
int link_check(struct link *l);

// Whether there is somebody to say goodbye to.
bool link_is_up(struct link *l);
void link_close(struct link *l);

// The server's end: a ROUTER bound to `endpoint` (port 0: any), whose real
// address is stored in bound[]. Sends fail with EHOSTUNREACH when the receiver
// is gone. NULL after fail() that names address, reason and remedy.
void *link_listen(void *context, const char *endpoint, const char *curve,
                  double timeout_s, char bound[MAIL_ENDPOINT]);

#ifdef __cplusplus
}
#endif

#endif
