// ps_servers.h - parameter servers for tests: forked, on ports of their own.

#ifndef TESTS_PS_SERVERS_H
#define TESTS_PS_SERVERS_H

#include <stddef.h>
#include <sys/types.h>

enum { PS_SERVERS_MAX = 16 };

struct ps_servers {
    int n;
    pid_t pids[PS_SERVERS_MAX];
    char endpoints[512]; // comma-separated, in order
};

// 0, or -1 after fail(). curve: a folder of keys or "".
int ps_servers_start(struct ps_servers *s, int n, int threads, double timeout_s,
                     const char *curve);

// Wait until they have ended by themselves, for some seconds, then kill them.
// How many ended with status 0.
int ps_servers_stop(struct ps_servers *s);

#endif
