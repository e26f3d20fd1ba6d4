// sum.c - a program outside the tree. The processes that run it form a group
// and add their vectors.
//
//     cc sum.c $(pkg-config --cflags --libs lockstep) -o sum
//     ./sum 0 3 tcp://127.0.0.1:29500 & ./sum 1 3 .. & ./sum 2 3 ..

#include <base/base.h>
#include <cluster/cluster.h>
#include <cluster/rendezvous.h>
#include <device/device.h>
#include <horovod_ring/carriers.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    struct cluster_config at = {.curve = "", .timeout_s = 20};
    struct group_job job = {.name = "sum", .depth = 1};
    struct rendezvous_server *rendezvous = NULL;
    struct group *group = NULL;
    enum { N = 1000 };
    at.rank = atoi(argv[argc - 3]);
    at.world = atoi(argv[argc - 2]);
    at.rendezvous = argv[argc - 1]; // rank 0 listens there
    int rc =
        at.rank == 0 ? rendezvous_start(&rendezvous, at.rendezvous, "") : 0;
    if (!rc && !cluster_open(&job.cluster, &cluster_zmq, &at) &&
        !device_open(&job.dev, "cpu"))
        group = group_open(&ring_tcp, &job);
    float *v = group ? device_alloc(job.dev, N, sizeof *v) : NULL;
    for (int i = 0; v && i < N; i++)
        v[i] = (float)(i * (at.rank + 1));
    struct group_vector sum = group_floats(v, N);
    uint64_t ticket;
    if (!v || group_all_reduce(group, &sum, &ticket) ||
        group_await(group, ticket) || cluster_barrier(job.cluster))
        return fprintf(stderr, "sum: %s\n", fail_message()), 1;
    printf("rank %d: v[%d] = %g\n", at.rank, N - 1, v[N - 1]);
    group_close(&group), device_free(job.dev, v), device_close(&job.dev);
    cluster_close(&job.cluster), rendezvous_stop(&rendezvous);
    return 0;
}
