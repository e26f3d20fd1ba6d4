// link_speed.h - how fast two hosts are to each other: a byte goes there and
// back many times over one TCP connection, then as much as can for a moment.
//
// Who connects shows a token that both were told over another way; a stranger
// is sent off. No wait is longer than LINK_WAIT_S.

#ifndef LOCKSTEP_LINK_SPEED_H
#define LOCKSTEP_LINK_SPEED_H

enum { LINK_TOKEN = 32, LINK_WAIT_S = 5 }; // characters; seconds

struct link_speed {
    double latency_s;   // one way: half of the median round trip
    double there, back; // bytes/s, as the receiver counts them
};

// A socket that listens at an IPv4 address; its port. 0, or -1 after fail().
int link_listen(int *fd, const char *address, int *port);

// One measurement with whoever shows the token, within `seconds`. 0, or -1
// after fail().
int link_accept(int listener, const char *token, double seconds);

// The other side of it. 0, or -1 after fail().
int link_measure(struct link_speed *s, const char *address, int port,
                 const char *token);

#endif
