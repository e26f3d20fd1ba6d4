// link_perf.c - measures a link over TCP: its rate and its round-trip time.
//
//     link_perf net=1gbit[,hosts=2]     between emulated hosts
//     link_perf                         over loopback, for comparison
//     link_perf net=1gbit out=link.json also writes the link (sync/link.h)
//
// A client writes a stream of 64 KiB blocks for two seconds. Then it makes
// round trips of 4 bytes, and sends messages of several sizes, each answered by
// 4 bytes. First one client does this, then two at the same time, one in each
// direction. Congestion control is cubic, as for the ring. The link t = alpha +
// bytes/B that fits the first client's messages best is printed, with the
// largest relative error of the fit. The long messages are much longer than the
// 256 KiB that an emulated link's token bucket lets through at once.

#include "base/base.h"
#include "base/file.h"
#include "base/median.h"
#include "netns/netns.h"
#include "sync/link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCK = 1 << 16, TRIPS = 2000, WARM = 200, SIZES = 4, ROUNDS = 9 };

static const double seconds = 2;
static const int sizes[SIZES] = {4, 4 << 20, 16 << 20, 32 << 20};

struct result { // of one client
    double gbit_per_s, round_us;
    double message_s[SIZES]; // one way, without the answer
};

struct end {
    const char *host; // emulated host; NULL: this machine
    const char *address;
};

static void enter(const struct end *e)
{
    if (e->host && netns_enter(e->host))
        die("host %s: %s", e->host, strerror(errno));
}

static void use_cubic(int fd)
{
    static const char name[] = "cubic";
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, sizeof name - 1);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static struct sockaddr_in address_of(const struct end *e, int port)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)port)};
    inet_pton(AF_INET, e->address, &a.sin_addr);
    return a;
}

static void move_all(int fd, char *buffer, size_t n, bool send_it)
{
    for (size_t at = 0; at < n;) {
        ssize_t k = send_it ? write(fd, buffer + at, n - at)
                            : read(fd, buffer + at, n - at);
        if (k <= 0)
            die("bench link: %s", k ? strerror(errno) : "closed");
        at += (size_t)k;
    }
}

// Sends or receives a message of n bytes of any value, in blocks.
static void move(int fd, char *buffer, size_t n, bool send_it)
{
    for (size_t at = 0; at < n; at += BLOCK)
        move_all(fd, buffer, n - at < BLOCK ? n - at : BLOCK, send_it);
}

// The server: reads a stream, reports its bytes and time, then answers
// messages.
static void serve(int fd)
{
    static char buffer[BLOCK];
    uint64_t bytes = 0, begin = 0, end = 0;
    ssize_t k;
    while ((k = read(fd, buffer, sizeof buffer)) > 0) {
        if (!begin)
            begin = now_ns();
        end = now_ns();
        bytes += (uint64_t)k;
        if (buffer[k - 1]) // the stream's last byte is not zero
            break;
    }
    double report[2] = {(double)bytes, (double)(end - begin) * 1e-9};
    move_all(fd, (char *)report, sizeof report, true);
    for (int i = 0; i < WARM + TRIPS; i++) {
        move_all(fd, buffer, 4, false);
        move_all(fd, buffer, 4, true);
    }
    for (int i = 0; i < SIZES * ROUNDS; i++) {
        move(fd, buffer, (size_t)sizes[i / ROUNDS], false);
        move_all(fd, buffer, 4, true);
    }
}

// The child ends with its parent.
static pid_t fork_child(void)
{
    pid_t parent = getpid(), pid = fork();
    if (pid == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent))
        _exit(1);
    return pid;
}

static pid_t start_server(const struct end *e, int *port)
{
    int ready[2];
    if (pipe(ready))
        die("pipe: %s", strerror(errno));
    pid_t pid = fork_child();
    if (pid == 0) {
        enter(e);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct sockaddr_in a = address_of(e, 0);
        socklen_t n = sizeof a;
        use_cubic(fd);
        if (fd < 0 || bind(fd, (struct sockaddr *)&a, n) || listen(fd, 4) ||
            getsockname(fd, (struct sockaddr *)&a, &n))
            die("%s: %s", e->address, strerror(errno));
        int number = ntohs(a.sin_port);
        if (write(ready[1], &number, sizeof number) != sizeof number)
            die("pipe: %s", strerror(errno));
        serve(accept(fd, NULL, NULL));
        _exit(0);
    }
    if (pid < 0 || read(ready[0], port, sizeof *port) != sizeof *port)
        die("bench link: the server did not start");
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static void measure(const struct end *from, const struct end *to, int port,
                    struct result *out)
{
    static char buffer[BLOCK];
    static double trips[TRIPS];
    enter(from);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = address_of(to, port);
    use_cubic(fd);
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a))
        die("%s: %s", to->address, strerror(errno));
    uint64_t until = now_ns() + (uint64_t)(seconds * 1e9);
    while (now_ns() < until)
        move_all(fd, buffer, sizeof buffer, true);
    buffer[0] = 1;
    move_all(fd, buffer, 1, true);
    double report[2];
    move_all(fd, (char *)report, sizeof report, false);
    for (int i = -WARM; i < TRIPS; i++) {
        uint64_t start = now_ns();
        move_all(fd, buffer, 4, true);
        move_all(fd, buffer, 4, false);
        if (i >= 0)
            trips[i] = (double)(now_ns() - start) * 1e-3;
    }
    out->gbit_per_s = report[0] * 8e-9 / report[1];
    out->round_us = median(trips, TRIPS);
    for (int i = 0; i < SIZES; i++) {
        double times[ROUNDS];
        for (int k = 0; k < ROUNDS; k++) {
            uint64_t start = now_ns();
            move(fd, buffer, (size_t)sizes[i], true);
            move_all(fd, buffer, 4, false);
            times[k] = (double)(now_ns() - start) * 1e-9;
        }
        out->message_s[i] = median(times, ROUNDS) - out->round_us * 0.5e-6;
    }
    close(fd);
}

