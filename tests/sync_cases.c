// sync_cases.c - the cases that every backend must pass.

#include "tests/sync_cases.h"

#include "base/base.h"

#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/settings.h"
#include "tests/slot_copies.h"
#include "tests/test.h"

static const enum dtype wires[] = {DTYPE_F32, DTYPE_F16, DTYPE_BF16};

enum { WIRES = 3, STEPS = 4 };

// The largest integer of a rank whose sum over all ranks is exact in the
// format.
static int most_exact(enum dtype wire, int world)
{
    int sum = wire == DTYPE_BF16 ? 240 : 2000;
    return sum / (world > CASE_WORLDS ? world : CASE_WORLDS);
}

static enum dtype wire_of(const struct worker *w)
{
    for (int i = 0; i < WIRES; i++)
        if (strstr(w->setup->opts, dtype_name(wires[i])))
            return wires[i];
    return DTYPE_F32;
}

static void set_opts(struct setup *s, const char *fmt, const char *wire,
                     int overlap)
{
    snprintf(s->opts, sizeof s->opts, fmt, wire, overlap);
}

// Skips a case whose worlds do not include that of the mpirun job.
static void skip_other_worlds(const struct fixture *f, int first, int last)
{
    if (f->cluster && (f->cluster->world < first || f->cluster->world > last))
        skip();
}

// ---- equal to local, to the bit

static int integers_body(struct worker *w)
{
    struct worker local;
    int most = most_exact(wire_of(w), w->world);
    int rc = oracle_open(&local, w);
    for (int step = 1; !rc && step <= STEPS; step++) {
        struct sync_out a, b;
        worker_integers(w, step, most);
        worker_summed(&local, step, most);
        rc = worker_step(w, step, &a) || worker_step(&local, step, &b) ||
                     worker_equals(w, &local)
                 ? -1
                 : 0;
        if (!rc && (a.grad_norm != b.grad_norm || a.skipped || a.dropped))
            rc = fail("step %d: norm %.9g, local has %.9g; skipped %d", step,
                      (double)a.grad_norm, (double)b.grad_norm, a.skipped);
    }
    oracle_close(&local);
    return rc;
}

// Which sizes, formats and overlaps run. A long test takes all. Otherwise each
// size and format has one overlap, and in the next world the other one. Under a
// sanitizer, or if the fixture has `few` or `one_wire`, each size has only one
// format.
static bool is_taken(const struct fixture *f, int world, int size, int wire,
                     int overlap)
{
    if (test_long())
        return true;
    if ((size + world + wire + overlap) % 2)
        return false;
    return (!f->few && !f->one_wire && !TEST_SANITIZED) ||
           wire == (size + world) % WIRES;
}

// Whether a world runs with this format.
static bool is_format(const struct fixture *f, int world, int wire)
{
    return !f->one_wire || test_long() || wire == world % WIRES;
}

void case_integers(const struct fixture *f)
{
    skip_other_worlds(f, 1, CASE_WORLDS);
    // Elements in all, in the first bucket, in the others; a slice is 1 KiB.
    static const size_t sizes[][3] = {{1, 1, 1},        {7, 7, 7},
                                      {7, 1, 2},        {1000, 1000, 1000},
                                      {257, 257, 257},  {513, 513, 513},
                                      {1030, 257, 300}, {20011, 100, 500}};
    for (int world = 1; world <= CASE_WORLDS; world++) {
        for (int k = 0; k < (int)(sizeof sizes / sizeof *sizes); k++) {
            for (int i = 0; world_here(f, world) && i < 2 * WIRES; i++) {
                struct setup s = {.world = world,
                                  .n = sizes[k][0],
                                  .first = sizes[k][1],
                                  .bucket = sizes[k][2],
                                  .sgd = k % 2};
                if (!is_taken(f, world, k, i / 2, i % 2))
                    continue;
                set_opts(&s, "wire=%s,overlap=%d", dtype_name(wires[i / 2]),
                         i % 2);
                int bad = world_run(f, &s, integers_body, NULL);
                if (bad)
                    log_line("world %d, n=%zu, %s", world, s.n, s.opts);
                assert_int_equal(bad, 0);
            }
        }
    }
}

void case_many(const struct fixture *f)
{
    skip_other_worlds(f, CASE_MANY, CASE_MANY);
    for (int i = 0; world_here(f, CASE_MANY) && i < WIRES; i++) {
        struct setup s = {.world = CASE_MANY,
                          .n = 20011,
                          .first = 100,
                          .bucket = 5000};
        set_opts(&s, "wire=%s,overlap=%d", dtype_name(wires[i]), 1);
        assert_int_equal(world_run(f, &s, integers_body, NULL), 0);
    }
}

