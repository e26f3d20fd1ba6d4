// test_zero_shards.c - ZeRO with gradients or parameters in shards (shard=2 and
// shard=3) passes the cases that every backend must pass. Also compares all
// levels of shard= with the ring and with each other.

#include "group/group.h"
#include "horovod_ring/carriers.h"
#include "optim/rule.h"
#include "squeeze/scatter.h"
#include "sync/law.h"
#include "sync/members.h"
#include "tests/sync_cases.h"
#include "zero/shards.h"
#include "zero/zero.h"

#include "base/base.h"
#include "base/rng.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/test.h"

static const struct group_ops *const tcp[] = {&ring_tcp, NULL};
static const struct group_ops *const shm[] = {&ring_shm, NULL};

// ---- the cases of every backend

#define FIXTURE(carrier, settings, ...)                                        \
    {                                                                          \
        .sync = "zero", .ops = &sync_zero, .carriers = (carrier),              \
        .opts = settings, __VA_ARGS__                                          \
    }

static const struct fixture grads = FIXTURE(tcp, "shard=2,slice_kb=1", 0);
static const struct fixture params = FIXTURE(tcp, "shard=3,slice_kb=1", 0);
static const struct fixture grads_shm =
    FIXTURE(shm, "shard=2", .shared = true, .few = true);
static const struct fixture params_shm =
    FIXTURE(shm, "shard=3", .shared = true, .few = true);
// Each worker sends all of its gradients as messages.
static const struct fixture grads_sent =
    FIXTURE(tcp, "shard=2,slice_kb=1,squeeze=topk,density=1,feedback=0", 0);
static const struct fixture params_sent =
    FIXTURE(shm, "shard=3,squeeze=topk,density=1,feedback=0", .shared = true);
// The model's blocks are copies, as on a GPU.
static const struct fixture grads_copied =
    FIXTURE(tcp, "shard=2,slice_kb=1,staging=always", .few = true);
static const struct fixture params_copied =
    FIXTURE(tcp, "shard=3,slice_kb=1,staging=always", .few = true);

static void copied(void **state)
{
    (void)state;
    case_integers(&grads_copied);
    case_integers(&params_copied);
    case_overflow(&params_copied);
    case_state(&params_copied);
}

static void over_shm(void **state)
{
    (void)state;
    case_integers(&grads_shm);
    case_integers(&params_shm);
    case_overflow(&params_shm);
    case_state(&params_shm);
    case_killed(&params_shm);
}

// ---- the ring with ZeRO's units and grain

struct aligned {
    struct shards shards;
    int next;
    uint64_t ticket;
};

static int aligned_open(struct sync *s)
{
    struct aligned *a = s->state;
    if (shards_open(&a->shards, &s->job, RULE_BLOCK))
        return -1;
    const struct members_need need = {.grain = RULE_BLOCK,
                                      .largest = a->shards.largest,
                                      .depth = (size_t)a->shards.count};
    return members_open(s, &need);
}

static int aligned_ready(struct sync *s, int b)
{
    struct aligned *a = s->state;
    const struct bucket *all = &a->shards.all[a->next];
    if (s->job.buckets[b].off > all->off)
        return 0;
    a->next = (a->next + 1) % a->shards.count;
    struct group_vector v = group_floats(s->job.grads + all->off, all->n);
    return group_all_reduce(s->group, &v, &a->ticket);
}

static int aligned_step(struct sync *s, const struct sync_in *in,
                        struct sync_out *out)
{
    const struct aligned *a = s->state;
    (void)in;
    (void)out;
    return group_await(s->group, a->ticket);
}

static void aligned_close(struct sync *s)
{
    struct aligned *a = s->state;
    shards_close(&a->shards);
}

static const struct sync_ops aligned_ring = {
    .state_size = sizeof(struct aligned),
    .open = aligned_open,
    .ready = aligned_ready,
    .step = aligned_step,
    .close = aligned_close,
};

static const struct fixture ring = {.sync = "ring",
                                    .ops = &aligned_ring,
                                    .carriers = tcp,
                                    .opts = ""};
static const struct fixture state = FIXTURE(tcp, "", 0);
static const struct fixture late = FIXTURE(tcp, "", .awaits = true);
static const struct fixture grads_late =
    FIXTURE(tcp, "shard=2,slice_kb=1", .awaits = true);
