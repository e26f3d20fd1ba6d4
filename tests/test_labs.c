// test_labs.c - the labs teach what the product does: their reference solutions
// and the product's own functions give the same results.
//
// labs/files.cmake builds the references a second time, under other names: the
// map of shards of lab 3, the law of bytes of lab 4 and the buckets of lab 5.

#include "horovod_ring/plan.h"
#include "ps_wire/shard.h"
#include "sync/bucket.h"

#include "tests/test.h"

// The headers of labs 3 and 5 define the same structs as the product's headers,
// so this file includes the latter and declares only the functions of the labs.
int lab_shard_make(struct shard *s, size_t n, size_t slice, int servers,
                   int index);
struct slice lab_shard_slice(const struct shard *s, int row);
int lab_shard_rows(const struct shard *s);
size_t lab_shard_elements(const struct shard *s);

enum lab_way { LAB_OUT, LAB_IN };
size_t lab_ring_bytes(size_t n, int rank, int workers, enum lab_way way);

int lab_bucket_cut(struct bucket *out, int max, size_t n, size_t first,
                   size_t size);

static void same_shard(size_t n, size_t slice, int servers, int index)
{
    struct shard a, b;
    assert_int_equal(shard_make(&a, n, slice, servers, index), 0);
    assert_int_equal(lab_shard_make(&b, n, slice, servers, index), 0);
    assert_int_equal(a.rows, b.rows);
    assert_int_equal(shard_rows(&a), lab_shard_rows(&b));
    assert_int_equal(shard_elements(&a), lab_shard_elements(&b));
    for (int row = 0; row < a.rows; row++) {
        struct slice x = shard_slice(&a, row), y = lab_shard_slice(&b, row);
        assert_int_equal(x.n, y.n);
        assert_int_equal(x.off, y.off);
        assert_int_equal(x.local, y.local);
    }
}

static void lab_3_maps_shards_as_servers_do(void **state)
{
    (void)state;
    for (size_t n = 1; n < 200; n += 1 + n / 8)
        for (size_t slice = 1; slice <= 16; slice *= 2)
            for (int servers = 1; servers <= 9; servers++)
                for (int index = 0; index < servers; index++)
                    same_shard(n, slice, servers, index);
}

static void lab_4_counts_bytes_as_the_ring_does(void **state)
{
    (void)state;
    for (int w = 1; w <= 9; w++)
        for (size_t n = 0; n < 100; n++)
            for (int r = 0; r < w; r++) {
                struct plan p = {.rank = r, .world = w, .grain = 1};
                struct group_op op = {.verb = GROUP_ALL_REDUCE, .vector.n = n};
                assert_int_equal(lab_ring_bytes(n, r, w, LAB_OUT),
                                 4 * plan_elements(&p, &op, OUT));
                assert_int_equal(lab_ring_bytes(n, r, w, LAB_IN),
                                 4 * plan_elements(&p, &op, IN));
            }
}

static void lab_5_cuts_buckets_as_sync_does(void **state)
{
    (void)state;
    for (size_t n = 1; n < 300; n += 1 + n / 8)
        for (size_t first = 1; first < 50; first *= 3)
            for (size_t size = 1; size < 50; size *= 3) {
                struct bucket a[64], b[64];
                int count = bucket_cut(a, 64, n, first, size);
                assert_int_equal(count, lab_bucket_cut(b, 64, n, first, size));
                for (int i = 0; i < count; i++) {
                    assert_int_equal(a[i].off, b[i].off);
                    assert_int_equal(a[i].n, b[i].n);
                }
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lab_3_maps_shards_as_servers_do),
        cmocka_unit_test(lab_4_counts_bytes_as_the_ring_does),
        cmocka_unit_test(lab_5_cuts_buckets_as_sync_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
