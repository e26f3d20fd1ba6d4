// buffer.h - message buffers that are sent without copying.
//
// ZeroMQ's own thread reads a buffer after zmq_msg_send() has returned. So each
// buffer has a reference count: one for its user and one for each message in
// flight. When the count is 0 the buffer returns to its pool. A buffer may be
// written only while buffer_shared() is false.

#pragma once

#include <stdbool.h>
#include <stddef.h>

struct buffers; // a pool of equal buffers

struct buffer {
    struct buffers *pool;
    struct buffer *next; // while it is free
    void *data;
    _Atomic int refs;
};

// A pool of buffers of `bytes` bytes each. Returns 0, or -1 after fail().
int buffers_open(struct buffers **pool, size_t bytes);

// All buffers must have been given back: first close all sockets and their
// context.
void buffers_close(struct buffers **pool);

// A buffer with one reference, the caller's. Its contents are undefined. NULL
// after fail().
struct buffer *buffer_get(struct buffers *pool);

void buffer_ref(struct buffer *b);    // one reference more
void buffer_unref(struct buffer *b);  // one reference less; b may be NULL
bool buffer_shared(struct buffer *b); // more than one reference

// For zmq_msg_init_data(): gives back the message's reference to the buffer
// `hint`.
void buffer_sent(void *data, void *hint);