static const struct fixture state_shm = FIXTURE(shm, "", .shared = true);

// ---- steps, with the calls that a model makes

enum { MOST = 13 * RULE_BLOCK - 77, STEPS = 3 };

static const struct cut {
    size_t n, first, bucket; // elements in all, in bucket 0, in the others
} cuts[] = {{MOST, 33, 2 * RULE_BLOCK + 11},
            {MOST, RULE_BLOCK + 1, 9 * RULE_BLOCK / 2},
            {20011, 100, 500}};

enum { CUTS = sizeof cuts / sizeof *cuts };

static struct setup cut_setup(int world, int k)
{
    return (struct setup){.world = world,
                          .n = cuts[k].n,
                          .first = cuts[k].first,
                          .bucket = cuts[k].bucket,
                          .sgd = k == 1};
}

// Takes block b for forward, and copies its parameters to job.params.
static int read_block(struct worker *w, int b)
{
    const struct bucket *k = &w->job.buckets[w->job.nbuckets - 1 - b];
    struct sync_place place;
    if (sync_take(w->sync, b, false, &place))
        return -1;
    if (w->sync->lends_params)
        memcpy(w->job.params + k->off, place.weights, k->n * sizeof(float));
    return 0;
}

// The order of model/forward.c: the next block is taken before this one is
// given back. The first and the last block stay taken.
static int forward(struct worker *w)
{
    int last = w->job.nbuckets - 1;
    if (read_block(w, 0) || read_block(w, 1))
        return -1;
    for (int b = 1; b < last; b++)
        if (read_block(w, b + 1) || sync_give(w->sync, b))
            return -1;
    return 0;
}

// The order of model/backward.c: block 0 is taken before the others, since the
// head writes its gradient first.
static int backward(struct worker *w)
{
    struct sync_place first, place;
    int n = w->job.nbuckets;
    if (sync_take(w->sync, 0, true, &first))
        return -1;
    for (int i = 0; i < n; i++) {
        int b = n - 1 - i;
        const struct bucket *k = &w->job.buckets[i];
        place = first;
        if (b && sync_take(w->sync, b, true, &place))
            return -1;
        memcpy(place.grads, w->job.grads + k->off, k->n * sizeof(float));
        if (w->sync->lends_params &&
            memcmp(place.weights, w->job.params + k->off, k->n * sizeof(float)))
            return fail("block %d has other numbers in backward", b);
        if (sync_ready(w->sync, i) || sync_give(w->sync, b))
            return -1;
    }
    return 0;
}

struct plan_of_steps {
    int micro;
    bool integers;
};

static struct plan_of_steps todo;

static void fill(struct worker *w, int step, int micro)
{
    if (todo.integers)
        worker_integers(w, step * 16 + micro, 60);
    else
        worker_normals(w, step * 16 + micro);
}

// Gives sync the gradients of each micro-batch if it lends memory for them, and
// otherwise their sum.
static int hand_over(struct worker *w, int step)
{
    static float sum[MOST];
    for (int m = 0; m < todo.micro; m++) {
        fill(w, step, m);
        if (w->sync->lends_grads && (forward(w) || backward(w)))
            return -1;
        for (size_t i = 0; i < w->job.n; i++)
            sum[i] = m ? sum[i] + w->job.grads[i] : w->job.grads[i];
    }
    if (w->sync->lends_grads)
        return 0;
    memcpy(w->job.grads, sum, w->job.n * sizeof *sum);
    for (int b = 0; b < w->job.nbuckets; b++)
        if (sync_ready(w->sync, b))
            return -1;
    return 0;
}

static uint64_t hash_params(const struct worker *w, uint64_t before)
{
    uint64_t both[2] = {before,
                        hash_bytes(w->job.params, w->job.n * sizeof(float))};
    return hash_bytes(both, sizeof both);
}

static int finish_step(struct worker *w, int step)
{
    struct sync_out out;
    struct sync_in in = {.step = step,
                         .lr = 0.01f,
                         .grad_scale = 1.0f / (float)(w->world * todo.micro),
                         .clip = 20};
    if (sync_step(w->sync, &in, &out) || worker_await(w))
        return -1;
    return out.grad_norm > 2 * in.clip
               ? 0
               : fail("step %d: nothing is clipped", step);
}

