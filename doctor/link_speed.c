// link_speed.c - runs either side of a measurement between two hosts.
//
//     connecting side              accepting side
//     token                   ->
//     a byte                 <->   the same byte back, ROUNDS times
//     data for moment_s       ->   counts the bytes
//     counts the bytes        <-   the rate that it saw; data for moment_s
//
// Socket buffers are small, so a slow link empties them soon after moment_s.

#include "doctor/link_speed.h"

#include "base/base.h"
#include "base/median.h"
#include "base/secret.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 51, BUFFER = 1 << 17, SENT = 1 << 17, RESULT = 48 };

static const double moment_s = 0.2;

static int open_socket(int *fd)
{
    const struct timeval most = {.tv_sec = LINK_WAIT_S};
    const int on = 1, size = BUFFER;
    *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*fd < 0)
        return fail("socket: %s", strerror(errno));
    setsockopt(*fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    setsockopt(*fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    setsockopt(*fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
    setsockopt(*fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return 0;
}

static int read_address(struct sockaddr_in *a, const char *address, int port)
{
    *a = (struct sockaddr_in){.sin_family = AF_INET,
                              .sin_port = htons((uint16_t)port)};
    return inet_pton(AF_INET, address, &a->sin_addr) == 1
               ? 0
               : fail("%s: not an IPv4 address", address);
}

int link_listen(int *fd, const char *address, int *port)
{
    struct sockaddr_in a;
    socklen_t n = sizeof a;
    if (read_address(&a, address, 0) || open_socket(fd))
        return -1;
    if (bind(*fd, (void *)&a, sizeof a) || listen(*fd, 8) ||
        getsockname(*fd, (void *)&a, &n)) {
        int err = errno;
        close(*fd);
        *fd = -1;
        return fail("listen at %s: %s", address, strerror(err));
    }
    *port = ntohs(a.sin_port);
    return 0;
}

// ---- bytes

static int late(void)
{
    bool timed = errno == EAGAIN || errno == EWOULDBLOCK;
    return timed ? fail("the other side was silent for %d s", LINK_WAIT_S)
                 : fail("the connection failed: %s", strerror(errno));
}

static int put(int fd, const void *data, size_t n)
{
    for (const char *p = data; n > 0;) {
        ssize_t sent = send(fd, p, n, MSG_NOSIGNAL);
        if (sent < 0)
            return late();
        p += sent;
        n -= (size_t)sent;
    }
    return 0;
}

static int take(int fd, void *data, size_t n)
{
    ssize_t got = recv(fd, data, n, MSG_WAITALL);
    if (got < 0)
        return late();
    return (size_t)got == n ? 0 : fail("the other side closed the connection");
}

// Sends as much as it can for moment_s seconds, then ends the stream.
static int push(int fd)
{
    static const char data[SENT];
    uint64_t end = now_ns() + (uint64_t)(moment_s * 1e9);
    while (now_ns() < end)
        if (put(fd, data, sizeof data))
            return -1;
    return shutdown(fd, SHUT_WR) ? late() : 0;
}

// Measures bytes/s from the arrival of the first piece to that of the last. The
// first piece's bytes do not count.
static int count(int fd, double *rate)
{
    char data[SENT];
    uint64_t first = 0, last = 0, bytes = 0;
    for (;;) {
        ssize_t got = recv(fd, data, sizeof data, 0);
        if (got < 0)
            return late();
        if (got == 0)
            break;
        last = now_ns();
        bytes += first ? (uint64_t)got : 0;
        first = first ? first : last;
    }
    *rate = last > first ? (double)bytes * 1e9 / (double)(last - first) : 0;
    return 0;
}

// ---- the two sides

static int serve(int fd)
{
    char byte, text[RESULT] = "";
    double rate;
    for (int i = 0; i < ROUNDS; i++)
        if (take(fd, &byte, 1) || put(fd, &byte, 1))
            return -1;
    if (count(fd, &rate))
        return -1;
    snprintf(text, sizeof text, "%.9g", rate);
    return put(fd, text, sizeof text) || push(fd) ? -1 : 0;
}

// Accepts one connection. Returns its socket if it shows the token, else -1.
static int admit(int listener, const char *token)
{
    char shown[LINK_TOKEN];
    const struct timeval most = {.tv_sec = 1};
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    if (recv(fd, shown, sizeof shown, MSG_WAITALL) == LINK_TOKEN &&
        secret_same(shown, token, LINK_TOKEN))
        return fd;
    close(fd);
    return -1;
}

int link_accept(int listener, const char *token, double seconds)
{
    const struct timeval most = {.tv_sec = LINK_WAIT_S};
    const int on = 1;
    uint64_t end = now_ns() + (uint64_t)(seconds * 1e9);
    struct pollfd incoming = {.fd = listener, .events = POLLIN};
    for (uint64_t now; (now = now_ns()) < end;) {
        if (poll(&incoming, 1, (int)((end - now) / 1000000) + 1) <= 0)
            continue;
        int fd = admit(listener, token);
        if (fd < 0)
            continue;
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        int rc = serve(fd);
        close(fd);
        return rc;
    }
    return fail("nobody connected within %g s", seconds);
}

static int measure(int fd, struct link_speed *s)
{
    double trips[ROUNDS];
    char byte = 0, text[RESULT];
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t began = now_ns();
        if (put(fd, &byte, 1) || take(fd, &byte, 1))
            return -1;
        trips[i] = (double)(now_ns() - began) * 1e-9;
    }
    if (push(fd) || take(fd, text, sizeof text) || count(fd, &s->back))
        return -1;
    text[RESULT - 1] = '\0';
    s->there = atof(text);
    s->latency_s = median(trips, ROUNDS) / 2;
    return 0;
}

int link_measure(struct link_speed *s, const char *address, int port,
                 const char *token)
{
    struct sockaddr_in a;
    int fd, rc = -1;
    if (strlen(token) != LINK_TOKEN)
        return fail("link: no token");
    if (read_address(&a, address, port) || open_socket(&fd))
        return -1;
    if (connect(fd, (void *)&a, sizeof a))
        fail("connect to %s:%d: %s", address, port,
             errno == EINPROGRESS ? "no answer" : strerror(errno));
    else
        rc = put(fd, token, LINK_TOKEN) || measure(fd, s) ? -1 : 0;
    close(fd);
    return rc;
}
