// test_data.c - the order of windows, the batches of each rank, seeking, the
// loader's thread, and validation.

#include "data/data.h"

#include "data/order.h"

#include <stdlib.h>
#include <unistd.h>

#include "tests/data_files.h"

// ---- order

static void order_is_a_permutation(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {1, 2, 3, 5, 16, 17, 1000, 4096, 70001};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        uint64_t n = sizes[k];
        char *seen = calloc(n, 1);
        for (uint64_t i = 0; i < n; i++) {
            uint64_t w = order_at(9, 3, n, i);
            assert_true(w < n);
            assert_false(seen[w]);
            seen[w] = 1;
        }
        free(seen);
    }
}

// Over many epochs each window comes first about equally often. Few windows
// that are neighbours in an epoch's order are neighbours in the text.
static void each_window_comes_first_equally_often(void **state)
{
    (void)state;
    enum { N = 50, EPOCHS = 5000 };
    int first[N] = {0}, neighbours = 0;
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
        first[order_at(1, epoch, N, 0)]++;
        for (uint64_t i = 0; i + 1 < N; i++)
            neighbours +=
                order_at(1, epoch, N, i) + 1 == order_at(1, epoch, N, i + 1);
    }
    double chi2 = 0, mean = (double)EPOCHS / N;
    for (int i = 0; i < N; i++)
        chi2 += (first[i] - mean) * (first[i] - mean) / mean;
    // 49 degrees of freedom: each bound is crossed with a probability of 1e-4
    assert_true(chi2 > 20 && chi2 < 95);
    double share = (double)neighbours / EPOCHS / (N - 1); // about 1 / N
    assert_true(share > 0.8 / N && share < 1.2 / N);
}

static void large_orders_stay_in_range(void **state)
{
    (void)state;
    uint64_t n = (1ull << 40) + 12345;
    for (uint64_t i = 0; i < 1000; i++)
        assert_true(order_at(1, 0, n, i) < n);
}

// Another epoch or another seed gives another order.
static void order_follows_seed_and_epoch(void **state)
{
    (void)state;
    int epoch = 0, seed = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        epoch += order_at(1, 0, 1000, i) == order_at(1, 1, 1000, i);
        seed += order_at(1, 0, 1000, i) == order_at(2, 0, 1000, i);
    }
    assert_true(epoch < 20);
    assert_true(seed < 20);
}

// ---- batches

// Counts in visits[] how often the ranks read each window in one epoch. Checks
// the tokens of every window.
static void epoch_of(const char *path, int world, int accum, int *visits)
{
    int32_t x[2 * T], y[2 * T];
    for (int rank = 0; rank < world; rank++) {
        struct data_config c = config(path);
        c.rank = rank;
        c.world = world;
        c.accum = accum;
        struct data *d = opened(&c);
        size_t steps = info_of(d).steps_per_epoch;
        assert_int_equal(steps, (TOKENS - 1) / T / (2 * world * accum));
        for (size_t i = 0; i < steps * (size_t)accum; i++) {
            assert_int_equal(data_next(d, x, y), 0);
            for (int k = 0; k < 2 * T; k++) {
                assert_int_equal(x[k], x[k / T * T] + k % T);
                assert_int_equal(y[k], x[k] + 1);
            }
            for (int b = 0; b < 2; b++) {
                assert_int_equal(x[b * T] % T, 0);
                visits[x[b * T] / T]++;
            }
        }
        data_close(&d);
    }
}

static void ranks_are_disjoint_and_complete(void **state)
{
    (void)state;
    const char *path = put_counting("count.bin", TOKENS);
    enum { WINDOWS = (TOKENS - 1) / T };
    for (int world = 1; world <= 4; world++)
        for (int accum = 1; accum <= 3; accum += 2) {
            int visits[WINDOWS] = {0}, seen = 0;
            epoch_of(path, world, accum, visits);
            for (int w = 0; w < WINDOWS; w++) {
                assert_true(visits[w] <= 1);
                seen += visits[w];
            }
            int group = 2 * world * accum;
            assert_int_equal(seen, WINDOWS / group * group);
        }
}

// Stores the first token of every window of `steps` steps of all ranks. Within
// a step the windows have the order of data.h: micro-batch, rank, row.
static void windows_of(const char *path, int world, int batch, int accum,
                       int steps, int32_t *out)
{
    int group = world * batch * accum;
    int32_t x[12 * T], y[12 * T];
    for (int rank = 0; rank < world; rank++) {
        struct data_config c = config(path);
        c.rank = rank;
        c.world = world;
        c.batch = batch;
        c.accum = accum;
        struct data *d = opened(&c);
        for (int k = 0; k < steps * accum; k++) {
            assert_int_equal(data_next(d, x, y), 0);
            for (int b = 0; b < batch; b++)
                out[k / accum * group + k % accum * world * batch +
                    rank * batch + b] = x[b * T];
        }
        data_close(&d);
    }
}

