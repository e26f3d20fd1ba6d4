// net.h - an emulated cluster: hosts that are network namespaces, on a switch
// whose every port has a rate.
//
//     host 0 --veth--+             each end of each cable: tc tbf rate R
//     host 1 --veth--+- bridge     routes say "congctl cubic"
//     host 2 --veth--+             in a namespace of its own: the switch
//
// net=RATE[,hosts=N]. Namespaces are called ls<pid>-<host>, so that the next
// start can tell, and clear away, what a killed launcher left. Needs root.

#ifndef CLUSTER_NET_H
#define CLUSTER_NET_H

#include <stdbool.h>
#include <stddef.h>

struct net;

enum { NET_NAME = 24, NET_HOSTS = 64 };

// Make it: rate and number of hosts from `text`, or `hosts` where that says
// nothing. 0, or -1 after fail() (not root, no ip or tc), then nothing is left.
int net_open(struct net **n, const char *text, int hosts);
void net_close(struct net **n);

int net_hosts(const struct net *n);

// The namespace of a host, which is also its host name; and its address.
const char *net_name(const struct net *n, int host);
const char *net_address(const struct net *n, int host);

// All hosts' addresses, as "10.77.0.0/24".
const char *net_subnet(void);

// Remove the namespaces of launchers that are no longer there.
void net_sweep(void);

// Put the calling process on host `name`: its network, and its name. 0, or -1
// with errno.
int net_enter(const char *name);

#endif
