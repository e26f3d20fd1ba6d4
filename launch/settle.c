// settle.c - reads the words of `lockstep train`, and finds what is wrong with
// them before anything is started or written.

#include "launch/settle.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "config/config.h"
#include "launch/hosts.h"
#include "launch/launch.h"
#include "netns/netns.h"
#include "train/shape.h"

#include <string.h>

int settle_words(struct run *r, int nwords, char *const *words)
{
    config_defaults(r);
    if (config_read(r, nwords, words) || hosts_of_job(r) ||
        config_check_hosts(r))
        return -1;
    if (!*r->out && strcmp(r->resume, "auto") == 0)
        return fail("resume=auto looks for checkpoints in out=; try: out=DIR");
    return 0;
}

// Checks that mpirun, srun or torchrun did not start several copies of this
// program: each copy would start all workers.
static int check_alone(void)
{
    struct cluster_place p;
    return cluster_several(&p)
               ? fail("%s started %d copies of lockstep train, which "
                      "starts all workers itself; try: %s .. trainer, or "
                      "lockstep train without %s",
                      p.launcher, p.world, p.launcher, p.launcher)
               : 0;
}

// Checks settings that need a folder. Without out= train chooses one, so any
// name will do.
static int check_settings(const struct run *r)
{
    struct run named = *r;
    if (!*named.out)
        strcpy(named.out, "runs");
    return config_check(&named);
}

static int check_net(const struct run *r)
{
    const char *net = launch_net(r, true);
    bool polite = *r->net == '?';
    if (!*net || !strcmp(net, LAUNCH_UNSHAPED))
        return 0;
    if (netns_check(net, launch_hosts(r)))
        return -1;
    return polite || netns_allowed()
               ? 0
               : fail("net=%s needs root to make network namespaces; try: "
                      "sudo, or net=?%s to go without a network if there is "
                      "none",
                      net, net);
}

int settle_check(const struct run *r)
{
    if (check_alone() || check_settings(r) ||
        config_check_world(r, r->workers) || shape_check(r) ||
        (*r->out && config_check_out(r)) ||
        (*r->hosts && hosts_check(r->hosts)) || check_net(r))
        return -1;
    return launch_children(r) < 0 ? -1 : 0;
}
