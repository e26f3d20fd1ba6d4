// doctor_hosts.c - `lockstep doctor hosts=FILE` checks whether a job can run on
// these hosts. It reaches each host as a job reaches its workers, and starts
// probe.c there to answer questions. Then pairs of hosts measure their links.

#include "lockstep/doctor.h"

#include "base/base.h"
#include "base/file.h"
#include "base/median.h"
#include "base/secret.h"
#include "base/version.h"
#include "config/keys.h"
#include "lockstep/link_speed.h"
#include "lockstep/reach.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// ALL_PAIRS: with at most this many hosts, the links of all pairs are measured;
// with more, only the link from each host to the next one, in a circle. ASKED:
// how many times a host is asked for its time.
enum { ALL_PAIRS = 8, ASKED = 7, FOUND = 512 };

static const double clock_off_s = 0.1, slow_link = 0.5;

struct question {
    char hosts[CONFIG_PATH], out[CONFIG_PATH];
    double timeout;
};

#define AT(member) offsetof(struct question, member), false

static const struct key rows[] = {
    {"doctor", "hosts", "", KEY_TEXT, AT(hosts), .unit = "path",
     .help = "an mpirun hostfile: check these hosts"},
    {"doctor", "out", "runs", KEY_TEXT, AT(out), .unit = "path",
     .help = "with hosts=: the folder that all of them should share"},
    {"doctor", "timeout", "15", KEY_NUMBER, AT(timeout), 0.1, 3600, .unit = "s",
     .help = "with hosts=: the longest wait for a host"},
};

static const struct key_table keys = {rows, sizeof rows / sizeof *rows,
                                      "lockstep doctor --help"};

struct visit {
    struct doctor *doctor;
    struct question asked;
    struct hosts hosts;
    struct reach reached[HOSTS_MOST];
    bool answers[HOSTS_MOST];
    char iface[HOSTS_MOST][32];
    double rates[ALL_PAIRS * ALL_PAIRS + HOSTS_MOST];
    int nrates;
};

// Returns the deadline of a question that is asked now.
static uint64_t after(const struct visit *v)
{
    return now_ns() + (uint64_t)(v->asked.timeout * 1e9);
}

static void say(struct visit *v, enum finding f, int host, const char *found,
                const char *remedy)
{
    doctor_say(v->doctor, f, v->hosts.at[host].name, found, remedy);
}

// Says that host i could not answer the question `what`, and why.
static void say_failed(struct visit *v, int i, const char *what,
                       const char *remedy)
{
    char text[FOUND];
    snprintf(text, sizeof text, "%s: %.400s", what, fail_message());
    say(v, FINDING_LACK, i, text, remedy);
}

// ---- addresses and answers

// Looks up the addresses of all hosts.
static void look_up(struct visit *v)
{
    for (int i = 0; i < v->hosts.n; i++)
        if (hosts_look_up(&v->hosts.at[i]))
            say_failed(v, i, "no address", NULL);
    if (hosts_check_loopback(&v->hosts))
        doctor_say(v->doctor, FINDING_LACK, "hosts=", fail_message(), NULL);
}

static void look_at_version(struct visit *v, int i, char *answer)
{
    char own[128], text[FOUND], *cores = strchr(answer, '\t');
    snprintf(own, sizeof own, "%s%s%s", version_number,
             *version_revision ? " " : "", version_revision);
    int n = cores ? atoi(cores + 1) : 0, slots = v->hosts.at[i].slots;
    if (cores)
        *cores = '\0';
    if (strcmp(answer, own)) {
        snprintf(text, sizeof text, "has Lockstep %.100s; this host has %s",
                 answer, own);
        say(v, FINDING_LACK, i, text,
            "install the same build at the same path on all hosts");
        return;
    }
    snprintf(text, sizeof text, "answers; Lockstep %s, %d core%s, slots=%d",
             own, n, n == 1 ? "" : "s", slots);
    say(v, n >= slots ? FINDING_OK : FINDING_WITHOUT, i, text,
        "at most as many slots as cores, or workers share cores");
}

