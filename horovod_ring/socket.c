// socket.c - sockets that never block, set up for bulk data.
//
// Three settings matter; each was measured. TCP_NODELAY: Nagle's algorithm
// would hold back the end of a message. Buffers of 1 MiB: smaller ones cost a
// third of the rate on loopback. Cubic congestion control: BBR, a common
// default, halves the rate of loopback and virtual links and changes between
// states.

#include "horovod_ring/tcp.h"

#include "base/base.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SOCKET_BUFFER = 1 << 20 };

// "10.0.0.0/24" as address and mask; false if the text is something else.
static bool parse_subnet(const char *text, uint32_t *net, uint32_t *mask)
{
    char dotted[32];
    unsigned bits;
    struct in_addr a;
    char tail;
    if (sscanf(text, "%31[0-9.]/%u%c", dotted, &bits, &tail) != 2 ||
        bits > 32 || inet_pton(AF_INET, dotted, &a) != 1)
        return false;
    *mask = bits ? ~0u << (32 - bits) : 0;
    *net = ntohl(a.s_addr) & *mask;
    return true;
}

int tcp_address(struct sockaddr_in *out, const char *iface)
{
    struct ifaddrs *all;
    uint32_t net, mask;
    *out = (struct sockaddr_in){.sin_family = AF_INET};
    out->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (!*iface)
        return 0;
    bool subnet = parse_subnet(iface, &net, &mask);
    if (getifaddrs(&all))
        return fail("ring: getifaddrs: %s", strerror(errno));
    char names[200] = "";
    bool found = false;
    for (struct ifaddrs *i = all; i && !found; i = i->ifa_next) {
        if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET)
            continue;
        struct sockaddr_in a;
        memcpy(&a, i->ifa_addr, sizeof a);
        found = subnet ? (ntohl(a.sin_addr.s_addr) & mask) == net
                       : !strcmp(i->ifa_name, iface);
        if (found)
            out->sin_addr = a.sin_addr;
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, " %s", i->ifa_name);
    }
    freeifaddrs(all);
    if (found)
        return 0;
    return fail("ring: iface=%s: no such interface with an IPv4 address; try "
                "one of:%s",
                iface, names);
}

int tcp_listen(const struct sockaddr_in *address)
{
    char text[INET_ADDRSTRLEN];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return fail("ring: socket: %s", strerror(errno));
    if (!bind(fd, (const struct sockaddr *)address, sizeof *address) &&
        !listen(fd, SOMAXCONN))
        return fd;
    int error = errno;
    close(fd);
    inet_ntop(AF_INET, &address->sin_addr, text, sizeof text);
    return fail("ring: listen on %s: %s", text, strerror(error));
}

static int set_up(int fd)
{
    int one = 1, bytes = SOCKET_BUFFER;
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) ||
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes) ||
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes))
        return fail("ring: setsockopt: %s", strerror(errno));
    // A kernel without cubic keeps its own: perhaps slower, but correct.
    (void)!setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5);
    return 0;
}

static int fail_connect(const struct sockaddr_in *to, int error)
{
    char text[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &to->sin_addr, text, sizeof text);
    return fail("connect to %s:%d: %s; try: iface=", text, ntohs(to->sin_port),
                strerror(error));
}

int tcp_begin(const struct sockaddr_in *to)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return fail("socket: %s", strerror(errno));
    if (set_up(fd)) {
        close(fd);
        return -1;
    }
    if (!connect(fd, (const struct sockaddr *)to, sizeof *to) ||
        errno == EINPROGRESS)
        return fd;
    int error = errno;
    close(fd);
    return fail_connect(to, error);
}

int tcp_connected(int fd, const struct sockaddr_in *to)
{
    int error = 0;
    socklen_t len = sizeof error;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len))
        error = errno;
    return error ? fail_connect(to, error) : 0;
}

int tcp_accept(int listener)
{
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == ECONNABORTED || errno == EINTR))
            continue;
        if (fd < 0 && errno == EAGAIN)
            return TCP_NONE;
        if (fd < 0) {
            bool full = errno == EMFILE || errno == ENFILE;
            fail("accept: %s", strerror(errno));
            return full ? TCP_FULL : -1;
        }
        if (!set_up(fd))
            return fd;
        close(fd);
        return -1;
    }
}
