// group_cases.h - what every carrier of group.h's verbs must pass.
//
// A test program describes its carrier once and calls the cases as its tests:
//
//     static const struct carried tcp = {.ops = &ring_tcp, .law = law};
//     static void verbs(void **state) { carry_verbs(&tcp); }
//
// Members are forked, or ranks of an mpirun job (forked.h): with `cluster` set
// all ranks run the cases side by side, and worlds of another size are left
// out. A case fails through cmocka in the parent (or on each rank).

#ifndef TESTS_GROUP_CASES_H
#define TESTS_GROUP_CASES_H

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

// Where vectors are.
enum carry_memory {
    CARRY_OWN,    // in memory of the device, of which the group knows nothing
    CARRY_COPIED, // the same, but the group was told: group_share()
    CARRY_SHARED  // told, and in memory that other processes can map
};

struct carried {
    const struct group_ops *ops;
    enum carry_memory memory;
    int algorithm;                    // of the library
    struct cluster *cluster;          // under mpirun: the job; NULL: fork
    world_runner *run;                // NULL: forked_run()
    int (*device)(struct device **d); // opens a member's; NULL: the CPU
    bool
        halves_bytes; // reduce_scatter and all_gather move what all_reduce does
    bool in_order; // a message moves only once all tickets before are complete
    // Payload in bytes that a verb moves out of and into this member; NULL:
    // not checked. (Of send and recv: the vector in its wire.)
    void (*law)(const struct group *g, const struct group_op *op, uint64_t *out,
                uint64_t *in);
};

// What the members of one world have in common.
struct carry_setup {
    int world;
    size_t grain;
    bool thread;
    bool pairs;
    size_t slice_bytes;   // 0: the default
    double timeout_s;     // 0: long enough never to matter
    enum group_verb verb; // that the cases of faults try
};

// One member of a world: a group is open, and `arena` is zeroed.
struct member {
    const struct carried *carried;
    const struct carry_setup *setup;
    struct cluster *cluster;
    int rank, world;
    struct device *dev;
    char *arena; // CARRY_BYTES of the device's memory
    char *host;  // as many of the host's
    char *want;  // and as many again, to compare with
    struct group *group;
    uint64_t out, in; // payload so far, by the law
    uint64_t result;  // for the parent
};

// One verb and its vector of small integers, which differ by rank, element and
// `salt`, at `off` bytes of the arena, 64 guarding bytes on both sides.
struct trial {
    struct group_op op;
    int salt;
    int origin; // send, recv: the member whose numbers travel
    size_t off;
    uint64_t ticket;
};

// Run body() on every member of a world; returns how many failed, did not end
// in time or died. carry_here(): whether a world of this size can run here.
int carry_run(const struct carried *c, const struct carry_setup *s,
              int (*body)(struct member *m), uint64_t *results);
bool carry_here(const struct carried *c, int world);

// One more group of the same members; the caller closes it.
struct group *member_open(const struct member *m, const char *name);

// A vector as the verb wants it: sums in 16 bits are scaled.
struct group_op trial_op(const struct member *m, enum group_verb verb, size_t n,
                         enum dtype type, enum dtype wire, int peer);
size_t trial_bytes(const struct trial *t); // in the arena, guards included
int trial_fill(struct member *m, const struct trial *t);
int trial_post(struct member *m, struct group *g, struct trial *t);
// After it was awaited or followed: fail() unless the numbers are right.
int trial_check(struct member *m, const struct trial *t);

// Arena [off, off + n floats) := normal deviates, other for each rank; a hash
// of n floats there.
int member_normals(struct member *m, size_t off, size_t n);
int member_hash(struct member *m, size_t off, size_t n, uint64_t *hash);

// fail() unless the bytes counted are the law's; unless the last failure names
// the group and its last member.
int member_bytes(const struct member *m);
int member_names_last(const struct member *m);

// A job that mpirun started has one world: skip a case for other worlds only.
void skip_other_worlds(const struct carried *c, int first, int last);

// Assert that body() works on all members, if the world can run here.
void run_all(const struct carried *c, const struct carry_setup *s,
             int (*body)(struct member *m));

// ---- the cases; each runs its worlds itself

void carry_verbs(const struct carried *c);   // integers, to the bit; bytes
void carry_many(const struct carried *c);    // the same for a world of 16
void carry_large(const struct carried *c);   // vectors of many pieces
void carry_halves(const struct carried *c);  // two halves are an all_reduce
void carry_threads(const struct carried *c); // with one or without: same bits
// Both give the same sums of normal deviates.
void carry_same_bits(const struct carried *a, const struct carried *b);
void carry_groups(const struct carried *c);  // two, interleaved
void carry_missing(const struct carried *c); // forked: one never posts
void carry_killed(const struct carried *c);  // forked: one dies by SIGKILL
void carry_pairs(const struct carried *c);   // send and recv
void carry_orphans(const struct carried *c); // forked: a sender dies

#endif