// ---- the same bits on every worker, and in any order of arrival

static int normals_body(struct worker *w)
{
    for (int step = 1; step <= STEPS; step++) {
        struct sync_out out;
        worker_normals(w, step);
        if (worker_step(w, step, &out))
            return -1;
        if (out.skipped || !(out.grad_norm > 0))
            return fail("step %d: norm %g", step, (double)out.grad_norm);
    }
    w->result = hash_bytes(w->job.params, w->job.n * sizeof(float));
    return 0;
}

void case_replicas(const struct fixture *f)
{
    skip_other_worlds(f, 1, CASE_WORLDS);
    for (int world = 1; world <= CASE_WORLDS; world++) {
        for (int i = 0; world_here(f, world) && i < WIRES; i++) {
            if (!is_format(f, world, i))
                continue;
            struct setup s = {.world = world,
                              .n = 5003,
                              .first = 300,
                              .bucket = 1500};
            uint64_t hash[CASE_WORLDS];
            set_opts(&s, "wire=%s,overlap=%d", dtype_name(wires[i]), 1);
            assert_int_equal(world_run(f, &s, normals_body, hash), 0);
            for (int r = 1; r < world; r++)
                assert_true(hash[r] == hash[0]);
        }
    }
}

void case_reruns(const struct fixture *f)
{
    skip_other_worlds(f, 2, CASE_WORLDS);
    for (int world = 2; world <= CASE_WORLDS; world++) {
        for (int i = 0; world_here(f, world) && i < WIRES; i++) {
            if (!is_format(f, world, i))
                continue;
            struct setup s = {.world = world,
                              .n = 5003,
                              .first = 300,
                              .bucket = 1500};
            uint64_t first[CASE_WORLDS], again[CASE_WORLDS];
            set_opts(&s, "wire=%s,overlap=%d", dtype_name(wires[i]), 0);
            assert_int_equal(world_run(f, &s, normals_body, first), 0);
            set_opts(&s, "wire=%s,overlap=%d", dtype_name(wires[i]), 1);
            for (s.seed = 1; s.seed <= 2; s.seed++) {
                assert_int_equal(world_run(f, &s, normals_body, again), 0);
                assert_true(again[0] == first[0]);
            }
        }
    }
}

// ---- an infinity or NaN on one worker makes all skip

static int overflow_body(struct worker *w)
{
    struct sync_out out;
    const float bad[] = {INFINITY, -INFINITY, NAN};
    for (int step = 1; step <= 3; step++) {
        worker_integers(w, step, 50);
        if (w->rank == step % w->world)
            w->job.grads[(w->job.n - 1) * (size_t)(step - 1) / 2] =
                bad[step - 1];
        if (worker_step(w, 1, &out))
            return -1;
        if (!out.skipped || isfinite(out.grad_norm))
            return fail("not skipped: norm %g", (double)out.grad_norm);
        for (size_t i = 0; i < w->job.n; i++)
            if (w->job.params[i] != 0)
                return fail("parameter %zu changed in a skipped step", i);
    }
    return integers_body(w); // the next steps are not affected
}

void case_overflow(const struct fixture *f)
{
    skip_other_worlds(f, 1, CASE_WORLDS);
    for (int world = 1; world <= CASE_WORLDS; world++) {
        for (int i = 0; world_here(f, world) && i < WIRES; i++) {
            if (!is_format(f, world, i))
                continue;
            struct setup s = {.world = world,
                              .n = 2000,
                              .first = 100,
                              .bucket = 700};
            set_opts(&s, "wire=%s,overlap=%d", dtype_name(wires[i]), 1);
            assert_int_equal(world_run(f, &s, overflow_body, NULL), 0);
        }
    }
}

// 40000 on each of four workers: the sum overflows fp16, the mean does not.
static int large_body(struct worker *w)
{
    struct sync_out out;
    for (size_t i = 0; i < w->job.n; i++)
        w->job.grads[i] = 40000;
    if (worker_step(w, 1, &out))
        return -1;
    double norm = 40000 * sqrt((double)w->job.n);
    if (out.skipped || fabs(out.grad_norm / norm - 1) > 1e-5)
        return fail("norm %.9g, want %.9g", (double)out.grad_norm, norm);
    return 0;
}

