// hub.h - where workers without MPI meet: the server's side of cluster_zmq.
//
// Every worker sends its piece of the k-th exchange; when all are there, each
// gets all pieces in rank order. A goodbye is answered by a goodbye. The hub is
// a small state machine without sockets, so that ps_server 0 runs it on the
// socket it has anyway; hub_start() gives it a thread and a socket of its own
// where there is no server.
//
// An elastic hub goes on without workers that died (their pieces are zero) and
// remembers what was exchanged, so that one who joins later can hear it.

#ifndef CLUSTER_HUB_H
#define CLUSTER_HUB_H

#include "message/message.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// ---- messages: a head of HUB_HEAD bytes, little-endian, and a frame of data

enum { HUB_HEAD = 40, HUB_MAX_WORLD = 4096, HUB_MAX_BYTES = 1 << 24 };

enum hub_kind { HUB_GIVE = 1, HUB_ALL, HUB_ERROR, HUB_BYE, HUB_KINDS };

struct hub_head {
    uint32_t kind; // enum hub_kind
    uint32_t rank, world;
    uint32_t timeout_ms;
    uint64_t exchange; // counts from 0
    uint64_t bytes;    // of the data frame
};

void hub_head_put(uint8_t out[HUB_HEAD], const struct hub_head *h);

// 0, or -1 after fail(): not a hub's message, or its numbers make no sense.
int hub_head_get(struct hub_head *h, const void *frame, size_t n);

// Whether a frame is the head of a message for the hub.
bool hub_is_head(const void *frame, size_t n);

// ---- the state machine

struct hub;

// Send head and data to a peer; a peer that is gone is not an error.
typedef void hub_send(void *ctx, const struct message_peer *to,
                      const uint8_t head[HUB_HEAD], const void *data,
                      size_t bytes);

int hub_open(struct hub **h, hub_send *send, void *ctx);
void hub_close(struct hub **h);
void hub_set_elastic(struct hub *h, bool elastic);

// A message from a peer. -1 after fail() when it makes no sense; the peer has
// been told, the hub goes on.
int hub_receive(struct hub *h, const struct message_peer *from,
                const void *head, size_t head_bytes, const void *data,
                size_t bytes);

// Call about ten times a second: ends exchanges whose deadline has passed, and
// says who is waited for.
void hub_tick(struct hub *h);

// A worker died: go on without it (elastic), or tell all who wait.
void hub_lost(struct hub *h, int rank);

// Nobody will be answered any more: tell all who wait why.
void hub_abort(struct hub *h, const char *why);

// ---- a hub with a thread and a socket

struct hub_server;

// Listen at `endpoint` ("tcp://127.0.0.1:0", "tcp://node1:2900"); curve as in
// cluster_config. 0, or -1 after fail().
int hub_start(struct hub_server **s, const char *endpoint, const char *curve);
const char *hub_endpoint(const struct hub_server *s);
void hub_stop(struct hub_server **s);

#endif
