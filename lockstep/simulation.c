// simulation.c - writes a platform, runs smpirun on it and reads the result.

#include "lockstep/simulation.h"

#include "base/base.h"
#include "base/file.h"
#include "base/process.h"
#include "config/backends.h"
#include "config/config.h"
#include "lockstep/argv.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LINE = 512 };

int simulation_check(void)
{
    struct argv *a = mem_alloc(1, sizeof *a);
    if (!a)
        return -1;
    int rc = argv_add_program(a, "simulate_job");
    mem_free(a);
    if (process_shell(&(struct process){0}, "command -v smpirun >/dev/null",
                      60))
        return fail("simulate: SimGrid is not installed; try: apt-get install "
                    "libsimgrid-dev, then cmake --preset release and build");
    return rc ? fail("simulate: this build has no simulate_job; try: cmake "
                     "--preset release, then cmake --build --preset release "
                     "(not with sanitizers)")
              : 0;
}

// ---- the files of smpirun

static int hosts_of(const struct simulation *s)
{
    return s->workers +
           (s->backend->servers == 1); // a single server has its own host
}

static int ranks_of(const struct simulation *s)
{
    return s->backend->servers < 0 ? 2 * s->workers : hosts_of(s);
}

// Writes the platform. A path between two hosts has two links, so each has half
// the latency. Messages within a host take almost no time.
static int write_platform(const struct simulation *s, const char *path)
{
    char text[1024];
    return text_into(text, sizeof text,
                     "<?xml version='1.0'?>\n"
                     "<!DOCTYPE platform SYSTEM "
                     "\"https://simgrid.org/simgrid.dtd\">\n"
                     "<platform version=\"4.1\">\n"
                     "  <cluster id=\"cluster\" prefix=\"host\" suffix=\"\" "
                     "radical=\"0-%d\" speed=\"1Gf\"\n"
                     "           bw=\"%.9gBps\" lat=\"%.9gs\" "
                     "loopback_bw=\"1000GBps\" loopback_lat=\"0s\"/>\n"
                     "</platform>\n",
                     hosts_of(s) - 1, s->link.bytes_per_s,
                     s->link.alpha_s / 2) ||
                   file_replace_text(path, text)
               ? -1
               : 0;
}

static int write_hosts(const struct simulation *s, const char *path)
{
    FILE *f = fopen(path, "we");
    if (!f)
        return fail("%s: %s", path, strerror(errno));
    for (int i = 0; i < hosts_of(s); i++)
        fprintf(f, "host%d\n", i);
    return fclose(f) ? fail("%s: %s", path, strerror(errno)) : 0;
}

// ---- the command line of smpirun

// Makes SimGrid's links behave as the law assumes: a message takes the latency,
// plus its bytes divided by its share of the bandwidth.
static int add_network(struct argv *a, const struct simulation *s)
{
    static const char *const ideal[] = {"network/model:CM02",
                                        "network/crosstraffic:0",
                                        "network/TCP-gamma:0",
                                        "network/latency-factor:1",
                                        "network/bandwidth-factor:1"};
    for (int i = 0; i < 5 && !s->default_network; i++)
        if (argv_add(a, "--cfg=%s", ideal[i]))
            return -1;
    return 0;
}

// Returns the KiB of a slice; 0 for the ring, which then sends a chunk as one
// message.
static long slice_kb(const struct simulation *s)
{
    struct sync_settings usual;
    settings_defaults(&usual);
    bool none = s->slice_kb == 0 && s->backend->servers;
    return none ? usual.slice_kb : s->slice_kb;
}

static int add_exchange(struct argv *a, const struct simulation *s)
{
    const struct schedule *t = s->schedule;
    return t ? argv_add(a, "op=%d", t->op) ||
                   argv_add(a, "algorithm=%d", t->algorithm) ||
                   argv_add(a, "piece=%zu", t->piece)
             : argv_add(a, "sync=%s", s->backend->name);
}

static int add_job(struct argv *a, const struct simulation *s)
{
    for (int i = 0; i < s->mesh_words; i++)
        if (argv_add(a, "%s", s->mesh[i]))
            return -1;
    if (s->mesh_words)
        return 0;
    return add_exchange(a, s) || argv_add(a, "workers=%d", s->workers) ||
                   argv_add(a, "n=%zu", s->n) ||
                   argv_add(a, "slice_kb=%ld", slice_kb(s)) ||
                   argv_add(a, "bucket_mb=%.9g", s->bucket_mb) ||
                   argv_add(a, "payload=%d", s->payload) ||
                   argv_add(a, "worker_updates=%d", s->worker_updates)
               ? -1
               : 0;
}

