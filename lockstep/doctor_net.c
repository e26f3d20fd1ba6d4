// doctor_net.c - can this machine emulate a cluster? A child process tries it:
// it creates a network namespace and limits the rate of the loopback there.

#include "lockstep/doctor.h"

#include "base/process.h"

#include <sched.h>

enum { NO_NAMESPACE = 1, NO_TBF = 2 };

static const double try_s = 60;

static int enter(void *arg)
{
    (void)arg;
    return unshare(CLONE_NEWNET) ? PROCESS_NO_PROGRAM : 0;
}

static int try_in_namespace(void)
{
    struct process p = {.prepare = enter};
    int rc = process_shell(&p,
                           "tc qdisc add dev lo root tbf rate 1gbit burst "
                           "256kb latency 10ms >/dev/null 2>&1 || exit 1",
                           try_s);
    return rc == 0 ? 0 : rc == 1 ? NO_TBF : NO_NAMESPACE;
}

void doctor_network(struct doctor *d)
{
    char line[160];
    doctor_ask("tc -V 2>/dev/null && ip -V 2>/dev/null", line, sizeof line);
    if (!line[0])
        doctor_say(d, FINDING_WITHOUT, "ip and tc",
                   "not found; they emulate clusters",
                   "apt-get install iproute2, or ./install");
    int lacks = try_in_namespace();
    doctor_say(d, lacks & NO_NAMESPACE ? FINDING_WITHOUT : FINDING_OK,
               "namespaces",
               lacks & NO_NAMESPACE
                   ? "cannot be created: net= and emulated hosts do not work"
                   : "can be created: net= and emulated hosts work",
               "run as root, or in a container with CAP_SYS_ADMIN");
    if (lacks & NO_NAMESPACE)
        return;
    doctor_say(d, lacks ? FINDING_WITHOUT : FINDING_OK, "tc tbf",
               lacks ? "does not work: links cannot be limited"
                     : "limits links between emulated hosts",
               "apt-get install iproute2, and a kernel with sch_tbf");
}
