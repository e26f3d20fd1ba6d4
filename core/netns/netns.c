// netns.c - makes and removes namespaces, cables, a bridge and token buckets,
// by means of ip and tc.

#include "netns/netns.h"

#include "base/base.h"
#include "base/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

static const char folder[] = "/run/netns";

struct netns {
    int hosts;
    char rate[32];
    int burst;                  // bytes
    char owner[NETNS_NAME - 4]; // the start of all names
    char sw[NETNS_NAME];        // the namespace of the bridge
    int lock;                   // on it, as long as this process lives
    char name[NETNS_HOSTS][NETNS_NAME];
    char address[NETNS_HOSTS][32];
};

static const double command_s = 60;

// Runs a command. 0, or -1 after fail() with the first line of its output.
static int command(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static int command(const char *fmt, ...)
{
    char line[512], said[256] = "";
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof line - 8, fmt, ap);
    va_end(ap);
    CHECK(n > 0 && n < (int)sizeof line - 8);
    strcat(line, " 2>&1");
    int rc = process_ask(line, command_s, said, sizeof said);
    if (rc <= 0)
        return rc;
    line[n] = '\0';
    return fail("net: %s: %s", line, *said ? said : "failed");
}

const char *netns_subnet(void)
{
    return "10.77.0.0/24";
}

int netns_hosts(const struct netns *n)
{
    return n->hosts;
}

const char *netns_name(const struct netns *n, int host)
{
    return n->name[host];
}

const char *netns_address(const struct netns *n, int host)
{
    return n->address[host];
}

int netns_enter(const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    int rc = setns(fd, CLONE_NEWNET);
    close(fd);
    return rc || unshare(CLONE_NEWUTS) || sethostname(name, strlen(name)) ? -1
                                                                          : 0;
}

// Opens a namespace and locks it. Returns the descriptor, or -1 with errno set:
// EWOULDBLOCK if another process has locked it, or makes or removes it just now
// (then its name is still, or already, that of an empty file).
static int lock(const char *name, int how)
{
    char path[64];
    struct statfs fs;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    if (fstatfs(fd, &fs) || fs.f_type != NSFS_MAGIC)
        errno = EWOULDBLOCK;
    else if (!flock(fd, how | LOCK_NB) && !access(path, F_OK))
        return fd;
    int why = errno;
    close(fd);
    errno = why;
    return -1;
}

// Removes a namespace, if it is there.
static void del(const char *name)
{
    char path[NAME_MAX + 16];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (!access(path, F_OK) && command("ip netns del %s", name) &&
        !access(path, F_OK))
        log_line("%s", fail_message());
}

void netns_sweep(void)
{
    DIR *d = opendir(folder);
    if (!d)
        return;
    for (struct dirent *e; (e = readdir(d));) {
        char sw[NETNS_NAME + 4];
        int pid, owner = 0;
        unsigned number;
        if (sscanf(e->d_name, "ls%d-%x%n-", &pid, &number, &owner) != 2 ||
            e->d_name[owner] != '-' || owner >= NETNS_NAME ||
            strspn(e->d_name + owner + 1, "0123456789sw") !=
                strlen(e->d_name + owner + 1))
            continue;
        snprintf(sw, sizeof sw, "%.*s-sw", owner, e->d_name);
        int fd = lock(sw, LOCK_EX);
        if (fd < 0 && errno == EWOULDBLOCK)
            continue; // its launcher lives
        del(e->d_name);
        if (fd >= 0)
            close(fd);
    }
    closedir(d);
}

// Bytes that a token bucket lets through at once: those of 2 ms, at most 256
// KiB and at least some packets. With more, messages of a slow link would take
// no time if the link was idle before.
static int burst_of(double rate, char unit)
{
    const double most = 262144, least = 8192;
    double bits_per_s = rate * (unit == 'k' ? 1e3 : unit == 'm' ? 1e6 : 1e9);
    double bytes = bits_per_s / 8 * 2e-3;
    return (int)(bytes < least ? least : bytes < most ? bytes : most);
}

