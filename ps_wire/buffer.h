// buffer.h - message buffers that are sent without copying.
//
// ZeroMQ's own thread reads a buffer after zmq_msg_send() has returned, so the
// buffer counts who still needs it: whoever made it and every message in
// flight. With the last one gone it returns to its pool. A buffer may be
// written only while buffer_shared() is false.

#ifndef PS_WIRE_BUFFER_H
#define PS_WIRE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

struct buffers; // a pool of equal buffers

struct buffer {
    struct buffers *pool;
    struct buffer *next; // while it is free
    void *data;
    _Atomic int refs;
};

int buffers_open(struct buffers **pool, size_t bytes);

// Every buffer must be back: close sockets and their context first.
void buffers_close(struct buffers **pool);

// One that only the caller needs; its contents are anything. NULL after fail().
struct buffer *buffer_get(struct buffers *pool);

void buffer_ref(struct buffer *b);
void buffer_unref(struct buffer *b); // takes NULL
bool buffer_shared(struct buffer *b);

// For zmq_msg_init_data(): hint is the buffer, of which the message took a
// reference.
void buffer_sent(void *data, void *hint);

#endif
