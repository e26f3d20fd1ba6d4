// mesh_links.c - how the ranks of a mesh share the links between hosts.

#include "forecast/mesh_links.h"

// Returns the next rank along an axis; the last rank's next is the first.
static int neighbour(const struct mesh *m, int rank, enum mesh_axis axis)
{
    int stride = 1, size = mesh_size(m, axis), at = mesh_at(m, rank, axis);
    for (int i = m->n - 1; i >= 0 && m->axis[i] != axis; i--)
        stride *= m->size[i];
    return rank + (at + 1 == size ? -(size - 1) : 1) * stride;
}

// The most ranks of a host whose next rank along an axis is on another host. If
// `at` is >= 0, only of those at this position of the axis.
static int leaving(const struct mesh_job *job, enum mesh_axis axis, int at)
{
    const struct mesh *m = &job->run->mesh;
    int most = 0;
    for (int host = 0; host < job->hosts; host++) {
        int leave = 0;
        for (int k = 0; k < job->slots; k++) {
            int rank = host * job->slots + k;
            if (rank < mesh_ranks(m) &&
                (at < 0 || mesh_at(m, rank, axis) == at))
                leave += neighbour(m, rank, axis) / job->slots != host;
        }
        most = leave > most ? leave : most;
    }
    return most;
}

void mesh_links(struct mesh_job *job)
{
    int stages = mesh_size(&job->run->mesh, MESH_PP);
    for (int i = 0; i < MESH_AXES; i++)
        job->leaving[i] = leaving(job, (enum mesh_axis)i, -1);
    for (int k = 0; k < stages && k < PIPELINE_STAGES; k++)
        job->leaving_stage[k] = leaving(job, MESH_PP, k);
}

// The link between neighbours, if `leave` ranks of a host share that between
// hosts.
static struct link shared_by(const struct mesh_job *job, int leave)
{
    struct link link = leave ? job->outer : job->inner;
    link.bytes_per_s /= leave ? leave : 1;
    return link;
}

struct link mesh_axis_link(const struct mesh_job *job, enum mesh_axis axis)
{
    return shared_by(job, job->leaving[axis]);
}

struct link mesh_stage_link(const struct mesh_job *job, int stage)
{
    return shared_by(job, job->leaving_stage[stage]);
}
