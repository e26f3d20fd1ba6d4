// test_zero_order.c - the order in which shard=3 begins to gather blocks and
// waits for them: a block is gathered while the block before it is used.

#include "horovod_ring/carriers.h"
#include "optim/rule.h"
#include "tests/sync_cases.h"
#include "zero/zero.h"

#include "base/base.h"

#include <stdio.h>
#include <string.h>

#include "tests/test.h"

// The ring over TCP, without a thread: an operation begins inside the call that
// posts it. begun[] counts operations.
static int begun[GROUP_VERBS];

static int begin(struct group *g, const struct group_op *op)
{
    begun[op->verb]++;
    return ring_tcp.begin(g, op);
}

static struct group_ops counting;
static const struct group_ops *const carriers[] = {&counting, NULL};

static const struct fixture shards = {.sync = "zero",
                                      .ops = &sync_zero,
                                      .carriers = carriers,
                                      .opts = "shard=3,slice_kb=1"};

enum { BLOCKS = 6, LAST = BLOCKS - 1 };

// The number of gathers that have begun since the last call.
static int gathers(void)
{
    static int before;
    int new = begun[GROUP_ALL_GATHER] - before;
    before = begun[GROUP_ALL_GATHER];
    return new;
}

// Takes block b. Expects that `new` gathers begin before it has arrived.
static int take(struct worker *w, int b, bool backward, int new)
{
    struct sync_place place;
    if (sync_take(w->sync, b, backward, &place))
        return -1;
    if (backward) {
        const struct bucket *k = &w->job.buckets[LAST - b];
        memcpy(place.grads, w->job.grads + k->off, k->n * sizeof(float));
    }
    int have = gathers();
    return have == new ? 0
                       : fail("%s of block %d: %d gathers began, not %d",
                              backward ? "backward" : "forward", b, have, new);
}

// Gives block b back. Expects that `new` gathers begin, since its buffer is
// free.
static int give(struct worker *w, int b, int new)
{
    if (sync_give(w->sync, b))
        return -1;
    int have = gathers();
    return have == new ? 0
                       : fail("block %d given back: %d gathers began, not %d",
                              b, have, new);
}

// The order of model/forward.c. With `ahead`, gathers are one block ahead: when
// a block has arrived, the gather of the next one has begun. If both buffers of
// layers are in use, it begins as soon as one of them is free.
static int forward(struct worker *w, bool ahead)
{
    if (take(w, 0, false, ahead ? 2 : 1) || take(w, 1, false, 1))
        return -1;
    for (int b = 1; b < LAST; b++) {
        // ln_f has a buffer of its own
        bool next = b + 1 == LAST - 1 && ahead;
        int asked = ahead ? next : 1;
        int given = ahead && b + 2 < LAST;
        if (take(w, b + 1, false, asked) || give(w, b, given))
            return -1;
    }
    return 0;
}

// The order of model/backward.c. Blocks 1 to 4 are layers, and forward leaves
// blocks 3 and 4 in the buffers. Block 2 is gathered while 3 is used, and 1
// while 2 is used.
static int backward(struct worker *w, bool ahead)
{
    for (int b = LAST; b >= 0; b--) {
        bool asks = ahead ? b == 3 || b == 2 : b == 2 || b == 1;
        if (take(w, b, true, asks) || sync_ready(w->sync, LAST - b) ||
            give(w, b, 0))
            return -1;
        if (begun[GROUP_REDUCE_SCATTER] % BLOCKS != (BLOCKS - b) % BLOCKS)
            return fail("block %d: its sum has not begun", b);
    }
    return 0;
}

static int steps_body(struct worker *w)
{
    bool ahead = w->sync->overlap;
    memset(begun, 0, sizeof begun);
    for (int step = 1; step <= 3; step++) {
        struct sync_out out;
        struct sync_in in = {.step = step, .lr = 0.01f, .grad_scale = 0.5f};
        worker_normals(w, step);
        gathers();
        // worker_begin() has gathered all blocks for the first step
        if (step > 1 ? forward(w, ahead) || backward(w, ahead) : 0)
            return -1;
        for (int b = 0; step == 1 && b < BLOCKS; b++)
            if (worker_ready(w, b))
                return -1;
        if (sync_step(w->sync, &in, &out))
            return -1;
    }
    return 0;
}

static void one_block_ahead(void **state)
{
    (void)state;
    counting = ring_tcp;
    counting.threaded = false;
    counting.begin = begin;
    for (int world = 2; world <= 3; world++)
        for (int overlap = 0; overlap < 2; overlap++) {
            struct setup s = {.world = world,
                              .n = BLOCKS * 4 * RULE_BLOCK,
                              .first = 4 * RULE_BLOCK,
                              .bucket = 4 * RULE_BLOCK};
            snprintf(s.opts, sizeof s.opts, "overlap=%d", overlap);
            assert_int_equal(world_run(&shards, &s, steps_body, NULL), 0);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_block_ahead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
