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

#include "doctor/link_speed.h"
#include "launch/command.h"

#include "base/base.h"
#include "base/version.h"
#include "launch/cores.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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
        int port;
        if (text_into(p->token, sizeof p->token, "%s", at[2]) ||
            link_listen(&p->listener, at[1], &port))
            return -1;
        return text_into(out, ANSWER, "%d", port);
    }
    if (n == 2 && !strcmp(at[0], "accept") && p->listener >= 0) {
        int rc = link_accept(p->listener, p->token, atof(at[1]));
        close(p->listener);
        p->listener = -1;
        return rc ? -1 : text_into(out, ANSWER, "done");
    }
    struct link_speed s;
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
