// host.h - the addresses behind the names of hosts in endpoints.

#pragma once

#include "message/message.h"

#include <netinet/in.h>

// The IPv4 address of a host, or of a network interface, in network order; 0:
// none, or every address (0.0.0.0).
in_addr_t host_address(const char *name);

// The NAME in "tcp://NAME:PORT". 0, or -1 if the endpoint has no name.
int host_of(const char *endpoint, char name[MESSAGE_ENDPOINT]);

// Turns "tcp://NAME:PORT" into "tcp://ADDRESS:PORT", because ZeroMQ listens at
// addresses and interfaces only. Other endpoints stay as they are. 0, or -1
// after fail(), also if nobody knows the name.
int host_numbers(const char *endpoint, char out[MESSAGE_ENDPOINT]);
