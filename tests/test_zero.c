// test_zero.c - ZeRO passes the cases that every backend must pass. Its
// parameters equal those of a sum in the ring's order.

#include "group/group.h"
#include "horovod_ring/carriers.h"
#include "optim/rule.h"
#include "sync/bucket.h"
#include "sync/law.h"
#include "sync/replicas.h"
#include "tests/queue_device.h"
#include "tests/slot_copies.h"
#include "tests/sync_cases.h"
#include "zero/shards.h"
#include "zero/zero.h"

#include "base/base.h"
#include "device/vector.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/test.h"

static const struct group_ops *const tcp[] = {&ring_tcp, NULL};
static const struct group_ops *const shm[] = {&ring_shm, NULL};

static void law_of_formats(const struct sync_job *job, int rank, int world,
                           enum dtype wire, enum dtype gathered, uint64_t *out,
                           uint64_t *in)
{
    struct law_step law = {.world = world,
                           .micro = 1,
                           .shards = true,
                           .kind = SHARD_STATE,
                           .grain = RULE_BLOCK,
                           .sum_bytes = dtype_bytes(wire),
                           .param_bytes = dtype_bytes(gathered)};
    struct group_stats moves;
    struct bucket *units;
    law.count = bucket_align(&units, job->buckets, job->nbuckets, RULE_BLOCK);
    law.cut = units;
    law_step_bytes(&law, rank, &moves);
    *out = moves.bytes_out;
    *in = moves.bytes_in;
    mem_free(units);
}

static void law(const struct sync_job *job, int rank, int world,
                enum dtype wire, uint64_t *out, uint64_t *in)
{
    law_of_formats(job, rank, world, wire, DTYPE_F32, out, in);
}

// Slices are small, so that small vectors have many of them.
static const struct fixture zero = {
    .sync = "zero",
    .ops = &sync_zero,
    .carriers = tcp,
    .opts = "slice_kb=1",
    .law = law,
};

static const struct fixture zero_shm = {
    .sync = "zero",
    .ops = &sync_zero,
    .carriers = shm,
    .opts = "",
    .shared = true,
    .few = true,
};

// With staging, as on a GPU.
static const struct fixture staged = {
    .sync = "zero",
    .ops = &sync_zero,
    .carriers = tcp,
    .opts = "slice_kb=1",
    .device = queue_device_open,
    .few = true,
    .law = law,
};

static void over_shm(void **state)
{
    (void)state;
    case_integers(&zero_shm);
    case_overflow(&zero_shm);
    case_state(&zero_shm);
    case_killed(&zero_shm);
}

static void behind_the_stage(void **state)
{
    (void)state;
    case_integers(&staged);
    case_overflow(&staged);
    case_bcast(&staged);
    case_state(&staged);
    case_bytes(&staged);
}

// ---- vectors of several blocks, so that each of four ranks owns some

enum { BLOCKS = 13, LARGE = BLOCKS * RULE_BLOCK - 77, STEPS = 3 };

static struct setup large(int world, int sgd)
{
    return (struct setup){.world = world,
                          .n = LARGE,
                          .first = RULE_BLOCK + 1,
                          .bucket = 9 * RULE_BLOCK / 2,
                          .sgd = sgd};
}

// The chunks of all units (zero/shards.h) tile the vector once, and begin at
// multiples of the grain.
static int tiles_body(struct worker *w)
{
    struct shards s;
    if (shards_open(&s, &w->job, RULE_BLOCK))
        return -1;
    size_t end = w->job.n, own = 0, at = s.own;
    for (int i = 0; i < s.count; i++) {
        const struct bucket *all = &s.all[i];
        const struct unit *u = &s.units[i];
        at -= u->own.n; // the state is in the order of the vector
        if (all->off + all->n != end || all->off % RULE_BLOCK ||
            (u->own.n && u->own.off % RULE_BLOCK) || u->at != at)
            return fail("unit %d is wrong", i);
        end = all->off;
        own += u->own.n;
    }
    w->result = own;
    shards_close(&s);
    return end || own != s.own ? fail("units do not tile the vector") : 0;
}

static void chunks_tile_the_vector(void **state)
{
    (void)state;
    for (int world = 1; world <= CASE_WORLDS; world++) {
        struct setup s = large(world, 0);
        uint64_t own[CASE_WORLDS], all = 0;
        assert_int_equal(world_run(&zero, &s, tiles_body, own), 0);
        for (int r = 0; r < world; r++) {
            assert_true(own[r] > 0);
            all += own[r];
        }
        assert_int_equal(all, LARGE);
    }
}

