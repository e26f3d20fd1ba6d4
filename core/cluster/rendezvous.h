// rendezvous.h - where workers without MPI meet: the server's side of
// cluster_zmq.
//
// Every worker sends its piece of the k-th exchange; when all are there, each
// gets all pieces in rank order. A goodbye is answered by a goodbye. The
// rendezvous server is a small state machine without sockets, so that ps_server
// 0 runs it on the socket it has anyway; rendezvous_start() gives it a thread
// and a socket of its own where there is no server.
//
// An elastic rendezvous goes on without workers that died (their pieces are
// zero) and remembers what was exchanged, so that one who joins later can hear
// it.

#ifndef CLUSTER_RENDEZVOUS_H
#define CLUSTER_RENDEZVOUS_H

#include "message/message.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// ---- messages: a head of RENDEZVOUS_HEAD bytes, little-endian, and data

enum {
    RENDEZVOUS_HEAD = 40,
    RENDEZVOUS_MAX_WORLD = 4096,
    RENDEZVOUS_MAX_BYTES = 1 << 24
};

enum rendezvous_kind {
    RENDEZVOUS_GIVE = 1,
    RENDEZVOUS_ALL,
    RENDEZVOUS_ERROR,
    RENDEZVOUS_BYE,
    RENDEZVOUS_KINDS
};

struct rendezvous_head {
    uint32_t kind; // enum rendezvous_kind
    uint32_t rank, world;
    uint32_t timeout_ms;
    uint64_t exchange; // counts from 0
    uint64_t bytes;    // of the data frame
};

void rendezvous_head_put(uint8_t out[RENDEZVOUS_HEAD],
                         const struct rendezvous_head *h);

// 0, or -1 after fail(): not a rendezvous server's message, or its numbers make
// no sense.
int rendezvous_head_get(struct rendezvous_head *h, const void *frame, size_t n);

// Whether a frame is the head of a message for the rendezvous server.
bool rendezvous_is_head(const void *frame, size_t n);

// ---- the state machine

struct rendezvous;

// Send head and data to a peer; a peer that is gone is not an error.
typedef void rendezvous_send(void *ctx, const struct message_peer *to,
                             const uint8_t head[RENDEZVOUS_HEAD],
                             const void *data, size_t bytes);

int rendezvous_open(struct rendezvous **h, rendezvous_send *send, void *ctx);
void rendezvous_close(struct rendezvous **h);
void rendezvous_set_elastic(struct rendezvous *h, bool elastic);

// A message from a peer. -1 after fail() when it makes no sense; the peer has
// been told, the rendezvous server goes on.
int rendezvous_receive(struct rendezvous *h, const struct message_peer *from,
                       const void *head, size_t head_bytes, const void *data,
                       size_t bytes);

// Call about ten times a second: ends exchanges whose deadline has passed, and
// says who is waited for.
void rendezvous_tick(struct rendezvous *h);

// A worker died: go on without it (elastic), or tell all who wait.
void rendezvous_lost(struct rendezvous *h, int rank);

// Nobody will be answered any more: tell all who wait why.
void rendezvous_abort(struct rendezvous *h, const char *why);

// ---- a rendezvous server with a thread and a socket

struct rendezvous_server;

// Listen at `endpoint` ("tcp://127.0.0.1:0", "tcp://node1:2900"); curve as in
// cluster_config. 0, or -1 after fail().
int rendezvous_start(struct rendezvous_server **s, const char *endpoint,
                     const char *curve);
const char *rendezvous_endpoint(const struct rendezvous_server *s);
void rendezvous_stop(struct rendezvous_server **s);

#endif
