// transport.h - moves bytes to and from the two neighbours of a ring.
//
//     left  --> this worker -->  right        gradients flow to the right
//     left  <-- this worker <--  right        only reports of failures go left
//
// A transport is two streams of bytes to each neighbour, one in each direction;
// none of them blocks. It uses TCP, or simulated messages. Both ends divide
// their data into pieces at the same places. The caller repeats a call with the
// rest of a piece until all of it has moved.

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

// The settings of a transport. transport_open() borrows them.
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
    const int *ranks; // borrowed: the members' ranks in the job, for error
                      // texts; if NULL, they are the members' numbers
    int also; // tcp: wait() also ends when this descriptor is readable; or -1
    void *state;
};

struct transport_ops {
    size_t state_size;
    // Connect to both neighbours, within the cluster's deadline.
    int (*open)(struct transport *t, struct cluster *c,
                const struct transport_config *config);
    // Move what can be moved now. Return how many bytes moved, 0 if none, or -1
    // after fail() if that neighbour is lost.
    ssize_t (*send)(struct transport *t, enum side to, const struct iovec *v,
                    int n);
    ssize_t (*recv)(struct transport *t, enum side from, void *p, size_t bytes);
    // Sleep until one of `wants` can be served, wake() is called, or timeout_ms
    // is over (-1: no limit). Returns 0, or -1 after fail().
    int (*wait)(struct transport *t, unsigned wants, int timeout_ms);
    void (*wake)(struct transport *t);  // from any thread
    void (*close)(struct transport *t); // must accept zeroed state
};

extern const struct transport_ops transport_tcp;

// Opens a transport between at least two workers; all of them call it. Returns
// 0, or -1 after fail(). transport_close() follows in both cases; it accepts a
// zeroed transport.
int transport_open(struct transport *t, const struct transport_ops *ops,
                   struct cluster *c, const struct transport_config *config);
void transport_close(struct transport *t);

#endif
