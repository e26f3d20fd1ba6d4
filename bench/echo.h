// echo.h - the peer of the parameter servers: raw ZeroMQ that adds nothing.
//
// The same pattern over the same sockets: every worker sends its gradients in
// slices, a few ahead of the answers, to one or more servers that send each
// back. What it takes is what ZeroMQ takes; a server cannot be faster.

#ifndef BENCH_ECHO_H
#define BENCH_ECHO_H

#include "sync/sync.h"

struct echo; // a server

// Listen; stores where in endpoint[MESSAGE_ENDPOINT]. 0, or -1 after fail().
int echo_open(struct echo **e, const char *bind, double timeout_s,
              char *endpoint);

// Send back what comes, until echo_stop() is called from another thread. 0, or
// -1 after fail().
int echo_run(struct echo *e);
void echo_stop(struct echo *e);
void echo_close(struct echo **e);

// The worker's end. Settings: servers=, slice_kb=, wire=. It leaves parameters
// as they are.
extern const struct sync_ops sync_echo;

#endif
