// net.h - an emulated cluster: hosts that are network namespaces, on a switch
// whose every port has a rate.
//
//     host 0 --veth--+             each end of each cable: tc tbf rate R
//     host 1 --veth--+- bridge     routes say "congctl cubic"
//     host 2 --veth--+             in a namespace of its own: the switch
//
// net=RATE[,hosts=N]. Namespaces are called ls<pid>-<start>-<host>, by the
// number of the launcher and the time when it started, so that the next start
// can tell, and clear away, what a killed launcher left. Needs root.

#ifndef NETNS_NETNS_H
#define NETNS_NETNS_H

#include <stdbool.h>
#include <stddef.h>

struct netns;

enum { NETNS_NAME = 24, NETNS_HOSTS = 64 };

// Whether `text` is what netns_open() takes. 0, or -1 after fail().
int netns_check(const char *text, int hosts);

// Make it: rate and number of hosts from `text`, or `hosts` where that says
// nothing. 0, or -1 after fail() (not root, no ip or tc), then nothing is left.
int netns_open(struct netns **n, const char *text, int hosts);
void netns_close(struct netns **n);

int netns_hosts(const struct netns *n);

// The namespace of a host, which is also its host name; and its address.
const char *netns_name(const struct netns *n, int host);
const char *netns_address(const struct netns *n, int host);

// All hosts' addresses, as "10.77.0.0/24".
const char *netns_subnet(void);

// Remove the namespaces of launchers that are no longer there.
void netns_sweep(void);

// Put the calling process on host `name`: its network, and its name. 0, or -1
// with errno.
int netns_enter(const char *name);

#endif
