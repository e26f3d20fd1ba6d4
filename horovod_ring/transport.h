// transport.h - how bytes reach the two neighbours of a ring.
//
//     left  --> this worker -->  right        gradients flow to the right
//     left  <-- this worker <--  right        only word of a failure goes back
//
// A transport is two streams of bytes to each side, none of which blocks: TCP,
// or simulated messages. The caller cuts its data into pieces at the same
// places on both ends, and repeats a call with the rest of a piece until all of
// it has moved.

#ifndef HOROVOD_RING_TRANSPORT_H
#define HOROVOD_RING_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct cluster;

enum side { LEFT, RIGHT };

enum { WANT_RECV_LEFT = 1, WANT_RECV_RIGHT = 2, WANT_SEND_RIGHT = 4 };

// What a transport is opened with: borrowed.
struct transport_config {
    const char *name;  // begins errors
    const char *iface; // tcp: interface to listen on; "" for loopback
    size_t message;    // simulated: bytes of the largest message
    bool payload;      // simulated: messages hold real numbers
};

struct transport {
    const struct transport_ops *ops;
    const char *name;
    int rank, world;
    int peer[2];      // the ranks on the LEFT and the RIGHT
    const int *ranks; // in the job, for messages; NULL: the same. Borrowed
    int also; // tcp: a descriptor that ends wait() once it is readable, or -1
    void *state;
};

struct transport_ops {
    size_t state_size;
    // Meet both neighbours, within the cluster's deadline.
    int (*open)(struct transport *t, struct cluster *c,
                const struct transport_config *config);
    // Move what can be moved now. How many bytes; 0 if none; -1 after fail(),
    // that side is lost then.
    ssize_t (*send)(struct transport *t, enum side to, const struct iovec *v,
                    int n);
    ssize_t (*recv)(struct transport *t, enum side from, void *p, size_t bytes);
    // Sleep until one of `wants` can be served, wake() was called, or the time
    // is over (-1: no limit).
    int (*wait)(struct transport *t, unsigned wants, int timeout_ms);
    void (*wake)(struct transport *t);  // from any thread
    void (*close)(struct transport *t); // must accept zeroed state
};

extern const struct transport_ops transport_tcp;

// 0, or -1 after fail(); transport_close() follows either way, and takes a
// zeroed one. World 2 or more.
int transport_open(struct transport *t, const struct transport_ops *ops,
                   struct cluster *c, const struct transport_config *config);
void transport_close(struct transport *t);

#endif
