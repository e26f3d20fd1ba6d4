// closed_port.h - an endpoint on which nobody listens, and no other process
// can.

#pragma once

#include "base/base.h"

#include <arpa/inet.h>
#include <sys/socket.h>

enum { CLOSED_PORT_TEXT = 32 };

// Binds a port of 127.0.0.1 without listening on it. Writes it to `endpoint` as
// "tcp://127.0.0.1:PORT". Returns the socket; the caller closes it.
static int closed_port(char endpoint[CLOSED_PORT_TEXT])
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && !bind(fd, (struct sockaddr *)&a, sizeof a) &&
          !getsockname(fd, (struct sockaddr *)&a, &size));
    CHECK(!text_into(endpoint, CLOSED_PORT_TEXT, "tcp://127.0.0.1:%d",
                     ntohs(a.sin_port)));
    return fd;
}