// Sets v to the sum of the gradients of all ranks (normal deviates). Chunk c is
// added in the ring's order, from member c+1 to member c.
static int sum_in_order(const struct worker *w, int step, float *v)
{
    struct shards s;
    struct worker one = *w;
    if (shards_open(&s, &w->job, RULE_BLOCK))
        return -1;
    one.job.grads = mem_alloc(w->job.n, sizeof(float));
    if (!one.job.grads)
        return -1;
    memset(v, 0, w->job.n * sizeof *v);
    for (int k = 1; k <= 2 * w->world; k++) {
        one.rank = k % w->world;
        worker_normals(&one, step);
        for (int i = 0; i < s.count; i++) {
            const struct bucket *all = &s.all[i];
            for (int c = 0; c < w->world; c++) {
                if (k < c + 1 || k > c + w->world)
                    continue;
                struct group_chunk chunk =
                    group_chunk(all->n, RULE_BLOCK, w->world, c);
                for (size_t e = 0; e < chunk.n; e++)
                    v[all->off + chunk.off + e] +=
                        one.job.grads[all->off + chunk.off + e];
            }
        }
    }
    mem_free(one.job.grads);
    shards_close(&s);
    return 0;
}

static int ordered_body(struct worker *w)
{
    struct worker local;
    int rc = oracle_open(&local, w);
    for (int step = 1; !rc && step <= STEPS; step++) {
        struct sync_out a, b;
        worker_normals(w, step);
        rc = sum_in_order(w, step, local.job.grads) ||
             worker_step(w, step, &a) || worker_step(&local, step, &b) ||
             worker_equals(w, &local);
        if (!rc && a.grad_norm != b.grad_norm)
            rc = fail("step %d: norm %.9g, local has %.9g", step,
                      (double)a.grad_norm, (double)b.grad_norm);
        if (!rc && a.grad_norm < 2 * 20) // worker_step() clips at 20
            rc = fail("step %d: nothing is clipped", step);
    }
    oracle_close(&local);
    return rc ? -1 : 0;
}

// With normal deviates and clipping, the parameters are bit-identical to those
// of `local`, if `local` adds in the same order.
static void equals_local_in_bits(void **state)
{
    (void)state;
    const struct fixture *const both[] = {&zero, &zero_shm};
    for (int world = 1; world <= CASE_WORLDS; world++)
        for (int k = 0; k < 2; k++) {
            struct setup s = large(world, k);
            snprintf(s.opts, sizeof s.opts, "overlap=%d", (world + k) % 2);
            assert_int_equal(world_run(both[k], &s, ordered_body, NULL), 0);
        }
}

static int hash_body(struct worker *w)
{
    for (int step = 1; step <= STEPS; step++) {
        struct sync_out out;
        worker_normals(w, step);
        if (worker_step(w, step, &out))
            return -1;
    }
    w->result = hash_bytes(w->job.params, w->job.n * sizeof(float));
    return 0;
}

// The sum of two workers' numbers is the same in either order. So the
// parameters are bit-identical to the ring's, although its chunks are
// different.
static void equals_the_ring_in_bits(void **state)
{
    (void)state;
    static const struct fixture ring = {.sync = "ring",
                                        .ops = &sync_replicas,
                                        .carriers = tcp,
                                        .opts = ""};
    uint64_t a[2], b[2];
    struct setup s = large(2, 0);
    assert_int_equal(world_run(&zero, &s, hash_body, a), 0);
    assert_int_equal(world_run(&ring, &s, hash_body, b), 0);
    assert_true(a[0] == a[1] && a[0] == b[0]);
}

static int bytes_body(struct worker *w)
{
    struct group_stats before = w->sync->stats;
    uint64_t out, in;
    if (hash_body(w))
        return -1;
    law(&w->job, w->rank, w->world, DTYPE_F32, &out, &in);
    uint64_t went = w->sync->stats.bytes_out - before.bytes_out;
    uint64_t came = w->sync->stats.bytes_in - before.bytes_in;
    w->result = went;
    return went == STEPS * out && came == STEPS * in
               ? 0
               : fail("%llu out, %llu in; the law: %llu, %llu",
                      (unsigned long long)went, (unsigned long long)came,
                      (unsigned long long)(STEPS * out),
                      (unsigned long long)(STEPS * in));
}

// Each worker sends the bytes of the law. All workers together send the ring's
// bytes and those of the norm.
static void bytes_of_many_chunks(void **state)
{
    (void)state;
    for (int world = 2; world <= CASE_WORLDS; world++) {
        struct setup s = large(world, 0);
        uint64_t went[CASE_WORLDS], all = 0;
        assert_int_equal(world_run(&zero, &s, bytes_body, went), 0);
        for (int r = 0; r < world; r++)
            all += went[r];
        uint64_t words = LARGE * sizeof(float) + BLOCKS * sizeof(double);
        assert_int_equal(all, 2 * (uint64_t)(world - 1) * words * STEPS);
    }
}

// ---- a model in 16 bits: workers gather the 16-bit copy of the parameters

static uint64_t hash_params(const struct worker *w)
{
    return hash_bytes(w->job.params, w->job.n * sizeof(float));
}