static void greet(struct visit *v)
{
    char answer[REACH_TEXT];
    uint64_t until = after(v); // one deadline: all start at the same time
    for (int i = 0; i < v->hosts.n; i++)
        v->answers[i] = *v->hosts.at[i].address &&
                        !reach_open(&v->reached[i], &v->hosts.at[i]) &&
                        !reach_ask(&v->reached[i], "hello");
    for (int i = 0; i < v->hosts.n; i++) {
        if (!*v->hosts.at[i].address)
            continue;
        v->answers[i] = v->answers[i] && !reach_take(&v->reached[i], until,
                                                     answer, sizeof answer);
        if (v->answers[i])
            look_at_version(v, i, answer);
        else
            say_failed(v, i, "cannot be reached",
                       "ssh without a password, and this folder and Lockstep "
                       "at the same paths there");
    }
}

// Asks one host. 0, or 1 after a failure was reported as a finding.
static int ask(struct visit *v, int i, const char *question, char *answer)
{
    struct reach *r = &v->reached[i];
    if (!reach_ask(r, "%s", question) &&
        !reach_take(r, after(v), answer, REACH_TEXT))
        return 0;
    char what[64];
    snprintf(what, sizeof what, "%.*s", (int)strcspn(question, "\t"), question);
    say_failed(v, i, what, NULL);
    return 1;
}

// ---- clocks

static double wall_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// Compares host i's clock with ours. The host reads its clock at some time
// between question and answer, so the fastest of ASKED answers is the most
// exact.
static void look_at_clock(struct visit *v, int i)
{
    char answer[REACH_TEXT], text[FOUND];
    double off = 0, least = INFINITY;
    for (int k = 0; k < ASKED; k++) {
        double began = wall_s();
        if (ask(v, i, "time", answer))
            return;
        double ended = wall_s(), there = strtod(answer, NULL) * 1e-9;
        if (ended - began < least) {
            least = ended - began;
            off = there - (began + ended) / 2;
        }
    }
    double sure = fabs(off) - least / 2;
    if (sure <= 0)
        snprintf(text, sizeof text,
                 "its clock agrees with this host's, to within %.2g ms",
                 least * 500);
    else
        snprintf(text, sizeof text,
                 "its clock is %.4g s %s this host's, to within %.2g ms",
                 fabs(off), off < 0 ? "behind" : "ahead of", least * 500);
    bool good = sure < clock_off_s;
    say(v, good ? FINDING_OK : FINDING_WITHOUT, i, text,
        "a time service (chrony): logs and folder names contain the time");
}

// ---- interfaces, and the folder

static void look_at_interface(struct visit *v, int i)
{
    char question[128], answer[REACH_TEXT], text[FOUND];
    const struct host *h = &v->hosts.at[i];
    int mbit = 0;
    snprintf(question, sizeof question, "iface\t%s", h->address);
    if (ask(v, i, question, answer) ||
        sscanf(answer, "%31s %d", v->iface[i], &mbit) != 2)
        return;
    if (!strcmp(v->iface[i], "-")) {
        snprintf(text, sizeof text, "none of its interfaces has %s",
                 h->address);
        v->iface[i][0] = '\0';
        say(v, FINDING_LACK, i, text,
            "in the hostfile, the address at which other hosts reach it");
        return;
    }
    if (mbit)
        snprintf(text, sizeof text, "%s is its interface %s, of %d Mbit/s",
                 h->address, v->iface[i], mbit);
    else
        snprintf(text, sizeof text, "%s is its interface %s", h->address,
                 v->iface[i]);
    say(v, FINDING_OK, i, text, NULL);
}

