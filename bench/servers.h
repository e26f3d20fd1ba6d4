// servers.h - servers of a bench: each runs in a thread of a worker's process.

#ifndef BENCH_SERVERS_H
#define BENCH_SERVERS_H

#include "config/settings.h"

#include <stdbool.h>

struct cluster;
struct servers;

// Starts a server in a thread of each of the first `count` workers. All workers
// call it; *s is NULL on workers without a server. echo: the server only sends
// slices back; else it is a parameter server with `threads` threads. host: an
// emulated host; "": the worker's own. iface: as iface=; "": loopback. *where
// gets the addresses of all servers. 0, or -1 after fail(). Call
// servers_close() in both cases.
int servers_open(struct servers **s, struct cluster *c, int count, bool echo,
                 int threads, const char *host, const char *iface,
                 struct sync_servers *where);

// Waits until the server has ended. A parameter server ends when all workers
// have left; if the job has failed, it is stopped. An echo is always stopped.
// 0, or -1 after fail(). Takes a pointer to NULL.
int servers_close(struct servers **s, bool failed);

#endif
