// meet.h - members of a group find each other over TCP.

#ifndef HOROVOD_RING_MEET_H
#define HOROVOD_RING_MEET_H

#include <stdbool.h>

struct cluster;

// Whether member `from` connects to member `to`; the same on all members.
typedef bool meet_rule(int from, int to, int world);

// Every member listens on iface=, tells all others where through the cluster,
// connects where the rule says so and accepts the others, within the cluster's
// deadline. A caller must know the token of the member that it connects to,
// which only travels through the cluster: a stranger is turned away.
// called[rank], accepted[rank]: sockets, or -1; the caller closes them, after a
// failure too. `name` begins errors. 0, or -1 after fail().
int meet(struct cluster *c, const char *name, const char *iface,
         meet_rule *calls, int *called, int *accepted);

#endif
