// test_ps_wire.c - messages, the handshake, the shard map, reference counts of
// buffers.

#include "base/base.h"
#include "ps_wire/buffer.h"
#include "ps_wire/job.h"
#include "ps_wire/shard.h"
#include "ps_wire/wire.h"

#include <math.h>

#include "tests/test.h"

static void heads_survive_a_round_trip(void **state)
{
    (void)state;
    uint8_t raw[PS_HEAD];
    for (int kind = PS_HELLO; kind < PS_KINDS; kind++) {
        struct ps_head out = {0};
        struct ps_head in = {
            .kind = (enum ps_kind)kind,
            .dtype = DTYPE_BF16,
            .what = PS_GRADS,
            .rank = 7,
            .row = 123456,
            .epoch = 3,
            .order = 11,
            .round = 1ull << 40,
            .version = 1ull << 41,
            .bytes = 4096,
            .value = 0.1,
        };
        ps_head_put(raw, &in);
        assert_int_equal(ps_head_get(&out, raw, PS_HEAD), 0);
        assert_true(out.kind == in.kind && out.dtype == in.dtype &&
                    out.what == in.what && out.rank == in.rank &&
                    out.row == in.row && out.epoch == in.epoch &&
                    out.order == in.order && out.round == in.round &&
                    out.version == in.version && out.bytes == in.bytes &&
                    out.value == in.value);
    }
    // written out by hand: the layout is little-endian and fixed
    const uint8_t begin[] = {'L',     'C', 'K', 'S', PS_VERSION, 0,
                             PS_BUSY, 0,   2,   0,   4,          0};
    assert_memory_equal(raw, begin, sizeof begin);
}

static int refused(const uint8_t *raw, size_t n, const char *because)
{
    struct ps_head h;
    assert_int_equal(ps_head_get(&h, raw, n), -1);
    assert_non_null(strstr(fail_message(), because));
    return 0;
}