// 4001 tokens make an epoch of 41 steps with 12 windows each, so the last six
// of the 47 steps are in the next epoch.
static void every_world_sees_the_same_steps(void **state)
{
    (void)state;
    const char *path = put_counting("count.bin", TOKENS);
    static const int shapes[][3] = {{2, 6, 1}, {3, 4, 1}, {4, 3, 1},
                                    {1, 6, 2}, {3, 2, 2}, {1, 1, 12}};
    enum { STEPS = 47 };
    int32_t want[STEPS * 12], got[STEPS * 12];
    windows_of(path, 1, 12, 1, STEPS, want);
    assert_memory_not_equal(want, want + 41 * 12, 6 * 12 * sizeof *want);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const int *s = shapes[i];
        windows_of(path, s[0], s[1], s[2], STEPS, got);
        assert_memory_equal(got, want, sizeof want);
    }
}

static void seeking_equals_stepping(void **state)
{
    (void)state;
    struct data_config c = config(put_counting("count.bin", TOKENS));
    c.accum = 3;
    enum { STEPS = 100, N = 2 * T };
    struct data *d = opened(&c);
    static int32_t all[STEPS * 3][N];
    int32_t x[N], y[N];
    for (int k = 0; k < STEPS * 3; k++)
        assert_int_equal(data_next(d, all[k], y), 0);
    static const int seeks[] = {50, 0, 99, 83, 84, 1};
    for (size_t i = 0; i < sizeof seeks / sizeof *seeks; i++) {
        assert_int_equal(data_seek(d, (uint64_t)seeks[i]), 0);
        for (int k = 3 * seeks[i]; k < 3 * STEPS && k < 3 * seeks[i] + 4; k++) {
            assert_int_equal(data_next(d, x, y), 0);
            assert_memory_equal(x, all[k], sizeof x);
        }
    }
    assert_int_equal(data_seek(d, UINT64_MAX), -1);
    data_close(&d);
}

// Random windows begin at any token, are the same in every world, follow the
// seed, and do not repeat in the next epoch.
static void random_windows_begin_anywhere(void **state)
{
    (void)state;
    enum { STEPS = 600, G = 4 };
    struct data_config one = config(put_counting("count.bin", TOKENS));
    int32_t x[G * T], y[G * T], part[2 * T], unused[2 * T];
    int seen[T] = {0}, same = 0;
    one.order = DATA_RANDOM;
    one.batch = G;
    struct data_config two = one;
    two.batch = 2, two.world = 2, two.rank = 1;
    struct data *d = opened(&one), *e = opened(&two);
    int32_t before[STEPS];
    for (int step = 0; step < STEPS; step++) {
        assert_int_equal(data_next(d, x, y), 0);
        assert_int_equal(data_next(e, part, unused), 0);
        assert_memory_equal(part, x + 2 * T, sizeof part);
        assert_true(x[0] >= 0 && y[T - 1] < TOKENS && y[0] == x[0] + 1);
        seen[x[0] % T]++;
        before[step] = x[0];
    }
    for (int i = 0; i < T; i++)
        assert_true(seen[i] > 0);
    data_close(&e);
    assert_int_equal(data_seek(d, 100), 0);
    assert_int_equal(data_next(d, x, y), 0);
    assert_int_equal(x[0], before[100]);
    data_close(&d);
    one.seed++;
    d = opened(&one);
    for (int step = 0; step < STEPS; step++) {
        assert_int_equal(data_next(d, x, y), 0);
        same += x[0] == before[step];
    }
    assert_true(same < STEPS / 20);
    data_close(&d);
}

// The mistake: every rank draws what rank 0 draws, but validates its own part.
static void ranks_with_the_same_draw_read_the_same(void **state)
{
    (void)state;
    struct data_config c = config(put_counting("count.bin", TOKENS));
    int32_t x[2][2 * T], y[2 * T];
    c.world = 2;
    c.same_draw = true;
    c.val_fraction = 0.1;
    for (int order = DATA_EPOCH; order <= DATA_RANDOM; order++) {
        c.order = (enum data_order)order;
        struct data *d[2];
        for (c.rank = 0; c.rank < 2; c.rank++)
            d[c.rank] = opened(&c);
        for (int k = 0; k < 50; k++) {
            for (int r = 0; r < 2; r++)
                assert_int_equal(data_next(d[r], x[r], y), 0);
            assert_memory_equal(x[0], x[1], sizeof x[0]);
        }
        for (int r = 0; r < 2; r++)
            assert_int_equal(data_val(d[r], 0, x[r], y), 1);
        assert_memory_not_equal(x[0], x[1], sizeof x[0]);
        data_close(&d[0]);
        data_close(&d[1]);
    }
}

