// netns.h - an emulated cluster: each host is a network namespace, connected to
// a switch by a link with a limited rate.
//
//     host 0 --veth--+             each end of each cable: tc tbf rate R
//     host 1 --veth--+- bridge     routes have "congctl cubic"
//     host 2 --veth--+             the bridge is in its own namespace
//
// The setting is net=RATE[,hosts=N]. Namespaces are called
// ls<pid>-<number>-<host>, with the launcher's process number, and the bridge's
// ls<pid>-<number>-sw. The launcher holds a lock on the latter. So the next
// launcher, in whatever namespaces of processes or of time, can recognise and
// remove those that a killed launcher left. Needs root.

#pragma once

#include <stdbool.h>
#include <stddef.h>

struct netns;

enum { NETNS_NAME = 24, NETNS_HOSTS = 64 };

// Whether netns_open() takes `text`. 0, or -1 after fail().
int netns_check(const char *text, int hosts);

// Whether this process may make network namespaces: root, unless a container
// took the right away.
bool netns_allowed(void);

// Makes the emulated cluster with the rate and number of hosts of `text`, or
// with `hosts` hosts if `text` has no number. 0, or -1 after fail() (not root,
// no ip or tc); then nothing is left. netns_close() removes it, logs what it
// cannot remove, and leaves fail_message() as it was.
int netns_open(struct netns **n, const char *text, int hosts);
void netns_close(struct netns **n);

// The number of hosts.
int netns_hosts(const struct netns *n);

// The namespace of a host, which is also its host name; its IPv4 address. Both
// belong to n.
const char *netns_name(const struct netns *n, int host);
const char *netns_address(const struct netns *n, int host);

// The network of all hosts: "10.77.0.0/24".
const char *netns_subnet(void);

// Removes the namespaces of launchers that do not run any more.
void netns_sweep(void);

// Moves the calling process to host `name`: to its network namespace, and to
// its host name. 0, or -1 with errno set.
int netns_enter(const char *name);
