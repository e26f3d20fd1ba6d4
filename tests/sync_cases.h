// sync_cases.h - the cases that every backend must pass, with or without
// servers.
//
// A test program describes its backend once, and its tests are the cases:
//
//     static const struct fixture ring = {.sync = "ring", .ops = .., ..};
//     const struct CMUnitTest tests[] = {CASE(integers, &ring), ..};
//
// By default workers are forked and communicate through shared memory, so no
// launcher is needed. If `cluster` is set, this process is one rank of a job
// that mpirun started: all ranks run the cases together, and worlds of another
// size are left out. A backend with servers has start() and stop(), which the
// parent calls before and after every world.
//
// A case fails through cmocka in the parent (or on each rank); workers report
// by returning -1 after fail(), whose message is printed with their rank.

#pragma once

#include "base/half.h"
#include "cluster/cluster.h"
#include "device/device.h"
#include "optim/optim.h"
#include "sync/sync.h"
#include "tests/forked.h"

enum { CASE_WORLDS = 4, CASE_MANY = 16, CASE_BUCKETS = 64, CASE_TEXT = 512 };

struct fixture {
    const char *sync; // the backend's name
    const struct sync_ops *ops;
    const struct group_ops *const *carriers; // NULL: it needs none
    const char *opts;                        // given in every case; "" for none
    bool shared;             // gradients in memory that other processes can map
    struct cluster *cluster; // under mpirun: the job; NULL: fork workers
    world_runner *run;       // NULL: forked_run()
    int (*device)(struct device **d); // opens a worker's device; NULL: the CPU
    bool awaits;        // workers call worker_await() before they read params
    bool few;           // case_integers: only one format for each size
    bool one_wire;      // nothing depends on wire=: one format for each world
    bool silent_deaths; // only a deadline shows that a worker was killed
    // Starts the servers of one world, and adds their settings ("servers=..")
    // to `opts`. *state is for stop(). A backend without servers has no start()
    // and no stop().
    int (*start)(int world, char opts[CASE_TEXT], void **state);
    void (*stop)(void *state);
    // Computes by the law how many bytes of payload worker `rank` sends and
    // receives in a step.
    void (*law)(const struct sync_job *job, int rank, int world,
                enum dtype wire, uint64_t *out, uint64_t *in);
};

// All workers of one world share this.
struct setup {
    int world;
    size_t n, first, bucket; // elements: all, of bucket 0, of others
    char opts[CASE_TEXT];    // added to the fixture's
    double timeout_s;        // 0: long enough never to matter
    bool sgd;                // SGD with momentum; else AdamW with decay
    bool closed;             // the body opens the backend itself
    uint64_t seed;           // of delays; > 0: ranks arrive in any order
};

// One open worker of a world. The parent gets its `result`.
struct worker {
    const struct fixture *fixture;
    const struct setup *setup;
    int rank, world;
    struct cluster *cluster;
    struct device *dev;
    const char *text; // the settings as text
    struct sync_settings settings;
    struct optim_config optim;
    struct bucket buckets[CASE_BUCKETS];
    struct sync_job job;
    struct sync *sync;
    uint64_t result;
};

// Runs body() on every worker of the world. Before that params and grads are
// zero, the backend is open, and the broadcast is done. Returns how many
// workers failed, died or did not end in time. results[rank] gets each worker's
// result, unless results is NULL. world_here() returns whether a world of this
// size can run here.
int world_run(const struct fixture *f, const struct setup *s,
              int (*body)(struct worker *w), uint64_t *results);
bool world_here(const struct fixture *f, int world);

// Opens the backend, in a body whose setup says `closed`. A backend that lends
// blocks then copies the parameters from job.params, and each step copies them
// back. Returns 0, or -1 after fail(), as the functions below do.
int worker_begin(struct worker *w);
// Gives bucket b of the gradients to the backend.
int worker_ready(struct worker *w, int b);
// worker_integers() makes gradients: small integers within +-most that differ
// by rank, step and element. worker_summed() makes their sum over all ranks,
// for the worker of oracle_open().
void worker_integers(struct worker *w, int step, int most);
void worker_summed(struct worker *w, int step, int most);
// Makes gradients of normal deviates, different for each rank and step.
void worker_normals(struct worker *w, int step);
// Waits for the first half of job.params, then for all. A body calls it before
// it reads them after sync_step().
int worker_await(struct worker *w);
// Calls worker_ready() for all buckets in order, then runs the step. If the
// setup has a seed, it sleeps for a random time before each bucket.
int worker_step(struct worker *w, int step, struct sync_out *out);
// This is a body for world_run(). Its result is the memory in bytes that the
// process needs to open the backend and to run one step, as the system counts.
int worker_grows(struct worker *w);
// Returns 0 if the parameters have the same bits as those of `local`, which was
// given the sum of all gradients, else -1 after fail().
int worker_equals(const struct worker *w, const struct worker *local);
// Returns 0 if the optimiser's state has these n slots in this order, else -1
// after fail().
int worker_has_slots(const struct worker *w, const char *const *names, int n);
// Opens a worker of the backend `local` in the process of w, with the same job.
int oracle_open(struct worker *local, const struct worker *w);
void oracle_close(struct worker *local);

// ---- the cases; each runs its worlds itself

void case_integers(const struct fixture *f); // the same bits as local
void case_many(const struct fixture *f);     // the same for a world of 16
void case_replicas(const struct fixture *f); // same bits on every worker
void case_reruns(const struct fixture *f);   // same in any order of arrival
void case_overflow(const struct fixture *f); // one infinite: all skip
void case_divides_first(const struct fixture *f); // fp16: the mean fits
void case_bytes(const struct fixture *f);         // counted bytes equal the law
void case_state(const struct fixture *f);         // save, load in other worlds
void case_bcast(const struct fixture *f);    // all get worker 0's parameters
void case_missing(const struct fixture *f);  // a rank that never steps
void case_killed(const struct fixture *f);   // a rank dies by SIGKILL
void case_disagree(const struct fixture *f); // names settings that differ

// A case as a row of cmocka's table, for one fixture: CASE(integers, &ring).
#define CASE(name, fixture)                                                    \
    {                                                                          \
#name, run_##name, NULL, NULL, (void *)(fixture)                       \
    }

#define CASE_RUN(name)                                                         \
    static inline void run_##name(void **fixture)                              \
    {                                                                          \
        case_##name(*fixture);                                                 \
    }
CASE_RUN(integers)
CASE_RUN(many)
CASE_RUN(replicas)
CASE_RUN(reruns)
CASE_RUN(overflow)
CASE_RUN(divides_first)
CASE_RUN(bytes)
CASE_RUN(state)
CASE_RUN(bcast)
CASE_RUN(missing)
CASE_RUN(killed)
CASE_RUN(disagree)