static void bad_heads_are_refused(void **state)
{
    (void)state;
    uint8_t good[PS_HEAD], raw[PS_HEAD];
    struct ps_head h = {.kind = PS_PUSH, .bytes = 100};
    ps_head_put(good, &h);
    refused(good, PS_HEAD - 1, "63 bytes");
    refused(good, 0, "0 bytes");
    const struct {
        size_t at;
        uint8_t value;
        const char *because;
    } cases[] = {
        {0, 'X', "not a message of ours"},
        {4, 9, "version 9"},
        {6, 99, "unknown kind 99"},
        {6, 0, "unknown kind 0"},
        {8, 3, "format 3"},
        {10, 9, "vector 9"},
        {15, 1, "rank"},
        {27, 1, "order"},
        {28, 1, "impossible"},
        {52, 1, "more than"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memcpy(raw, good, PS_HEAD);
        raw[cases[i].at] = cases[i].value;
        refused(raw, PS_HEAD, cases[i].because);
    }
    h = (struct ps_head){.kind = PS_STEP, .bytes = PS_MAX_DATA + 1};
    ps_head_put(raw, &h);
    refused(raw, PS_HEAD, "more than");
}

static void small_messages_survive_a_round_trip(void **state)
{
    (void)state;
    uint8_t raw[PS_RESULT_BYTES];
    struct ps_step s = {5, 0, 0.5f, 0.25f, 1}, t;
    ps_step_put(raw, &s);
    assert_int_equal(ps_step_get(&t, raw, PS_STEP_BYTES), 0);
    assert_memory_equal(&s, &t, sizeof s);
    assert_int_equal(ps_step_get(&t, raw, PS_STEP_BYTES - 1), -1);
    s.grad_scale = NAN;
    ps_step_put(raw, &s);
    assert_int_equal(ps_step_get(&t, raw, PS_STEP_BYTES), -1);
    struct ps_result r = {2.5, 1, 3, 100, 200, 300}, u;
    ps_result_put(raw, &r);
    assert_int_equal(ps_result_get(&u, raw, PS_RESULT_BYTES), 0);
    assert_true(u.norm == 2.5 && u.skipped == 1 && u.lag == 3 &&
                u.served_out == 100 && u.served_in == 200 && u.used == 300);
}

static void sums_in_16_bits_have_a_divisor(void **state)
{
    (void)state;
    assert_true(ps_divisor(3, DTYPE_F32) == 1);
    assert_true(ps_divisor(1, DTYPE_F16) == 1);
    assert_true(ps_divisor(2, DTYPE_F16) == 2);
    assert_true(ps_divisor(3, DTYPE_BF16) == 4);
    assert_true(ps_divisor(64, DTYPE_F16) == 64);
}

static struct ps_job example(void)
{
    return (struct ps_job){
        .rank = 1,
        .world = 4,
        .index = 0,
        .servers = 2,
        .n = 1000,
        .slice = 64,
        .wire = DTYPE_F16,
        .consistency = CONSISTENCY_BSP,
        .timeout_s = 60,
        .layout = 42,
        .optim = {.kind = OPTIM_ADAMW,
                  .beta1 = 0.9f,
                  .beta2 = 0.99f,
                  .eps = 1e-8f,
                  .ndecay = 2,
                  .decay = {{10, 20, 0}, {100, 900, 0}}},
    };
}

static int round_trip(const struct ps_job *in, struct ps_job *out)
{
    static uint8_t raw[PS_JOB_BYTES];
    return ps_job_get(out, raw, ps_job_put(raw, in));
}

static void different_settings_are_refused(void **state)
{
    (void)state;
    static uint8_t raw[PS_JOB_BYTES];
    struct ps_job a = example(), b, c;
    assert_int_equal(round_trip(&a, &b), 0);
    assert_int_equal(ps_job_same(&a, &b), 0);
    size_t n = ps_job_put(raw, &a);
    for (size_t k = 0; k < n; k++)
        assert_int_equal(ps_job_get(&c, raw, k), -1);

    b.rank = 2;
    b.index = 1;
    assert_int_equal(ps_job_same(&a, &b), 0);
    b.wire = DTYPE_F32;
    assert_int_equal(ps_job_same(&a, &b), -1);
    assert_non_null(strstr(fail_message(), "wire"));
    assert_non_null(strstr(fail_message(), "rank 2"));
    b = a;
    b.layout++;
    assert_int_equal(ps_job_same(&a, &b), -1);
    b = a;
    b.optim.decay[1].n--;
    assert_int_equal(ps_job_same(&a, &b), -1);
    b = a;
    b.seed = (a.seed = (uint64_t)1 << 53) + 1; // equal as doubles
    assert_int_equal(ps_job_same(&a, &b), -1);
    assert_non_null(strstr(fail_message(), "9007199254740993"));

    b = a;
    b.rank = 4;
    assert_int_equal(round_trip(&b, &c), -1);
    b = a;
    b.optim.decay[1].n++; // beyond the vector
    assert_int_equal(round_trip(&b, &c), -1);
    b = a;
    b.n = 0;
    assert_int_equal(round_trip(&b, &c), -1);
    b = a;
    b.worker_updates = true;
    b.consistency = CONSISTENCY_ASP;
    assert_int_equal(round_trip(&b, &c), -1);
}

// Every element belongs to exactly one server. Row 0 is the end of the vector,
// and each further row lies below the one before. The shards of two servers
// differ by at most one element.
static void shards_tile_the_vector(void **state)
{
    (void)state;
    for (size_t n = 1; n < 3000; n = n * 3 + 1) {
        for (int servers = 1; servers <= 5; servers++) {
            static int owner[3000];
            memset(owner, 0, sizeof owner);
            size_t least = n, most = 0;
            for (int i = 0; i < servers; i++) {
                struct shard s;
                assert_int_equal(shard_make(&s, n, 16, servers, i), 0);
                size_t below = n, local = 0;
                for (int r = 0; r < s.rows; r++) {
                    struct slice k = shard_slice(&s, r);
                    assert_true(k.off + k.n <= below && k.n <= 16);
                    assert_int_equal(k.local, local);
                    for (size_t j = k.off; j < k.off + k.n; j++)
                        owner[j]++;
                    below = k.off;
                    local += k.n;
                }
                size_t all = shard_elements(&s);
                assert_int_equal(all, local);
                least = all < least ? all : least;
                most = all > most ? all : most;
            }
            for (size_t j = 0; j < n; j++)
                assert_int_equal(owner[j], 1);
            assert_true(most - least <= 1);
        }
    }
    struct shard s;
    assert_int_equal(shard_make(&s, (size_t)1 << 40, 1, 1, 0), -1);
}

static void buffers_count_their_references(void **state)
{
    (void)state;
    struct buffers *pool;
    assert_int_equal(buffers_open(&pool, 100), 0);
    struct buffer *a = buffer_get(pool), *b = buffer_get(pool);
    assert_true(a != b && !buffer_shared(a));
    buffer_ref(a);
    assert_true(buffer_shared(a));
    buffer_sent(a->data, a);
    assert_false(buffer_shared(a));
    buffer_unref(a);
    assert_ptr_equal(buffer_get(pool), a);
    buffer_unref(a);
    buffer_unref(b);
    buffers_close(&pool);
    assert_null(pool);
}

static void windows_shrink_with_more_workers(void **state)
{
    (void)state;
    assert_int_equal(ps_window(1), 8);
    assert_int_equal(ps_window(8), 8);
    assert_int_equal(ps_window(16), 4);
    assert_int_equal(ps_window(64), 2);
    assert_int_equal(ps_window(PS_MAX_WORLD), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_survive_a_round_trip),
        cmocka_unit_test(bad_heads_are_refused),
        cmocka_unit_test(small_messages_survive_a_round_trip),
        cmocka_unit_test(sums_in_16_bits_have_a_divisor),
        cmocka_unit_test(windows_shrink_with_more_workers),
        cmocka_unit_test(different_settings_are_refused),
        cmocka_unit_test(shards_tile_the_vector),
        cmocka_unit_test(buffers_count_their_references),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