// Trains some steps. The result is a hash of the parameters of every step;
// those at the end are in job.params.
static int train_body(struct worker *w)
{
    for (int step = 1; step <= STEPS; step++) {
        if (hand_over(w, step)) // copies lent parameters to job.params
            return -1;
        w->result = hash_params(w, w->result);
        if (finish_step(w, step))
            return -1;
    }
    if (w->sync->lends_params && forward(w))
        return -1;
    w->result = hash_params(w, w->result);
    return 0;
}

// Checks that all workers of a world have the same hash, and returns it.
static uint64_t train_all(const struct fixture *f, int world, int cut,
                          int overlap)
{
    uint64_t hash[CASE_WORLDS];
    struct setup s = cut_setup(world, cut);
    snprintf(s.opts, sizeof s.opts, "overlap=%d", overlap);
    assert_int_equal(world_run(f, &s, train_body, hash), 0);
    for (int r = 1; r < world; r++)
        assert_true(hash[r] == hash[0]);
    return hash[0];
}

// With one micro-batch, normal deviates and clipping, the parameters of every
// step are bit-identical to the ring's, with every level of sharding.
static void equal_the_ring_in_bits(void **unused)
{
    (void)unused;
    const struct fixture *const all[] = {&state,        &late,
                                         &grads,        &grads_late,
                                         &params,       &state_shm,
                                         &grads_shm,    &params_shm,
                                         &grads_copied, &params_copied};
    todo = (struct plan_of_steps){.micro = 1};
    for (int world = 1; world <= CASE_WORLDS; world++)
        for (int cut = 0; cut < CUTS; cut++) {
            uint64_t want = train_all(&ring, world, cut, 1);
            for (int k = 0; k < 10; k++)
                assert_true(train_all(all[k], world, cut,
                                      (k + cut + world) % 2) == want);
        }
}

// Several micro-batches: shard=2 and shard=3 reduce each of them, and are
// bit-identical to each other. On integers they are also identical to the ring,
// which reduces the sum of the micro-batches.
static void micro_batches_agree(void **unused)
{
    (void)unused;
    for (int integers = 0; integers < 2; integers++)
        for (int world = 1; world <= CASE_WORLDS; world++) {
            todo = (struct plan_of_steps){.micro = 4, .integers = integers};
            uint64_t two = train_all(&grads, world, 0, 1);
            assert_true(train_all(&params, world, 0, 1) == two);
            assert_true(train_all(&params_shm, world, 0, 0) == two);
            assert_true(train_all(&params_copied, world, 0, 1) == two);
            if (integers)
                assert_true(train_all(&ring, world, 0, 1) == two);
            if (integers || world <= 2) { // of three sums the order differs
                assert_true(train_all(&grads_sent, world, 0, 1) == two);
                assert_true(train_all(&params_sent, world, 0, 0) == two);
            }
        }
}

static float (*ended)[MOST]; // worker 0's parameters at the end of two runs
static int run;

static int ended_body(struct worker *w)
{
    int rc = train_body(w);
    if (w->rank == 0)
        memcpy(ended[run], w->job.params, w->job.n * sizeof(float));
    return rc;
}