// Measures n pairs of ends at the same time, and prints a row for each. *out:
// the result of the last pair.
static void run(const struct end (*pairs)[2], int n, const char *what,
                struct result *out)
{
    pid_t servers[2], clients[2];
    int pipes[2][2];
    for (int i = 0; i < n; i++) {
        int port;
        servers[i] = start_server(&pairs[i][1], &port);
        if (pipe(pipes[i]))
            die("pipe: %s", strerror(errno));
        clients[i] = fork_child();
        if (clients[i] == 0) {
            measure(&pairs[i][0], &pairs[i][1], port, out);
            _exit(write(pipes[i][1], out, sizeof *out) != sizeof *out);
        }
    }
    for (int i = 0; i < n; i++) {
        int status;
        if (read(pipes[i][0], out, sizeof *out) != sizeof *out)
            die("bench link: a client failed");
        waitpid(clients[i], &status, 0);
        waitpid(servers[i], &status, 0);
        printf("%-12s %-12s %-12s %12.3f %12.1f\n", what, pairs[i][0].address,
               pairs[i][1].address, out->gbit_per_s, out->round_us);
    }
}

static int fit(const struct result *r, const char *path)
{
    const struct law message = {.hops = 1, .share = 1};
    static struct links links = {.workers = 2};
    double bytes[SIZES];
    for (int i = 0; i < SIZES; i++)
        bytes[i] = sizes[i];
    if (links_add(&links, "tcp", &message, bytes, r->message_s, SIZES))
        return -1;
    const struct link_fit *f = links_find(&links, "tcp");
    if (!f)
        return -1;
    double off = 0;
    for (int i = 0; i < SIZES; i++)
        off = links_error(f, bytes[i]) > off ? links_error(f, bytes[i]) : off;
    printf("\nalpha %.1f us, %.4f Gbit/s of payload, error of the fit at most "
           "%.1f%%\n",
           f->link.alpha_s * 1e6, f->link.bytes_per_s * 8e-9, off * 100);
    return *path ? links_write(&links, path) : 0;
}

static int help(void)
{
    printf("lockstep bench link [net=RATE[,hosts=N]] [out=FILE]\n\nMeasures a "
           "link over TCP: rate, round-trip time, and the alpha and B of\n"
           "t = alpha + bytes/B. The link is loopback, or connects emulated\n"
           "hosts at a rate such as net=1gbit (needs root). out= writes alpha\n"
           "and B for lockstep predict link=FILE.\n");
    return 0;
}

int main(int argc, char **argv)
{
    struct netns *net = NULL;
    struct result result, other;
    struct end a = {NULL, "127.0.0.1"}, b = a;
    const char *rate = NULL, *out = "";
    log_as_lockstep();
    streams_begin();
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            return help();
        if (!strncmp(argv[i], "net=", 4))
            rate = argv[i] + 4;
        else if (!strncmp(argv[i], "out=", 4))
            out = argv[i] + 4;
        else
            die("%s: unknown; try: lockstep bench link --help", argv[i]);
    }
    if ((*out && file_can_replace(out)) || (rate && netns_open(&net, rate, 2)))
        die("%s", fail_message());
    if (net && netns_hosts(net) < 2) {
        netns_close(&net);
        die("net=%s: one host; try: at least two", rate);
    }
    if (net) {
        a = (struct end){netns_name(net, 0), netns_address(net, 0)};
        b = (struct end){netns_name(net, 1), netns_address(net, 1)};
    }
    signal(SIGPIPE, SIG_IGN);
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("%-12s %-12s %-12s %12s %12s\n", "direction", "from", "to",
           "gbit_per_s", "round_us");
    fflush(stdout);
    const struct end one[1][2] = {{a, b}}, both[2][2] = {{a, b}, {b, a}};
    run(one, 1, "one way", &result);
    run(both, 2, "both ways", &other);
    netns_close(&net);
    if (fit(&result, out))
        die("%s", fail_message());
    return 0;
}