void case_divides_first(const struct fixture *f)
{
    skip_other_worlds(f, 2, CASE_WORLDS);
    for (int world = 2; world <= CASE_WORLDS; world++) {
        struct setup s = {.world = world, .n = 900, .bucket = 400};
        set_opts(&s, "wire=%s,overlap=%d", "fp16", 1);
        if (world_here(f, world))
            assert_int_equal(world_run(f, &s, large_body, NULL), 0);
    }
}

// ---- the bytes counted are those of the law

static int bytes_body(struct worker *w)
{
    struct group_stats before = w->sync->stats;
    uint64_t out, in;
    if (normals_body(w))
        return -1;
    w->fixture->law(&w->job, w->rank, w->world, wire_of(w), &out, &in);
    uint64_t went = w->sync->stats.bytes_out - before.bytes_out;
    uint64_t came = w->sync->stats.bytes_in - before.bytes_in;
    if (went != out * STEPS || came != in * STEPS)
        return fail("%llu out and %llu in over %d steps; law: %llu, %llu",
                    (unsigned long long)went, (unsigned long long)came, STEPS,
                    (unsigned long long)out * STEPS,
                    (unsigned long long)in * STEPS);
    w->result = went;
    return 0;
}

void case_bytes(const struct fixture *f)
{
    skip_other_worlds(f, 1, CASE_WORLDS);
    for (int world = 1; world <= CASE_WORLDS; world++) {
        for (int i = 0; world_here(f, world) && i < WIRES; i++) {
            if (!is_format(f, world, i))
                continue;
            struct setup s = {.world = world,
                              .n = 7001,
                              .first = 301,
                              .bucket = 1501};
            set_opts(&s, "wire=%s,overlap=%d", dtype_name(wires[i]), 1);
            assert_int_equal(world_run(f, &s, bytes_body, NULL), 0);
        }
    }
}

// ---- state that one world saved can be loaded in others

enum { STATE_N = 1003, STATE_VECTORS = 1 + OPTIM_MAX_SLOTS };

// Parameters and slots after two steps; shared with forked workers.
static float (*carried)[STATE_N];

static int save_body(struct worker *w)
{
    float *vectors[] = {carried[0], carried[1], carried[2]};
    struct sync_out out;
    for (int step = 1; step <= 2; step++) {
        worker_integers(w, step, 60);
        if (worker_step(w, step, &out))
            return -1;
    }
    if (w->rank == 0)
        memcpy(carried[0], w->job.params, sizeof *carried);
    return sync_save(w->sync, copy_slot_out, vectors + 1);
}

static int resume_body(struct worker *w)
{
    float *slots[OPTIM_MAX_SLOTS] = {carried[1], carried[2]};
    struct worker local;
    struct sync_out out;
    if (w->rank == 0 || w->settings.shard >= SHARD_PARAMS)
        memcpy(w->job.params, carried[0], sizeof *carried);
    if (worker_begin(w) || sync_bcast(w->sync) ||
        sync_load(w->sync, copy_slot_in, slots))
        return -1;
    int rc =
        oracle_open(&local, w) || sync_load(local.sync, copy_slot_in, slots);
    for (int step = 3; !rc && step <= STEPS; step++) {
        worker_integers(w, step, 60);
        worker_summed(&local, step, 60);
        rc = worker_step(w, step, &out) || worker_step(&local, step, &out) ||
             worker_equals(w, &local);
    }
    oracle_close(&local);
    return rc ? -1 : 0;
}

