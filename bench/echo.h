// echo.h - raw ZeroMQ without addition, with which parameter servers are
// compared.
//
// It uses the same pattern over the same sockets: every worker sends its
// gradients in slices to one or more servers, which send each slice back. A
// worker sends a few slices before the first answer comes. This takes the time
// of ZeroMQ alone, so a parameter server cannot be faster.

#pragma once

#include "sync/sync.h"

struct echo; // a server

// Listens at `bind`, and stores the address in endpoint[MESSAGE_ENDPOINT].
// Returns 0, or -1 after fail().
int echo_open(struct echo **e, const char *bind, double timeout_s,
              char *endpoint);

// Sends every message back, until another thread calls echo_stop(). Returns 0,
// or -1 after fail().
int echo_run(struct echo *e);
void echo_stop(struct echo *e);
void echo_close(struct echo **e);

// The worker's side, as a strategy. It reads servers=, slice_kb= and wire=, and
// does not change the parameters.
extern const struct sync_ops sync_echo;
