// tcp.h - sockets that never block: what the ring's TCP transport is made of.

#ifndef HOROVOD_RING_TCP_H
#define HOROVOD_RING_TCP_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

// Our own address for iface=TEXT: "" is loopback, else an interface's name or
// a subnet ("10.0.0.0/24") that one of ours is in. Port 0.
int tcp_address(struct sockaddr_in *out, const char *iface);

// A socket, or -1 after fail(). Those that connect or were accepted do not
// block, and are set up for bulk data. begin: to be connected once it can be
// written to; connected: whether it is then, 0, or -1 after fail(). accept: who
// is here now, TCP_NONE, or TCP_FULL after fail() where no descriptor is left.
enum { TCP_NONE = -2, TCP_FULL = -3 };
int tcp_listen(const struct sockaddr_in *address);
int tcp_begin(const struct sockaddr_in *to);
int tcp_connected(int fd, const struct sockaddr_in *to);
int tcp_accept(int listener);

// Send or receive what can be moved now, to or from rank `peer`. How many
// bytes; 0 if none; -1 after fail(), which `name` begins: the peer is gone.
ssize_t tcp_send_some(int fd, const struct iovec *v, int n, const char *name,
                      int peer);
ssize_t tcp_recv_some(int fd, void *p, size_t bytes, const char *name,
                      int peer);

#endif
