// group_cases.h - the cases that every carrier of group.h must pass.
//
// A test program describes its carrier once, and its tests call the cases:
//
//     static const struct carried tcp = {.ops = &ring_tcp, .law = law};
//     static void verbs(void **state) { carry_verbs(&tcp); }
//
// Members are forked, or are the ranks of an mpirun job (forked.h). In such a
// job `cluster` is set: all ranks run the cases together, and worlds of another
// size are left out. A case fails through cmocka in the parent, or on each
// rank.

#pragma once

#include "cluster/cluster.h"
#include "device/device.h"
#include "group/group.h"
#include "tests/forked.h"

enum {
    CARRY_WORLDS = 4,
    CARRY_MANY = 16,
    CARRY_SLICE = 1024,   // bytes; small, so that small vectors are many slices
    CARRY_DEPTH = 8,      // tickets
    CARRY_BYTES = 1 << 22 // of a member's arena
};

// The memory that vectors are in.
enum carry_memory {
    CARRY_OWN,    // in memory of the device, without group_share()
    CARRY_COPIED, // the same, with group_share()
    CARRY_SHARED  // with group_share(), in memory that others can map
};

struct carried {
    const struct group_ops *ops;
    enum carry_memory memory;
    int algorithm;                    // of the library
    struct cluster *cluster;          // under mpirun: the job; NULL: fork
    world_runner *run;                // NULL: forked_run()
    int (*device)(struct device **d); // opens a member's device; NULL: the CPU
    bool halves_bytes; // reduce_scatter + all_gather move an all_reduce's bytes
    bool in_order; // a message moves only after all earlier tickets are done
    bool messages; // of struct group_job
    // Computes the payload in bytes that a verb sends and receives on this
    // member. It is not called for send, recv and all_to_all, of which every
    // carrier moves the same bytes. NULL: bytes are not checked.
    void (*law)(const struct group *g, const struct group_op *op, uint64_t *out,
                uint64_t *in);
};

// The setup of one world, the same for all its members.
struct carry_setup {
    int world;
    size_t grain;
    bool thread;
    bool pairs;
    size_t slice_bytes;   // 0: the default
    double timeout_s;     // 0: long enough never to matter
    enum group_verb verb; // the verb that a case of faults tests
};

// One member of a world: a group is open, and `arena` is zeroed.
struct member {
    const struct carried *carried;
    const struct carry_setup *setup;
    struct cluster *cluster;
    int rank, world;
    struct device *dev;
    char *arena; // CARRY_BYTES of the device's memory
    char *host;  // CARRY_BYTES of the host's memory
    char *want;  // CARRY_BYTES, for expected contents
    struct group *group;
    uint64_t out, in; // payload so far, by the law
    uint64_t result;  // that the parent gets
};

// One verb and its vector, at `off` bytes of the arena, with 64 guard bytes on
// both sides. The vector has small integers that differ by rank, element and
// `salt`. An all_to_all has its second vector, with guard bytes, after the
// first.
struct trial {
    struct group_op op;
    int salt;
    int origin;  // send, recv: the member whose numbers travel
    bool uneven; // lengths[0] are those of op.vector, lengths[1] of op.given
    size_t each; // all_to_all: elements of the largest part
    size_t lengths[2][CARRY_MANY];
    size_t off;
    uint64_t ticket;
};

// carry_run() runs body() on every member of a world. It returns how many
// members failed, died or did not end in time. results[rank] gets each member's
// result, unless results is NULL. carry_here() returns whether a world of this
// size can run here.
int carry_run(const struct carried *c, const struct carry_setup *s,
              int (*body)(struct member *m), uint64_t *results);
bool carry_here(const struct carried *c, int world);

// Opens one more group of the same members. The caller closes it. Returns NULL
// after fail().
struct group *member_open(const struct member *m, const char *name);

// trial_op() returns an operation on n elements; a sum in 16 bits is scaled.
// trial_cut() gives its vector uneven chunks, some of them empty. trial_parts()
// sets the parts of an all_to_all: `each` elements at least, all of one length;
// or uneven ones, from none to `each`. trial_fill() writes the vector's
// integers, trial_post() posts the verb and returns 0, or -1 after fail().
struct group_op trial_op(const struct member *m, enum group_verb verb, size_t n,
                         enum dtype type, enum dtype wire, int peer);
void trial_cut(const struct member *m, struct trial *t);
void trial_parts(const struct member *m, struct trial *t, size_t each,
                 bool uneven);
size_t trial_bytes(const struct trial *t); // in the arena, guards included
void trial_fill(struct member *m, const struct trial *t);
// The trial must not move before its verb is complete.
int trial_post(struct member *m, struct group *g, struct trial *t);
// Call this after the verb was awaited or followed. Returns 0, or -1 after
// fail() if a number or guard byte is wrong.
int trial_check(struct member *m, const struct trial *t);

// member_normals() fills n floats at `off` bytes of the arena with normal
// deviates, different for each rank. member_hash() returns a hash of them.
void member_normals(struct member *m, size_t off, size_t n);
uint64_t member_hash(struct member *m, size_t off, size_t n);

// Both return 0, or -1 after fail(). member_bytes() fails if the bytes counted
// are not those of the law, member_names_last() if the last error does not name
// the group and its last member.
int member_bytes(const struct member *m);
int member_names_last(const struct member *m);

// Skips a case whose worlds do not include that of the mpirun job.
void skip_other_worlds(const struct carried *c, int first, int last);

// Asserts that body() succeeds on all members, if the world can run here.
void run_all(const struct carried *c, const struct carry_setup *s,
             int (*body)(struct member *m));

// ---- the cases; each runs its worlds itself

void carry_verbs(const struct carried *c);   // right integers, right bytes
void carry_many(const struct carried *c);    // the same for a world of 16
void carry_large(const struct carried *c);   // vectors of many pieces
void carry_halves(const struct carried *c);  // two halves equal an all_reduce
void carry_threads(const struct carried *c); // same bits without a thread
// Two carriers give the same sums of normal deviates.
void carry_same_bits(const struct carried *a, const struct carried *b);
void carry_groups(const struct carried *c);  // two groups, interleaved
void carry_missing(const struct carried *c); // forked: a member never posts
void carry_killed(const struct carried *c);  // forked: SIGKILL of a member
void carry_pairs(const struct carried *c);   // send and recv
void carry_leaves(const struct carried *c);  // messages need no await
void carry_orphans(const struct carried *c); // forked: SIGKILL of a sender
void carry_uneven(const struct carried *c);  // chunks of any length
void carry_all_to_all(const struct carried *c);
void carry_all_to_all_many(const struct carried *c); // in a world of 16
