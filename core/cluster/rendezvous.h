// rendezvous.h - the rendezvous server, through which workers without MPI
// exchange data: the server's side of cluster_zmq.
//
// Every worker sends its piece of the k-th exchange. When all pieces are there,
// each worker gets all of them in rank order. The server answers a goodbye with
// a goodbye. It is a small state machine without sockets: ps_server 0 runs it
// on its own socket. Without a parameter server, rendezvous_start() gives it a
// thread and a socket.
//
// The rendezvous of an elastic job goes on without workers that died, and after
// a deadline without silent ones: their pieces are zero. It keeps past
// exchanges, so that a worker that joins later can receive them. Before worker
// 0 has set the parameters, it waits for a worker 0 that died, too, and leaves
// out no silent worker. It leaves out a silent worker 0 only after the first
// gradient.

#pragma once

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
    RENDEZVOUS_GIVE = 1, // a worker's piece
    RENDEZVOUS_ALL,      // the answer: all pieces
    RENDEZVOUS_ERROR,    // the answer: an error's text
    RENDEZVOUS_BYE,      // a goodbye, and its answer
    RENDEZVOUS_WAIT,     // before the answer: those that are missing live
    RENDEZVOUS_KINDS
};

struct rendezvous_head {
    uint32_t kind; // enum rendezvous_kind
    uint32_t rank, world;
    uint32_t timeout_ms; // deadline of an exchange
    uint64_t exchange;   // counts from 0
    uint64_t bytes;      // of the data frame
};

void rendezvous_head_put(uint8_t out[RENDEZVOUS_HEAD],
                         const struct rendezvous_head *h);

// Reads a head from a frame of n bytes. 0, or -1 after fail() if it is no head
// of this protocol or has impossible numbers.
int rendezvous_head_get(struct rendezvous_head *h, const void *frame, size_t n);

// Whether a frame of n bytes begins as a head of this protocol does.
bool rendezvous_is_head(const void *frame, size_t n);

// ---- the state machine

struct rendezvous;

// Sends a head and `bytes` bytes of data to a peer. Returns whether the peer is
// known to be gone, which is not an error.
typedef bool rendezvous_send(void *ctx, const struct message_peer *to,
                             const uint8_t head[RENDEZVOUS_HEAD],
                             const void *data, size_t bytes);

// Makes a state machine that answers by send(ctx, ..). 0, or -1 after fail().
int rendezvous_open(struct rendezvous **h, rendezvous_send *send, void *ctx);
void rendezvous_close(struct rendezvous **h);

// Whether the job is elastic; at first it is not.
void rendezvous_set_elastic(struct rendezvous *h, bool elastic);

// Worker 0 has set the parameters. From now on an elastic job goes on without
// it, too, if it dies.
void rendezvous_begun(struct rendezvous *h);

// Takes a message from a peer. -1 after fail() if it makes no sense. Then the
// peer gets an error reply, and the server goes on.
int rendezvous_receive(struct rendezvous *h, const struct message_peer *from,
                       const void *head, size_t head_bytes, const void *data,
                       size_t bytes);

// A worker has been heard of elsewhere, so it lives. The deadline of an
// exchange that lacks its piece counts from now on.
void rendezvous_heard(struct rendezvous *h, int rank);

// A worker trains. If it was lost, it is back: from now on exchanges of an
// elastic job wait for it, also while it still asks for past ones.
void rendezvous_back(struct rendezvous *h, int rank);

// To be called about ten times a second. It logs every 5 s which ranks are
// missing. When nothing was heard of them for nine tenths of the timeout, an
// elastic job that has begun goes on without them. In other jobs the present
// exchange ends with an error, which so comes before the workers' own error. As
// long as they are heard of, it tells the others to wait.
void rendezvous_tick(struct rendezvous *h);

// A worker has died. An elastic job goes on without it. In other jobs, if an
// exchange still lacks its piece, all waiting workers get an error.
void rendezvous_lost(struct rendezvous *h, int rank);

// Ends the present exchange: all waiting workers get the error `why`.
void rendezvous_abort(struct rendezvous *h, const char *why);

// ---- a rendezvous server with a thread and a socket

struct rendezvous_server;

// Starts a server that listens at `endpoint` ("tcp://127.0.0.1:0",
// "tcp://node1:2900"), with CURVE keys as in cluster_config. 0, or -1 after
// fail().
int rendezvous_start(struct rendezvous_server **s, const char *endpoint,
                     const char *curve);

// The endpoint with its real port. It belongs to the server.
const char *rendezvous_endpoint(const struct rendezvous_server *s);

// Ends the thread, closes the socket, sets *s to NULL. Takes NULL.
void rendezvous_stop(struct rendezvous_server **s);