// smpirun cuts paths at blanks, and that of TMPDIR. So it starts in the folder
// of these files.
static const char platform_name[] = "platform.xml", hosts_name[] = "hosts.txt";

static int add_words(struct argv *a, const struct simulation *s)
{
    // All ranks share one block of memory for gradients ("local"), or one page
    // for all messages whose content nobody reads ("global").
    bool one_block = s->backend->traffic == TRAFFIC_LIBRARY;
    // These programs wait until their messages are sent
    // (simulate/carry_simulated.c, textbook.c, owner.c).
    bool waited = s->schedule || s->backend->servers ||
                  s->backend->traffic == TRAFFIC_OWNER;
    return argv_add(a, "smpirun") || argv_add(a, "-quiet") ||
                   argv_add(a, "-no-privatize") || argv_add(a, "-np") ||
                   argv_add(a, "%d", ranks_of(s)) || argv_add(a, "-platform") ||
                   argv_add(a, platform_name) || argv_add(a, "-hostfile") ||
                   argv_add(a, hosts_name) ||
                   argv_add(a, "--cfg=smpi/simulate-computation:no") ||
                   argv_add(a, "--cfg=smpi/wtime:0") ||
                   (waited &&
                    argv_add(a, "--cfg=smpi/send-is-detached-thresh:0")) ||
                   argv_add(a, "--cfg=smpi/allreduce:%s",
                            s->halving ? "rab_rdb" : "lr") ||
                   argv_add(a, "--cfg=smpi/shared-malloc:%s",
                            one_block ? "local" : "global") ||
                   argv_add(a, "--log=root.thres:error") || add_network(a, s) ||
                   argv_add_program(a, "simulate_job") || add_job(a, s)
               ? -1
               : 0;
}

// ---- the child

static int enter(void *folder)
{
    return chdir(folder) || setenv("TMPDIR", ".", 1) ? PROCESS_NO_PROGRAM : 0;
}

// Reads the first line of a log, for the error message of a failed simulation.
static void reason(const char *path, char out[LINE])
{
    FILE *f = fopen(path, "re");
    snprintf(out, LINE, "no output");
    if (f && fgets(out, LINE, f))
        out[strcspn(out, "\n")] = '\0';
    if (f)
        fclose(f);
}

static int judge(const struct simulation *s, bool in_time, int status,
                 const char *text, const char *log, struct simulated *out)
{
    char why[LINE];
    const char *at = strstr(text, "@seconds=");
    if (!in_time)
        return fail("simulate: %s, %d workers: not done after %g s; try: "
                    "timeout=%g, or fewer workers",
                    s->name, s->workers, s->timeout_s, 4 * s->timeout_s);
    if (status == 0 && at) {
        out->seconds = atof(at + strlen("@seconds="));
        return 0;
    }
    reason(log, why);
    return fail("simulate: %s, %d workers: %s (%s)", s->name, s->workers, why,
                log);
}

static int run(const struct simulation *s, const struct argv *a,
               const char *log, struct simulated *out)
{
    char text[LINE] = "";
    struct process p = {.words = a->at,
                        .group = true,
                        .orphan = SIGTERM, // smpirun forwards it
                        .prepare = enter,
                        .arg = (char *)(uintptr_t)s->folder};
    uint64_t began = now_ns();
    p.out = memfd_create("answer", MFD_CLOEXEC);
    p.err = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int rc = p.out < 0 || p.err < 0 ? fail("%s: %s", log, strerror(errno))
                                    : process_run(&p, s->timeout_s);
    out->wall_s = (double)(now_ns() - began) * 1e-9;
    out->memory_mb = (double)p.peak * 1e-6;
    if (p.out >= 0 && pread(p.out, text, sizeof text - 1, 0) >= 0)
        close(p.out);
    if (p.err >= 0)
        close(p.err);
    return rc < 0 && !p.late ? -1 : judge(s, !p.late, rc, text, log, out);
}

int simulation_run(const struct simulation *s, struct simulated *out)
{
    char platform[CONFIG_PATH], hosts[CONFIG_PATH], log[CONFIG_PATH];
    struct argv *a = mem_alloc(1, sizeof *a);
    int rc = -1;
    if (!a)
        return -1;
    if (!text_into(platform, sizeof platform, "%s/%s", s->folder,
                   platform_name) &&
        !text_into(hosts, sizeof hosts, "%s/%s", s->folder, hosts_name) &&
        !text_into(log, sizeof log, "%s/log.txt", s->folder) &&
        !write_platform(s, platform) && !write_hosts(s, hosts) &&
        !add_words(a, s))
        rc = run(s, a, log, out);
    mem_free(a);
    return rc;
}
