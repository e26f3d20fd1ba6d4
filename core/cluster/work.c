// work.c - waits for workers that work for longer than the deadline.
//
// A thread exchanges the workers' states again and again while the work lasts,
// so a worker that died, or is frozen, is missed within the deadline. What the
// work needs of its thread (a GPU's context, a server's sockets) stays where it
// is.

#include "cluster/cluster.h"

#include "base/base.h"
#include "cluster/split.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum state { BUSY, DONE, FAILED };

struct teller {
    struct cluster *cluster;
    atomic_int mine; // enum state; it announces nothing else
    int ended;       // an eventfd: `mine` is no longer BUSY
    char *all;       // every worker's state at the last exchange
    int rc;          // of the exchanges, with their message
    char why[512];
};

// The time from one exchange to the next: far below the deadline, and below the
// time after which a wait is logged.
static int pause_ms(const struct cluster *c)
{
    const double most_s = 2;
    double s = c->timeout_s / 4;
    return (int)(1000 * (s < most_s ? s : most_s));
}

static bool any(const struct teller *t, enum state what)
{
    return memchr(t->all, (int)what, (size_t)t->cluster->world) != NULL;
}

// fail() keeps its message per thread, so this one is copied.
static void *tell(void *arg)
{
    struct teller *t = arg;
    struct pollfd ended = {.fd = t->ended, .events = POLLIN};
    do {
        (void)poll(&ended, 1, pause_ms(t->cluster));
        char mine = (char)atomic_load(&t->mine);
        t->rc = cluster_allgather(t->cluster, &mine, t->all, 1);
    } while (!t->rc && any(t, BUSY) && !any(t, FAILED));
    if (t->rc)
        snprintf(t->why, sizeof t->why, "%s", fail_message());
    return NULL;
}

int cluster_work(struct cluster *c, int (*work)(void *ctx), void *ctx)
{
    struct teller t = {.cluster = cluster_whole(c), .mine = BUSY};
    int world = t.cluster->world, rc = -1, error;
    pthread_t thread;
    if (world == 1)
        return work(ctx);
    t.all = mem_alloc((size_t)world, 1);
    if (!t.all)
        return -1;
    t.ended = eventfd(0, EFD_CLOEXEC);
    if (t.ended < 0) {
        fail("cannot wait for other workers: %s", strerror(errno));
        goto free_all;
    }
    error = pthread_create(&thread, NULL, tell, &t);
    if (error) {
        fail("cannot start a thread: %s", strerror(error));
        goto close_ended;
    }
    rc = work(ctx);
    atomic_store(&t.mine, rc ? FAILED : DONE);
    CHECK(eventfd_write(t.ended, 1) == 0);
    pthread_join(thread, NULL);
    if (!rc && t.rc)
        rc = fail("%s", t.why);
    for (int r = 0; !rc && r < world; r++)
        rc = t.all[r] == FAILED ? cluster_blame(t.cluster, r) : 0;
close_ended:
    close(t.ended);
free_all:
    mem_free(t.all);
    return rc;
}
