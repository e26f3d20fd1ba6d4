// mesh_links.h - how the ranks of a mesh share the links between hosts.

#pragma once

#include "forecast/mesh_case.h"

// Sets job->leaving and leaving_stage. Call it before steps on this mesh.
void mesh_links(struct mesh_job *job);

// The slowest link between neighbours along an axis, and that between a stage
// and the next one, when all ranks use it at the same time.
struct link mesh_axis_link(const struct mesh_job *job, enum mesh_axis axis);
struct link mesh_stage_link(const struct mesh_job *job, int stage);