// Reads "1gbit", "1gbit,hosts=4", "100mbit". The rate is in tc's form.
static int parse(struct netns *n, const char *text, int hosts)
{
    char unit[8] = "";
    double rate;
    int used = 0, more = 0;
    n->hosts = hosts;
    if (sscanf(text, "%lf%7[kmgbit]%n", &rate, unit, &used) != 2 ||
        !(rate > 0 && rate <= 1e6) ||
        (strcmp(unit, "kbit") && strcmp(unit, "mbit") && strcmp(unit, "gbit")))
        return fail("net=%s: want RATE[,hosts=N], as in 1gbit or 100mbit, or "
                    "unshaped for no emulated links",
                    text);
    snprintf(n->rate, sizeof n->rate, "%.*s", used, text);
    n->burst = burst_of(rate, *unit);
    if (text[used] &&
        (sscanf(text + used, ",hosts=%d%n", &n->hosts, &more) != 1 ||
         text[used + more]))
        return fail("net=%s: want RATE[,hosts=N]", text);
    if (n->hosts < 1 || n->hosts > NETNS_HOSTS)
        return fail("net=%s: %d hosts; want 1 .. %d", text, n->hosts,
                    NETNS_HOSTS);
    return 0;
}

int netns_check(const char *text, int hosts)
{
    struct netns n;
    return parse(&n, text, hosts);
}

bool netns_allowed(void)
{
    enum { NET_ADMIN = 12, SYS_ADMIN = 21 }; // bits, capabilities(7)
    const unsigned long long need = 1ull << NET_ADMIN | 1ull << SYS_ADMIN;
    unsigned long long have = 0;
    char line[128];
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "CapEff: %llx", &have) == 1)
            break;
    if (f)
        fclose(f);
    return geteuid() == 0 && (have & need) == need;
}

// If another launcher swept the namespace before it was locked, makes another
// one.
static int add_switch(struct netns *n)
{
    for (unsigned i = 0; n->lock < 0; i++) {
        if (i == 10 || (i && errno != EWOULDBLOCK && errno != ENOENT))
            return fail("net: %s: cannot be locked: %s", n->sw,
                        strerror(errno));
        if (text_into(n->owner, sizeof n->owner, "ls%d-%x", (int)getpid(),
                      (unsigned)now_ns() + i) ||
            text_into(n->sw, sizeof n->sw, "%s-sw", n->owner) ||
            command("ip netns add %s", n->sw))
            return -1;
        n->lock = lock(n->sw, LOCK_SH);
    }
    if (command("ip -n %s link add br0 type bridge", n->sw))
        return -1;
    return command("ip -n %s link set br0 up", n->sw);
}

// Makes host i: its namespace, its cable to the switch, address and route. Both
// ends of the cable are limited to the rate.
static int add_host(struct netns *n, int i)
{
    const char *h = n->name[i], *a = n->address[i];
    if (text_into(n->name[i], NETNS_NAME, "%s-%d", n->owner, i))
        return -1;
    snprintf(n->address[i], sizeof n->address[i], "10.77.0.%d", i + 1);
    if (command("ip netns add %s", h) ||
        command("ip -n %s link add eth0 type veth peer name port%d netns %s", h,
                i, n->sw) ||
        command("ip -n %s link set port%d master br0 up", n->sw, i) ||
        command("ip -n %s link set lo up", h) ||
        command("ip -n %s addr add %s/24 dev eth0", h, a) ||
        command("ip -n %s link set eth0 up", h) ||
        command("ip -n %s route replace %s dev eth0 proto kernel scope link "
                "src %s congctl cubic",
                h, netns_subnet(), a) ||
        command("tc -n %s qdisc add dev eth0 root tbf rate %s burst %d "
                "latency 50ms",
                h, n->rate, n->burst))
        return -1;
    return command("tc -n %s qdisc add dev port%d root tbf rate %s burst %d "
                   "latency 50ms",
                   n->sw, i, n->rate, n->burst);
}

int netns_open(struct netns **out, const char *text, int hosts)
{
    struct netns *n = mem_alloc(1, sizeof *n);
    if (!n || parse(n, text, hosts))
        goto free_net;
    if (geteuid()) {
        fail("net=%s: needs root, to make network namespaces", text);
        goto free_net;
    }
    netns_sweep();
    n->lock = -1;
    int rc = add_switch(n);
    for (int i = 0; !rc && i < n->hosts; i++)
        rc = add_host(n, i);
    if (rc) {
        netns_close(&n);
        return -1;
    }
    *out = n;
    return 0;
free_net:
    mem_free(n);
    return -1;
}

void netns_close(struct netns **n)
{
    char why[512];
    if (!*n)
        return;
    snprintf(why, sizeof why, "%s", fail_message());
    for (int i = 0; i < (*n)->hosts; i++)
        if (*(*n)->name[i])
            del((*n)->name[i]);
    if (*(*n)->sw)
        del((*n)->sw);
    if ((*n)->lock >= 0)
        close((*n)->lock);
    mem_free(*n);
    *n = NULL;
    fail("%s", why);
}
