// mesh.h - ranks on a grid: mesh=dp2,pp2,tp2.
//
// From rank to rank, the coordinate of the last word changes fastest. So
// mesh=tp2,dp2 puts the members of a tp group further apart than mesh=dp2,tp2
// does:
//
//     mesh=dp2,tp2   rank 0  1  2  3        mesh=tp2,dp2   rank 0  1  2  3
//                    dp   0  0  1  1                       dp   0  1  0  1
//                    tp   0  1  0  1                       tp   0  0  1  1
//
// dp: replicas of the model, with data of their own; pp: stages of layers; tp:
// slices of tensors; cp: workers that divide every sequence of a replica; up:
// groups of these that exchange heads (docs/sequence.md).

#pragma once

#include "config/settings.h"

enum mesh_axis { MESH_DP, MESH_PP, MESH_TP, MESH_CP, MESH_UP, MESH_AXES };

struct mesh {
    int n;                          // words; 0: no mesh was given
    enum mesh_axis axis[MESH_AXES]; // of each word, the slowest first
    int size[MESH_AXES];            // of each word
};

// Reads the mesh of mesh= from text, and shows it. 0, or -1 after fail().
int mesh_read(void *at, const char *key, const char *value);
void mesh_show(const void *at, char text[CONFIG_PATH]);

// "dp", "pp", "tp", "cp", "up".
const char *mesh_axis_name(enum mesh_axis axis);

// The number of all ranks; the number along an axis, 1 if the mesh does not
// name it.
int mesh_ranks(const struct mesh *m);
int mesh_size(const struct mesh *m, enum mesh_axis axis);

// The number of parts that a replica's work has: ranks of the mesh that read
// the same sequences.
int mesh_parts(const struct mesh *m);

// The number of workers that divide each sequence, and a rank's number among
// them: those of one group follow each other.
int mesh_pieces(const struct mesh *m);
int mesh_piece(const struct mesh *m, int rank);

// A rank's coordinate along an axis; 0 along one that the mesh does not name.
int mesh_at(const struct mesh *m, int rank, enum mesh_axis axis);

// Writes a rank's coordinates for an error, " (dp 1, tp 0)", or "" without a
// mesh. Returns text.
enum { MESH_TEXT = 48 };
char *mesh_place(const struct mesh *m, int rank, char text[MESH_TEXT]);

// Copies a message to `out`, and adds the coordinates of each rank that it
// names: "rank 5 (dp 1, tp 1)". Returns out.
enum { MESH_SENTENCE = 1024 };
char *mesh_say(const struct mesh *m, const char *text, char out[MESH_SENTENCE]);