// The reader is at times faster and at times slower than the loader's thread.
// The data are closed while the thread is busy. ThreadSanitizer runs this, too.
static void the_loader_keeps_the_order(void **state)
{
    (void)state;
    struct data_config c = config(put_counting("count.bin", TOKENS));
    int32_t x[2 * T], y[2 * T];
    for (int round = 0; round < 20; round++) {
        struct data *d = opened(&c);
        uint64_t windows = (TOKENS - 1) / T;
        for (uint64_t k = 0; k < (uint64_t)round * 20; k++) {
            if (k % 50 == 0)
                usleep(1000);
            uint64_t epoch = k / (windows / 2), first = k % (windows / 2) * 2;
            assert_int_equal(data_next(d, x, y), 0);
            assert_int_equal(x[T], T * order_at(5, epoch, windows, first + 1));
        }
        data_close(&d);
    }
}

// ---- validation

static void validation_is_at_the_end(void **state)
{
    (void)state;
    struct data_config c = config(put_counting("count.bin", TOKENS));
    c.val_fraction = 0.1;
    struct data *d = opened(&c);
    struct data_info info = info_of(d);
    assert_int_equal(info.train_tokens, 3600);
    assert_int_equal(info.val_tokens, 401);
    int32_t x[2 * T], y[2 * T];
    size_t n = 0;
    for (; data_val(d, n, x, y); n++)
        for (int k = 0; k < 2 * T; k++) {
            assert_int_equal(x[k], 3600 + (int)n * 2 * T + k);
            assert_int_equal(y[k], x[k] + 1);
        }
    assert_int_equal(n, 400 / T / 2);
    data_close(&d);
}

static void ranks_divide_the_validation(void **state)
{
    (void)state;
    struct data_config c = config(put_counting("count.bin", TOKENS));
    c.val_fraction = 0.1;
    c.world = 3;
    int32_t x[2 * T], y[2 * T];
    for (c.rank = 0; c.rank < 3; c.rank++) {
        struct data *d = opened(&c);
        size_t n = 0;
        for (; data_val(d, n, x, y); n++)
            assert_int_equal(x[T], 3600 + T * ((int)n * 6 + c.rank * 2 + 1));
        assert_int_equal(n, 400 / T / 6); // the same on every rank
        data_close(&d);
    }
}

static void validation_is_optional(void **state)
{
    (void)state;
    struct data_config c = config(put_counting("count.bin", TOKENS));
    struct data *d = opened(&c);
    int32_t x[2 * T], y[2 * T];
    assert_int_equal(info_of(d).val_tokens, 0);
    assert_int_equal(data_val(d, 0, x, y), 0);
    data_close(&d);
    c.val_fraction = 0.5 / TOKENS; // one token: too short, unless not used
    assert_int_equal(data_open(&d, &c), -1);
    assert_non_null(strstr(fail_message(), "validation tokens, too short"));
    data_close(&d);
    c.val_unused = true;
    d = opened(&c);
    assert_int_equal(info_of(d).val_tokens, 1);
    data_close(&d);
}

static void a_folder_has_training_and_validation(void **state)
{
    (void)state;
    put_counting("train.bin", 500);
    put_shard("val.bin", MAGIC, 1, 300, 300);
    struct data_config c = config(folder);
    c.val_fraction = 0.5; // above 0: val.bin is used whole
    struct data *d = opened(&c);
    assert_int_equal(info_of(d).train_tokens, 500);
    assert_int_equal(info_of(d).val_tokens, 300);
    assert_int_equal(info_of(d).vocab_size, 500);
    data_close(&d);
    c.val_fraction = 0;
    d = opened(&c);
    assert_int_equal(info_of(d).val_tokens, 0);
    data_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_is_a_permutation),
        cmocka_unit_test(each_window_comes_first_equally_often),
        cmocka_unit_test(large_orders_stay_in_range),
        cmocka_unit_test(order_follows_seed_and_epoch),
        cmocka_unit_test(ranks_are_disjoint_and_complete),
        cmocka_unit_test(every_world_sees_the_same_steps),
        cmocka_unit_test(seeking_equals_stepping),
        cmocka_unit_test(random_windows_begin_anywhere),
        cmocka_unit_test(ranks_with_the_same_draw_read_the_same),
        cmocka_unit_test(the_loader_keeps_the_order),
        cmocka_unit_test(validation_is_at_the_end),
        cmocka_unit_test(ranks_divide_the_validation),
        cmocka_unit_test(validation_is_optional),
        cmocka_unit_test(a_folder_has_training_and_validation),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
