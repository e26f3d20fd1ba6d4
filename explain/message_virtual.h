// message_virtual.h - messages between ranks of a virtual cluster. Endpoints
// are virtual://RANK.

#pragma once

#include "message/message.h"

// The transport of the servers and their clients. The calling thread must be a
// rank of a virtual cluster. Each message has an envelope with its head. A wait
// has no time limit: if a message never comes, that is a deadlock, and a
// deadlock ends the rank.
extern const struct message_ops message_virtual;

// The contents of an envelope: the head of its message (borrowed from the
// envelope), and the number of payload bytes that follow the envelope.
const void *message_virtual_head(const void *envelope);
size_t message_virtual_bytes(const void *envelope);
