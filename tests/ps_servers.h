// ps_servers.h - parameter servers for tests: forked processes on free ports.

#pragma once

#include <stddef.h>
#include <sys/types.h>

enum { PS_SERVERS_MAX = 16 };

struct ps_servers {
    int n;
    pid_t pids[PS_SERVERS_MAX];
    char endpoints[512]; // comma-separated, in order
};

// Starts n servers with `threads` threads each. curve: a folder of keys, or "".
// Returns 0, or -1 after fail().
int ps_servers_start(struct ps_servers *s, int n, int threads, double timeout_s,
                     const char *curve);

// Waits at most 30 seconds for each server to end, then kills it. Returns how
// many servers ended with status 0.
int ps_servers_stop(struct ps_servers *s);