static void compare_interfaces(struct visit *v)
{
    const char *first = NULL;
    char text[FOUND];
    for (int i = 0; i < v->hosts.n; i++) {
        const char *name = v->iface[i];
        if (!*name || (first && !strcmp(first, name)))
            continue;
        if (first) {
            snprintf(text, sizeof text, "%s on one host, %s on another", first,
                     name);
            doctor_say(v->doctor, FINDING_WITHOUT, "iface=", text,
                       "with sps and dps, no iface=; other backends need one "
                       "name on all hosts");
            return;
        }
        first = name;
    }
    if (first) {
        snprintf(text, sizeof text, "iface=%s on all hosts", first);
        doctor_say(v->doctor, FINDING_OK, "iface=", text, NULL);
    }
}

static void look_at_folder(struct visit *v, int i, const char *folder,
                           const char *token)
{
    char question[REACH_TEXT], answer[REACH_TEXT], text[FOUND];
    char path[CONFIG_PATH];
    if (text_into(question, sizeof question, "look\t%s\t%s\t%d", folder, token,
                  i) ||
        text_into(path, sizeof path, "%s/%s.%d", folder, token, i))
        return;
    bool told = !reach_ask(&v->reached[i], "%s", question) &&
                !reach_take(&v->reached[i], after(v), answer, sizeof answer);
    bool here = unlink(path) == 0;
    if (!told)
        snprintf(text, sizeof text, "out=%.150s: %.300s", v->asked.out,
                 fail_message());
    else if (!strcmp(answer, "seen") && here)
        snprintf(text, sizeof text, "shares out=%.400s", v->asked.out);
    else
        snprintf(text, sizeof text, "out=%.400s is another folder there",
                 v->asked.out);
    bool good = told && here && !strcmp(answer, "seen");
    say(v, good ? FINDING_OK : FINDING_LACK, i, text,
        "one file system, mounted at the same path on all hosts");
}

static int look_at_folders(struct visit *v)
{
    char *folder = NULL, path[CONFIG_PATH], token[LINK_TOKEN + 1];
    uint64_t random;
    int made = file_make_folder(v->asked.out), rc = made < 0 ? -1 : 0;
    secret_random(&random, sizeof random);
    snprintf(token, sizeof token, ".doctor-%016llx",
             (unsigned long long)random);
    if (!rc && !(folder = realpath(v->asked.out, NULL)))
        rc = fail("%s: %s", v->asked.out, strerror(errno));
    if (!rc)
        rc = text_into(path, sizeof path, "%s/%s", folder, token);
    FILE *f = rc ? NULL : fopen(path, "wxe");
    if (!rc && !f)
        rc = fail("out=%s: %s; try: a folder that you may write to", folder,
                  strerror(errno));
    for (int i = 0; !rc && i < v->hosts.n; i++)
        if (v->answers[i])
            look_at_folder(v, i, folder, token);
    if (f) {
        fclose(f);
        unlink(path);
    }
    if (made == 1)
        rmdir(v->asked.out);
    free(folder);
    return rc;
}

// ---- links

// Writes a rate in bits a second, in the form that link= of `lockstep predict`
// reads.
static char *rate_text(char out[32], double bytes)
{
    double mbit = bytes * 8e-6;
    snprintf(out, 32, mbit >= 1000 ? "%.3ggbit" : "%.3gmbit",
             mbit >= 1000 ? mbit / 1000 : mbit);
    return out;
}

static int measure(struct visit *v, int a, int b, struct link_speed *s)
{
    char token[LINK_TOKEN + 1], answer[REACH_TEXT];
    uint64_t random[2];
    struct reach *from = &v->reached[a], *to = &v->reached[b];
    double seconds = v->asked.timeout;
    secret_random(random, sizeof random);
    snprintf(token, sizeof token, "%016llx%016llx",
             (unsigned long long)random[0], (unsigned long long)random[1]);
    if (reach_ask(to, "listen\t%s\t%s", to->host->address, token) ||
        reach_take(to, after(v), answer, sizeof answer))
        return -1;
    char why[FOUND] = "";
    if (reach_ask(to, "accept\t%g", seconds) ||
        reach_ask(from, "link\t%s\t%d\t%s", to->host->address, atoi(answer),
                  token))
        return -1;
    uint64_t until = after(v) + (uint64_t)(4 * LINK_WAIT_S * 1e9);
    if (reach_take(from, until, answer, sizeof answer))
        snprintf(why, sizeof why, "%.500s", fail_message());
    else if (sscanf(answer, "%lf %lf %lf", &s->latency_s, &s->there,
                    &s->back) != 3)
        snprintf(why, sizeof why, "not a measurement of a link: %.400s",
                 answer);
    if (reach_take(to, until, answer, sizeof answer) && !*why)
        return -1;
    return *why ? fail("%s", why) : 0;
}

