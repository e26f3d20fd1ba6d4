// tcp.h - sockets that never block, for the ring's TCP transport.

#pragma once

#include <netinet/in.h>
#include <stdint.h>

// *out: our own address for iface=TEXT, with port 0. "" is loopback; else the
// text is the name of an interface, or a subnet ("10.0.0.0/24") that contains
// an address of this host. Returns 0, or -1 after fail().
int tcp_address(struct sockaddr_in *out, const char *iface);

// Sockets; the caller closes them. Those that connect or were accepted do not
// block and are set up for bulk data.
// tcp_listen: a socket that listens, or -1 after fail().
// tcp_begin: a socket that begins to connect, or -1 after fail(). When it is
// writable, call tcp_connected(), which returns 0, or -1 after fail() if it
// could not connect.
// tcp_accept: a connection that is waiting; TCP_NONE if there is none; TCP_FULL
// after fail() if no descriptor is left; -1 after fail().
enum { TCP_NONE = -2, TCP_FULL = -3 };
int tcp_listen(const struct sockaddr_in *address);
int tcp_begin(const struct sockaddr_in *to);
int tcp_connected(int fd, const struct sockaddr_in *to);
int tcp_accept(int listener);
