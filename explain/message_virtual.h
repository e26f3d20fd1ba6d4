// message_virtual.h - messages between ranks of a virtual cluster: endpoints
// are virtual://RANK.

#ifndef EXPLAIN_MESSAGE_VIRTUAL_H
#define EXPLAIN_MESSAGE_VIRTUAL_H

#include "message/message.h"

// Of the rank that the calling thread is. Heads are envelopes. Waiting knows no
// time limit: what never comes is a deadlock, which ends the rank.
extern const struct message_ops message_virtual;

// What an envelope held: the head of its message, and the bytes of its data.
const void *message_virtual_head(const void *envelope);
size_t message_virtual_bytes(const void *envelope);

#endif