static void look_at_link(struct visit *v, int a, int b)
{
    struct link_speed s = {0};
    char text[FOUND], there[32], back[32], what[2 * HOSTS_NAME];
    snprintf(what, sizeof what, "%s - %s", v->hosts.at[a].name,
             v->hosts.at[b].name);
    if (measure(v, a, b, &s)) {
        snprintf(text, sizeof text, "%.400s", fail_message());
        doctor_say(v->doctor, FINDING_LACK, what, text,
                   "open the firewall between them: workers and servers "
                   "listen at ports that the system chooses");
        return;
    }
    double least = s.there < s.back ? s.there : s.back;
    snprintf(text, sizeof text, "%.3g us, %s there, %s back", s.latency_s * 1e6,
             rate_text(there, s.there), rate_text(back, s.back));
    // A link is slow by comparison with the links measured so far.
    double usual = v->nrates ? median(v->rates, v->nrates) : least;
    v->rates[v->nrates++] = least;
    doctor_say(v->doctor,
               least < slow_link * usual ? FINDING_WITHOUT : FINDING_OK, what,
               text,
               "this link has less than half the rate of the others: check "
               "cable and switch port, or another interface in the hostfile");
}

static void look_at_links(struct visit *v)
{
    int n = v->hosts.n;
    char text[FOUND], rate[32];
    for (int a = 0; a < n; a++)
        for (int b = a + 1; b < n; b++) {
            bool next = b == a + 1 || (a == 0 && b == n - 1);
            if (v->answers[a] && v->answers[b] && (n <= ALL_PAIRS || next))
                look_at_link(v, a, b);
        }
    if (!v->nrates)
        return;
    snprintf(text, sizeof text, "link=%s between two hosts",
             rate_text(rate, median(v->rates, v->nrates)));
    doctor_say(v->doctor, FINDING_OK, "links", text, NULL);
}

// ---- all of it

static int visit_all(struct visit *v)
{
    look_up(v);
    greet(v);
    for (int i = 0; i < v->hosts.n; i++)
        if (v->answers[i])
            look_at_clock(v, i);
    for (int i = 0; i < v->hosts.n; i++)
        if (v->answers[i])
            look_at_interface(v, i);
    compare_interfaces(v);
    int rc = look_at_folders(v);
    if (!rc)
        look_at_links(v);
    return rc;
}

bool doctor_asks_hosts(int nwords, char **words)
{
    return nwords > 0 && strchr(words[0], '=');
}

void doctor_hosts_explain(FILE *f)
{
    key_help(f, &keys);
}

int doctor_hosts(struct doctor *d, int nwords, char **words)
{
    struct visit *v = mem_alloc(1, sizeof *v);
    if (!v)
        return -1;
    v->doctor = d;
    key_defaults(&keys, &v->asked);
    int rc = key_words(&keys, &v->asked, nwords, words);
    if (!rc && !*v->asked.hosts)
        rc = fail("doctor: hosts=FILE is missing; try: lockstep doctor --help");
    if (!rc)
        rc = hosts_parse(&v->hosts, v->asked.hosts);
    signal(SIGPIPE, SIG_IGN); // a lost connection is only a finding
    for (int i = 0; i < v->hosts.n; i++)
        v->reached[i] = (struct reach){.pid = -1, .in = -1, .out = -1};
    if (!rc)
        rc = visit_all(v);
    for (int i = 0; i < v->hosts.n; i++)
        reach_close(&v->reached[i]);
    mem_free(v);
    return rc;
}