static int copy_body(struct worker *w)
{
    static uint16_t half[LARGE], want[LARGE];
    struct half_copy copy = {.at = half, .format = DTYPE_BF16};
    uint64_t out, in;
    w->job.copy = &copy;
    if (worker_begin(w) || sync_bcast(w->sync))
        return -1;
    uint64_t before = w->sync->stats.bytes_out;
    if (hash_body(w))
        return -1;
    uint64_t went = w->sync->stats.bytes_out - before, partial = hash_params(w);
    law_of_formats(&w->job, w->rank, w->world, DTYPE_F32, DTYPE_BF16, &out,
                   &in);
    if (w->fixture->law && went != STEPS * out)
        return fail("%llu bytes went; the law: %llu", (unsigned long long)went,
                    (unsigned long long)(STEPS * out));
    if (!copy.fresh || sync_whole(w->sync))
        return -1;
    w->result = hash_params(w);
    if (w->world > 1 && w->result == partial)
        return fail("a step gathered the fp32 parameters");
    vector_cast(want, DTYPE_BF16, w->job.params, DTYPE_F32, LARGE);
    return memcmp(half, want, sizeof want) ? fail("the copy is wrong") : 0;
}

static void gathers_the_copy(void **state)
{
    (void)state;
    const struct fixture *const both[] = {&zero, &zero_shm};
    for (int world = 1; world <= CASE_WORLDS; world++)
        for (int k = 0; k < 2; k++) {
            uint64_t plain[CASE_WORLDS], copied[CASE_WORLDS];
            struct setup s = large(world, 0);
            assert_int_equal(world_run(both[k], &s, hash_body, plain), 0);
            s.closed = true;
            assert_int_equal(world_run(both[k], &s, copy_body, copied), 0);
            for (int r = 0; r < world; r++)
                assert_true(copied[r] == plain[0]);
        }
}

// ---- every rank has ranges of the optimiser's state

static float (*kept)[OPTIM_MAX_SLOTS][LARGE]; // [0]: given, [1]: taken back

static int there_and_back(struct worker *w)
{
    float *given[] = {kept[0][0], kept[0][1]};
    float *taken[] = {kept[1][0], kept[1][1]};
    struct worker local;
    struct sync_out a, b;
    if (sync_load(w->sync, copy_slot_in, given) ||
        sync_save(w->sync, copy_slot_out, taken))
        return -1;
    int rc =
        oracle_open(&local, w) || sync_load(local.sync, copy_slot_in, given);
    worker_integers(w, 3, 60);
    worker_summed(&local, 3, 60);
    rc = rc || worker_step(w, 3, &a) || worker_step(&local, 3, &b) ||
         worker_equals(w, &local);
    oracle_close(&local);
    return rc ? -1 : 0;
}

static void state_goes_there_and_back(void **state)
{
    (void)state;
    kept = mmap(NULL, 2 * sizeof *kept, PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(kept != MAP_FAILED);
    for (int slot = 0; slot < OPTIM_MAX_SLOTS; slot++)
        for (size_t i = 0; i < LARGE; i++)
            kept[0][slot][i] = (float)(i % 1000 + 1) * 0.001f;
    for (int world = 1; world <= CASE_WORLDS; world++) {
        struct setup s = large(world, 0);
        memset(kept[1], 0, sizeof *kept);
        assert_int_equal(world_run(&zero, &s, there_and_back, NULL), 0);
        assert_memory_equal(kept[0], kept[1], sizeof *kept);
    }
    munmap(kept, 2 * sizeof *kept);
}

// ---- memory, as the system sees it

enum { HEAVY = 1 << 22 };

static void a_worker_holds_its_share(void **state)
{
    (void)state;
    static const struct fixture usual = {.sync = "zero",
                                         .ops = &sync_zero,
                                         .carriers = tcp,
                                         .opts = ""};
    const size_t slots = 2 * sizeof(float) * HEAVY, mib = 1 << 20;
    if (TEST_SANITIZED)
        skip(); // the sanitizer's own memory would be most of it
    for (int world = 1; world <= CASE_WORLDS; world++) {
        uint64_t grew[CASE_WORLDS];
        struct setup s = {.world = world,
                          .n = HEAVY,
                          .bucket = HEAVY / 4,
                          .closed = true};
        size_t share = slots / (size_t)world;
        size_t grain = 4 * 2 * sizeof(float) * RULE_BLOCK; // of 4 buckets
        assert_int_equal(world_run(&usual, &s, worker_grows, grew), 0);
        for (int r = 0; r < world; r++)
            assert_in_range(grew[r], share - grain, share + grain + 2 * mib);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_tile_the_vector),
        CASE(integers, &zero),
        cmocka_unit_test(over_shm),
        cmocka_unit_test(behind_the_stage),
        CASE(many, &zero),
        CASE(replicas, &zero),
        CASE(reruns, &zero),
        CASE(overflow, &zero),
        CASE(divides_first, &zero),
        CASE(bytes, &zero),
        cmocka_unit_test(bytes_of_many_chunks),
        CASE(state, &zero),
        CASE(bcast, &zero),
        CASE(missing, &zero),
        CASE(killed, &zero),
        CASE(disagree, &zero),
        cmocka_unit_test(equals_local_in_bits),
        cmocka_unit_test(equals_the_ring_in_bits),
        cmocka_unit_test(gathers_the_copy),
        cmocka_unit_test(state_goes_there_and_back),
        cmocka_unit_test(a_worker_holds_its_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
