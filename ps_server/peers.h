// peers.h - which workers are connected, expected or gone.

#pragma once

#include "ps_server/server.h"

// Returns the rank of the worker at this address, or -1 if it is unknown. The
// search begins with `likely`.
int peers_find(const struct server *s, const struct message_peer *from,
               int likely);

// Handles a HELLO of `bytes` bytes: admits its sender. The first HELLO
// describes the job. Returns 0, or -1 after fail().
int peers_hello(struct server *s, const struct message_peer *from,
                const void *data, size_t bytes);

// Handles a BYE, which a worker says after its last step.
void peers_goodbye(struct server *s, int rank);

// Handles a BUSY: the worker works for longer than the deadline. The others,
// who may wait for it, are told.
void peers_busy(struct server *s, int rank);

// Call it often: it notices workers that are gone, and ends waits that take too
// long. `drained`: all messages have been read.
void peers_tick(struct server *s, bool drained);
