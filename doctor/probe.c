// probe.c - `lockstep probe` runs on another host for `lockstep doctor
// hosts=FILE`, and answers its questions.
//
// It reads one question a line from standard input, and prints one line for
// question number N: "@answer N", a tab, and the answer or "error WHY". The
// number shows which question a late answer belongs to. The probe ends when its
// input ends.
//
//     hello                      VERSION, a tab, the number of cores
//     time                       nanoseconds of the host's clock
//     iface ADDRESS              NAME MBIT of the interface; "- 0": none
//     look FOLDER TOKEN RANK     "seen" if FOLDER/TOKEN exists; it also
//                                creates FOLDER/TOKEN.RANK
//     listen ADDRESS TOKEN       PORT
//     accept SECONDS             "done" after one measurement
//     link ADDRESS PORT TOKEN    latency in s, bytes/s there, bytes/s back

#include "launch/command.h"

#include "base/base.h"
#include "base/median.h"
#include "base/secret.h"
#include "base/version.h"
#include "launch/cores.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// ---- latency and rate between two hosts
//
// A byte goes there and back many times over one TCP connection. Then each side
// sends as much as it can for a moment. A connection without the token, which
// both sides already know, is closed. Once connected, no side waits for the
// other for longer than LINK_WAIT_S.
//
//     connecting side              accepting side
//     token                   ->
//     a byte                 <->   the same byte back, ROUNDS times
//     data for moment_s       ->   counts the bytes
//     counts the bytes        <-   the rate that it saw; data for moment_s
//
// Socket buffers are small, so a slow link empties them soon after moment_s.

enum { LINK_TOKEN = 32, LINK_WAIT_S = 5 }; // characters; seconds
enum { ROUNDS = 51, BUFFER = 1 << 17, SENT = 1 << 17, RESULT = 48 };

static const double moment_s = 0.2;

struct link_speed {
    double latency_s;   // one way: half of the median round trip
    double there, back; // bytes/s, as the receiver counts them
};

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

// Opens a socket that listens at an IPv4 address. The caller closes *fd.
// Returns its port, or -1 after fail().
static int link_listen(int *fd, const char *address)
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
    return ntohs(a.sin_port);
}

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

// Waits up to `seconds` for a host with the token, and serves one measurement.
// 0, or -1 after fail().
static int link_accept(int listener, const char *token, double seconds)
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

// Connects to link_accept() on the other host, and fills *s. 0, or -1 after
// fail().
static int link_measure(struct link_speed *s, const char *address, int port,
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

// ---- questions

enum { LINE = PATH_MAX + 256, ANSWER = 512 };

struct probe {
    int listener; // -1: none
    char token[LINK_TOKEN + 1];
    char left[PATH_MAX]; // a file to remove, if the asking host cannot
};

static int hello(char out[ANSWER])
{
    char own[VERSION_TEXT];
    return text_into(out, ANSWER, "%s\t%d", version_text(own), cores_count());
}

static int tell_time(char out[ANSWER])
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return text_into(out, ANSWER, "%lld",
                     (long long)t.tv_sec * 1000000000 + t.tv_nsec);
}

// Returns the rate in Mbit/s that the driver reports; 0 if it reports none.
static int speed_of(const char *name)
{
    char path[64 + IF_NAMESIZE];
    int mbit = 0;
    snprintf(path, sizeof path, "/sys/class/net/%s/speed", name);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%d", &mbit) != 1)
        mbit = 0;
    if (f)
        fclose(f);
    return mbit > 0 ? mbit : 0;
}

static int find_interface(const char *address, char out[ANSWER])
{
    struct ifaddrs *all;
    struct in_addr want;
    int rc = -1;
    if (inet_pton(AF_INET, address, &want) != 1 || getifaddrs(&all))
        return fail("%s: not an IPv4 address", address);
    for (struct ifaddrs *i = all; i && rc; i = i->ifa_next) {
        const struct sockaddr_in *a = (const void *)i->ifa_addr;
        bool loops =
            (ntohl(want.s_addr) >> 24) == 127 && (i->ifa_flags & IFF_LOOPBACK);
        if (a && a->sin_family == AF_INET &&
            (loops || a->sin_addr.s_addr == want.s_addr))
            rc = text_into(out, ANSWER, "%s %d", i->ifa_name,
                           speed_of(i->ifa_name));
    }
    freeifaddrs(all);
    return rc ? text_into(out, ANSWER, "- 0") : 0;
}

static int look(struct probe *p, const char *folder, const char *token,
                int rank, char out[ANSWER])
{
    char *path = p->left;
    if (strchr(token, '/') || text_into(path, PATH_MAX, "%s/%s", folder, token))
        return fail("look: not a path");
    bool seen = access(path, F_OK) == 0;
    if (text_into(path, PATH_MAX, "%s/%s.%d", folder, token, rank))
        return -1;
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0)
        return fail("%s: %s", folder, strerror(errno));
    close(fd);
    return text_into(out, ANSWER, seen ? "seen" : "not seen");
}

// Answers one question.
static int answer(struct probe *p, char *line, char out[ANSWER])
{
    char *rest, *at[4] = {NULL};
    int n = 0;
    for (char *w = strtok_r(line, "\t\n", &rest); w && n < 4;
         w = strtok_r(NULL, "\t\n", &rest))
        at[n++] = w;
    if (n == 1 && !strcmp(at[0], "hello"))
        return hello(out);
    if (n == 1 && !strcmp(at[0], "time"))
        return tell_time(out);
    if (n == 2 && !strcmp(at[0], "iface"))
        return find_interface(at[1], out);
    if (n == 4 && !strcmp(at[0], "look"))
        return look(p, at[1], at[2], atoi(at[3]), out);
    if (n == 3 && !strcmp(at[0], "listen")) {
        if (text_into(p->token, sizeof p->token, "%s", at[2]))
            return -1;
        int port = link_listen(&p->listener, at[1]);
        return port < 0 ? -1 : text_into(out, ANSWER, "%d", port);
    }
    if (n == 2 && !strcmp(at[0], "accept") && p->listener >= 0) {
        int rc = link_accept(p->listener, p->token, atof(at[1]));
        close(p->listener);
        p->listener = -1;
        return rc ? -1 : text_into(out, ANSWER, "done");
    }
    struct link_speed s = {0};
    if (n == 4 && !strcmp(at[0], "link"))
        return link_measure(&s, at[1], atoi(at[2]), at[3]) ||
                       text_into(out, ANSWER, "%.9g %.9g %.9g", s.latency_s,
                                 s.there, s.back)
                   ? -1
                   : 0;
    return fail("probe: no such question");
}

static int probe(int nwords, char **words)
{
    char line[LINE], out[ANSWER];
    struct probe p = {.listener = -1};
    if (nwords)
        return fail("probe: takes no words, not %s", words[0]);
    for (long n = 1; fgets(line, sizeof line, stdin); n++) {
        if (answer(&p, line, out))
            printf("@answer %ld\terror %s\n", n, fail_message());
        else
            printf("@answer %ld\t%s\n", n, out);
        fflush(stdout);
    }
    if (p.listener >= 0)
        close(p.listener);
    if (*p.left)
        unlink(p.left);
    return 0;
}

const struct command command_probe = {.name = "probe", .run = probe};
