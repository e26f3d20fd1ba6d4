// message_virtual.h - messages between ranks of a virtual cluster: endpoints
// are virtual://RANK.

#ifndef EXPLAIN_MESSAGE_VIRTUAL_H
#define EXPLAIN_MESSAGE_VIRTUAL_H

#include "message/message.h"

// The calling thread is a rank; these are its messages. Heads travel as
// envelopes. A wait has no time limit: if a message never comes, that is a
// deadlock, and a deadlock ends the rank.
extern const struct message_ops message_virtual;

// The contents of an envelope: its message's head, and the bytes of its data.
const void *message_virtual_head(const void *envelope);
size_t message_virtual_bytes(const void *envelope);

#endif
