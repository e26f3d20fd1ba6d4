// link_speed.h - measures latency and rate between two hosts. A byte goes there
// and back many times over one TCP connection. Then each side sends as much as
// it can for a moment.
//
// The connecting side sends a token that both sides already know. A connection
// without the token is closed. Once connected, no side waits for the other for
// longer than LINK_WAIT_S.

#pragma once

enum { LINK_TOKEN = 32, LINK_WAIT_S = 5 }; // characters; seconds

struct link_speed {
    double latency_s;   // one way: half of the median round trip
    double there, back; // bytes/s, as the receiver counts them
};

// Opens a socket that listens at an IPv4 address, and stores its port. The
// caller closes *fd. 0, or -1 after fail().
int link_listen(int *fd, const char *address, int *port);

// Waits up to `seconds` for a host with the token, and serves one measurement.
// 0, or -1 after fail().
int link_accept(int listener, const char *token, double seconds);

// Connects to link_accept() on the other host, and fills *s. 0, or -1 after
// fail().
int link_measure(struct link_speed *s, const char *address, int port,
                 const char *token);