// On normal deviates the sums differ in the last bits.
static void micro_batches_come_near_the_ring(void **unused)
{
    (void)unused;
    ended = mmap(NULL, 2 * sizeof *ended, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(ended != MAP_FAILED);
    todo = (struct plan_of_steps){.micro = 4};
    for (int world = 2; world <= CASE_WORLDS; world++) {
        struct setup s = cut_setup(world, 1); // SGD: no division by roots
        double off = 0, size = 0;
        for (run = 0; run < 2; run++)
            assert_int_equal(world_run(run ? &grads : &ring, &s, ended_body,
                                       NULL),
                             0);
        for (size_t i = 0; i < s.n; i++) {
            off += pow((double)ended[0][i] - (double)ended[1][i], 2);
            size += pow((double)ended[0][i], 2);
        }
        assert_true(off > 0 && sqrt(off / size) < 1e-6);
    }
    munmap(ended, 2 * sizeof *ended);
}

// ---- bytes

// Bytes of a micro-batch's messages from a worker to each other.
static size_t messages(const struct worker *w)
{
    struct shards shards = {NULL};
    size_t bytes = 0;
    CHECK(!shards_open(&shards, &w->job, RULE_BLOCK));
    if (w->settings.squeeze)
        bytes = scatter_bytes(&w->settings, w->world, shards.all, shards.count);
    shards_close(&shards);
    return bytes;
}

// Checks that a worker's bytes in a step are those of the law, for each verb.
static int same_bytes(const struct worker *w, int step,
                      const struct group_stats *moved)
{
    const struct law_step law = {
        .world = w->world,
        .micro = todo.micro,
        .shards = true,
        .kind = (enum shard_level)w->settings.shard,
        .cut = w->job.buckets,
        .count = w->job.nbuckets,
        .grain = RULE_BLOCK,
        .sum_bytes = sizeof(float),
        .param_bytes = sizeof(float),
        .messages = (size_t)todo.micro * messages(w),
    };
    struct group_stats want;
    law_step_bytes(&law, w->rank, &want);
    for (int v = 0; v < GROUP_VERBS; v++)
        if (moved->out[v] != want.out[v] || moved->in[v] != want.in[v])
            return fail("step %d: %s: %llu out, %llu in; the law: %llu, %llu",
                        step, group_verb_name((enum group_verb)v),
                        (unsigned long long)moved->out[v],
                        (unsigned long long)moved->in[v],
                        (unsigned long long)want.out[v],
                        (unsigned long long)want.in[v]);
    return moved->bytes_out == want.bytes_out &&
                   moved->bytes_in == want.bytes_in
               ? 0
               : fail("step %d: the totals are not the sums of verbs", step);
}

static int bytes_body(struct worker *w)
{
    for (int step = 1; step <= STEPS; step++) {
        struct group_stats before = w->sync->stats;
        if (hand_over(w, step) || finish_step(w, step))
            return -1;
        struct group_stats moved = w->sync->stats;
        group_stats_less(&moved, &before);
        // in the first step, blocks that worker_begin() gathered are still here
        if (step > 1 && same_bytes(w, step, &moved))
            return -1;
        w->result = moved.bytes_out;
    }
    return 0;
}

static void bytes_are_the_laws(void **unused)
{
    (void)unused;
    const struct fixture *const all[] = {&grads, &params, &state, &grads_sent};
    for (int world = 1; world <= CASE_WORLDS; world++)
        for (int micro = 1; micro <= 3; micro += 2)
            for (int cut = 0; cut < CUTS; cut++)
                for (int k = 0; k < 4; k++) {
                    struct setup s = cut_setup(world, cut);
                    todo = (struct plan_of_steps){.micro = micro};
                    assert_int_equal(world_run(all[k], &s, bytes_body, NULL),
                                     0);
                }
}

// The number of gathers of L layers in a step, counted by hand. The other two
// blocks are gathered once each.
static void gathers_by_hand(void **unused)
{
    (void)unused;
    static const struct {
        int layers, micro, gathers;
    } cases[] = {{1, 1, 1}, {2, 1, 2},  {2, 3, 2},   {3, 1, 4},
                 {4, 1, 6}, {4, 2, 10}, {12, 1, 22}, {12, 4, 82}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int n = cases[i].layers + 2, all = 0;
        for (int b = 0; b < n; b++)
            all += law_gathers(b, n, cases[i].micro, false) +
                   law_gathers(b, n, cases[i].micro, true);
        assert_int_equal(all, cases[i].gathers + 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(integers, &grads),
        CASE(integers, &params),
        cmocka_unit_test(copied),
        cmocka_unit_test(over_shm),
        CASE(replicas, &params),
        CASE(reruns, &params),
        CASE(overflow, &grads),
        CASE(overflow, &params),
        CASE(divides_first, &params),
        CASE(state, &grads),
        CASE(state, &params),
        CASE(bcast, &grads),
        CASE(missing, &grads),
        CASE(missing, &params),
        CASE(killed, &grads),
        CASE(killed, &params),
        CASE(disagree, &params),
        cmocka_unit_test(equal_the_ring_in_bits),
        cmocka_unit_test(micro_batches_agree),
        cmocka_unit_test(micro_batches_come_near_the_ring),
        cmocka_unit_test(bytes_are_the_laws),
        cmocka_unit_test(gathers_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
