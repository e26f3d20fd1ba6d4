// servers.h - servers of a bench: each runs in a thread of a worker's process.

#pragma once

#include "config/settings.h"

#include <stdbool.h>

struct cluster;
struct servers;

// Starts a server in a thread of each of the first `count` workers. All workers
// call it; *s is NULL on workers without a server. With `echo`, the server only
// sends slices back; else it is a parameter server with `threads` threads.
// `host` is an emulated host, or "" for the worker's own. `iface` is as in
// iface=; "" is loopback. *where gets the addresses of all servers. Returns 0,
// or -1 after fail(). Call servers_close() in both cases.
int servers_open(struct servers **s, struct cluster *c, int count, bool echo,
                 int threads, const char *host, const char *iface,
                 struct sync_servers *where);

// Waits until the server has ended. A parameter server ends when all workers
// have left; if the job has failed, it is stopped. An echo is always stopped.
// Returns 0, or -1 after fail(). *s may be NULL.
int servers_close(struct servers **s, bool failed);