void case_state(const struct fixture *f)
{
    skip_other_worlds(f, 1, CASE_WORLDS);
    carried = mmap(NULL, STATE_VECTORS * sizeof *carried,
                   PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(carried != MAP_FAILED);
    for (int sgd = 0; sgd < 2; sgd++) {
        struct setup s = {.n = STATE_N, .bucket = 300, .sgd = sgd};
        s.world = f->cluster ? f->cluster->world : 2;
        set_opts(&s, "wire=%s,overlap=%d", "fp32", 1);
        assert_int_equal(world_run(f, &s, save_body, NULL), 0);
        if (f->cluster)
            assert_int_equal(cluster_bcast(f->cluster, carried,
                                           STATE_VECTORS * sizeof *carried),
                             0);
        assert_true(carried[1][0] != 0);
        s.closed = true;
        for (s.world = 1; s.world <= CASE_WORLDS; s.world++)
            if (world_here(f, s.world))
                assert_int_equal(world_run(f, &s, resume_body, NULL), 0);
    }
    munmap(carried, STATE_VECTORS * sizeof *carried);
}

static int bcast_body(struct worker *w)
{
    for (size_t i = 0; i < w->job.n; i++)
        w->job.params[i] = (float)(w->rank + 1) * (float)i;
    if (worker_begin(w) || sync_bcast(w->sync))
        return -1;
    for (size_t i = 0; i < w->job.n; i++)
        if (w->job.params[i] != (float)i)
            return fail("parameter %zu is not worker 0's", i);
    return 0;
}

void case_bcast(const struct fixture *f)
{
    skip_other_worlds(f, 1, CASE_WORLDS);
    for (int world = 1; world <= CASE_WORLDS; world++) {
        struct setup s = {.world = world,
                          .n = 3001,
                          .bucket = 700,
                          .closed = true};
        set_opts(&s, "wire=%s,overlap=%d", "fp16", 1);
        if (world_here(f, world))
            assert_int_equal(world_run(f, &s, bcast_body, NULL), 0);
    }
}

// ---- faults: nobody hangs, and the right rank is named

// Step 1 works; step 2 fails on all but the last rank, and names it.
static int blame_body(struct worker *w, int (*victim)(struct worker *w))
{
    struct sync_out out;
    char name[32];
    int last = w->world - 1;
    snprintf(name, sizeof name, "rank %d", last);
    worker_normals(w, 1);
    if (worker_step(w, 1, &out))
        return -1;
    worker_normals(w, 2);
    if (w->rank == last)
        return victim(w);
    if (!worker_step(w, 2, &out))
        return fail("step 2 worked without rank %d", last);
    if (!strstr(fail_message(), name))
        return fail("does not name %s: %.200s", name, fail_message());
    return 0;
}

// How many workers have given up on the last rank; shared by all of a world.
static atomic_int *gave_up;

static int stays_away(struct worker *w)
{
    while (atomic_load(gave_up) < w->world - 1)
        usleep(1000);
    return 0;
}

static int dies(struct worker *w)
{
    worker_ready(w, 0);
    raise(SIGKILL);
    return -1;
}

static int missing_body(struct worker *w)
{
    int rc = blame_body(w, stays_away);
    atomic_fetch_add(gave_up, 1);
    return rc;
}

static int killed_body(struct worker *w)
{
    return blame_body(w, dies);
}

void case_missing(const struct fixture *f)
{
    assert_null(f->cluster); // the workers are forked here
    gave_up = mmap(NULL, sizeof *gave_up, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(gave_up != MAP_FAILED);
    for (int world = 2; world <= CASE_WORLDS; world += 2) {
        struct setup s = {.world = world,
                          .n = 5000,
                          .first = 100,
                          .bucket = 2000,
                          .timeout_s = 1.5};
        set_opts(&s, "wire=%s,overlap=%d", "fp32", 1);
        atomic_store(gave_up, 0);
        assert_int_equal(world_run(f, &s, missing_body, NULL), 0);
    }
    munmap(gave_up, sizeof *gave_up);
}

// The vectors are so large that the victim dies while its bytes travel. They
// are small if only the deadline shows the death.
void case_killed(const struct fixture *f)
{
    skip_other_worlds(f, 2, CASE_WORLDS);
    size_t unit = f->silent_deaths ? 1000 : 100000;
    for (int world = 2; world <= CASE_WORLDS; world++) {
        struct setup s = {.world = world,
                          .n = 20 * unit,
                          .first = unit,
                          .bucket = 5 * unit,
                          .timeout_s = f->silent_deaths ? 3 : 10};
        set_opts(&s, "wire=%s,overlap=%d", "fp32", 1);
        if (world_here(f, world)) // only the victim fails
            assert_int_equal(world_run(f, &s, killed_body, NULL), 1);
    }
}

static int disagree_body(struct worker *w)
{
    if (w->rank == 0) {
        char text[CASE_TEXT];
        if (text_into(text, sizeof text, "%s,wire=bf16", w->text) ||
            settings_text(&w->settings, text, w->fixture->sync, w->world,
                          w->setup->n))
            return -1;
    }
    if (!worker_begin(w))
        return fail("opened although wires differ");
    return strstr(fail_message(), "wire") ? 0 : -1;
}

void case_disagree(const struct fixture *f)
{
    skip_other_worlds(f, 2, CASE_WORLDS);
    struct setup s = {.world = f->cluster ? f->cluster->world : 2,
                      .n = 100,
                      .closed = true};
    s.timeout_s = 5;
    set_opts(&s, "wire=%s,overlap=%d", "fp32", 1);
    assert_int_equal(world_run(f, &s, disagree_body, NULL), 0);
}
