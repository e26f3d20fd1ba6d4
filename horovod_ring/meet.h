// meet.h - members of a group find each other over TCP.

#pragma once

#include <stdbool.h>

struct cluster;

// Whether member `from` connects to member `to`; the same on all members.
typedef bool meet_rule(int from, int to, int world);

// Every member listens on iface=, publishes its address to all others through
// the cluster, connects where the rule says so and accepts the others, within
// the cluster's deadline. Both ends of a connection prove that they know the
// acceptor's key, which travels through the cluster only, and the job's secret,
// if it has one. An unauthenticated peer is refused and cannot delay the
// others. called[rank], accepted[rank]: sockets, or -1; the caller closes them,
// after a failure too. `name` begins errors. All members call it. Returns 0, or
// -1 after fail().
int meet(struct cluster *c, const char *name, const char *iface,
         meet_rule *calls, int *called, int *accepted);
