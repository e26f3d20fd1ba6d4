// servers.h - servers of a bench: a thread beside some of its workers.

#ifndef BENCH_SERVERS_H
#define BENCH_SERVERS_H

#include "config/settings.h"

#include <stdbool.h>

struct cluster;
struct servers;

// Start a server in a thread of each of the first `count` workers, on the
// address of iface= ("" for loopback), with `threads` that add, or one that
// only echoes, on the emulated host `host` ("" for the worker's own). All
// workers call it; *s is NULL on those without one. *where: all of them. 0, or
// -1 after fail(); servers_close() follows.
int servers_open(struct servers **s, struct cluster *c, int count, bool echo,
                 int threads, const char *host, const char *iface,
                 struct sync_servers *where);

// Wait until the server has ended, as it does when all workers have left; an
// echo, which does not notice, is stopped, and so is any if the job has failed.
// 0, or -1 after fail(). Takes NULL.
int servers_close(struct servers **s, bool failed);

#endif
