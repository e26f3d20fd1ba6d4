// test_law.c - times by the law of bytes, links that are fitted to measured
// times, the file of links, and forecasts.

#include "config/backends.h"
#include "forecast/forecast.h"
#include "sync/law.h"
#include "sync/law_mesh.h"
#include "sync/link.h"
#include "sync/sync.h"

#include "base/base.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/test.h"

static void times_follow_the_law(void **state)
{
    (void)state;
    const struct link gigabit = {.alpha_s = 50e-6, .bytes_per_s = 125e6};
    struct law ring = law_ring(4), server = law_servers(4, 1, false);
    // S = 1e6 bytes. Ring: 6 messages, together of 1.5 S bytes. One server: 2
    // messages, together of 4 S.
    double t = law_seconds(&ring, &gigabit, 1e6);
    assert_true(fabs(t - (6 * 50e-6 + 1.5e6 / 125e6)) < 1e-12);
    t = law_seconds(&server, &gigabit, 1e6);
    assert_true(fabs(t - (2 * 50e-6 + 4e6 / 125e6)) < 1e-12);
    // shards: the ring's bytes in two messages
    struct law shards = law_shards(4);
    t = law_seconds(&shards, &gigabit, 1e6);
    assert_true(fabs(t - (2 * 50e-6 + 1.5e6 / 125e6)) < 1e-12);
}

// A backend's row can have a law of its own: rounds of one message each.
static void a_row_has_its_own_law(void **state)
{
    (void)state;
    const struct law_case eight = {.workers = 8, .every = 4};
    const struct {
        struct backend_rounds rounds;
        double hops, share;
    } cases[] = {
        {{ROUNDS_ONE, true}, 1, 1},
        {{ROUNDS_LOG2, true}, 3, 3},
        {{ROUNDS_OTHERS, true}, 7, 7},
        {{ROUNDS_OTHERS, false}, 7, 7.0 / 8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct backend b = {.traffic = TRAFFIC_ROUNDS,
                            .rounds = cases[i].rounds};
        struct law law = law_of(&b, &eight);
        assert_true(fabs(law.hops - cases[i].hops / 4) < 1e-12);
        assert_true(fabs(law.share - cases[i].share / 4) < 1e-12);
        assert_true(backend_has_law(&b) && !backend_is_simulated(&b));
    }
}

// Bytes of stages and slices, counted by hand.
static void bytes_of_stages_and_slices(void **state)
{
    (void)state;
    enum { N = 6, C = 8, V = 11, M = 3, T = 5 };
    struct law_mesh m = {.rows = N,
                         .channels = C,
                         .vocab = V,
                         .width = 2,
                         .sum = 4,
                         .micro = M,
                         .stages = 3,
                         .chunks = 1,
                         .slices = 1,
                         .layers = 2,
                         .stage = 1};
    assert_true(law_mesh_stages(&m) == 2 * M * N * C * 2 + 16 * 2);
    assert_true(law_mesh_slices(&m) == 0);
    m.stage = 2; // the last stage also sends the tied table's gradient
    assert_true(law_mesh_stages(&m) == M * N * C * 2 + 4 * V * C + 16 * 2);
    assert_true(law_mesh_order_matters(2, 2) && law_mesh_order_matters(3, 4));
    assert_false(law_mesh_order_matters(2, 4) || law_mesh_order_matters(1, 2));
    m.aligned = 4;
    assert_true(law_mesh_stages(&m) == M * N * C * 2 + 4 * V * C + 16 * 2);
    m.stage = 0; // the first stage then sends the table itself, too
    assert_true(law_mesh_stages(&m) == M * N * C * 2 + 8 * V * C + 16 * 2);
    m.aligned = 2; // in 16 bits
    assert_true(law_mesh_stages(&m) == M * N * C * 2 + 6 * V * C + 16 * 2);
    m.stages = 1;
    m.aligned = 0;
    m.slices = 2; // 4 L + 2 joins, each sends half of its vector twice
    assert_true(law_mesh_stages(&m) == 0);
    assert_int_equal(law_mesh_joins(&m, false) + law_mesh_joins(&m, true),
                     4 * 2 + 2);
    assert_true(law_mesh_slices(&m) == M * (10 * 4 * N * C + 3 * 4 * N) + 8);
    m.aligned = 4; // 11 words in two slices: these also align what both have
    m.tokens = T;
    assert_true(law_mesh_slices(&m) ==
                M * (10 * 4 * N * C + 3 * 4 * N) + 8 + 4 * (6 * 2 + T + 2) * C);
    m.vocab = V + 1;
    assert_true(law_mesh_slices(&m) == M * (10 * 4 * N * C + 3 * 4 * N) + 8);
    m.recompute = 1;
    assert_int_equal(law_mesh_joins(&m, true), 3 * 2 + 1);
    m.recompute = 0;
    m.sequence = 1; // half a join is a sum, and rows travel in 16 bits
    assert_true(law_mesh_slices(&m) ==
                M * (10 * 2 * N * C + 14 * N * C + 5 * 8 * C + 3 * 4 * N) + 8);
    m.recompute = 1; // one more sum and two more gathers for each layer
    assert_true(law_mesh_slices(&m) ==
                M * (12 * 2 * N * C + 18 * N * C + 5 * 8 * C + 3 * 4 * N) + 8);
    m.recompute = 0;
    m.sequence = 2; // layers keep rows: two gathers less for each of them
    assert_true(law_mesh_slices(&m) ==
                M * (10 * 2 * N * C + 10 * N * C + 5 * 8 * C + 3 * 4 * N) + 8);
    m.sum = 2; // sums in 16 bits
    assert_true(law_mesh_slices(&m) ==
                M * (10 * N * C + 10 * N * C + 5 * 8 * C + 3 * 4 * N) + 8);
    m.stages = 3; // a slice sends its rows only
    m.stage = 1;
    assert_true(law_mesh_stages(&m) == 2 * M * N * C + 16 * 2);
}

static void links_are_fitted_to_times(void **state)
{
    (void)state;
    enum { N = 6 };
    const struct link want = {.alpha_s = 12e-6, .bytes_per_s = 4.7e9};
    const double bytes[N] = {4, 1e3, 1e5, 1e6, 1e7, 1e9};
    double seconds[N];
    struct law law = law_ring(3);
    struct link got = {0};
    for (int i = 0; i < N; i++)
        seconds[i] = law_seconds(&law, &want, bytes[i]);
    law_fit(&law, bytes, seconds, N, &got);
    assert_true(fabs(got.alpha_s / want.alpha_s - 1) < 1e-6);
    assert_true(fabs(got.bytes_per_s / want.bytes_per_s - 1) < 1e-6);
    // 5% of noise changes both by less than 10%
    for (int i = 0; i < N; i++)
        seconds[i] *= i % 2 ? 1.05 : 0.95;
    law_fit(&law, bytes, seconds, N, &got);
    assert_true(fabs(got.alpha_s / want.alpha_s - 1) < 0.1);
    assert_true(fabs(got.bytes_per_s / want.bytes_per_s - 1) < 0.1);
    // one size cannot separate latency from bandwidth
    got = want;
    law_fit(&law, bytes + 2, seconds + 2, 1, &got);
    assert_memory_equal(&got, &want, sizeof got);
}

// `hops` is the number of messages over the busiest link, and `share` is their
// bytes in units of S.
static void laws_count_messages_and_bytes(void **state)
{
    (void)state;
    const struct {
        struct law law;
        double hops, share;
    } rows[] = {
        {law_ring(3), 4, 4.0 / 3},
        {law_servers(4, 1, true), 2, 8},
        {law_servers(4, 2, false), 2, 2},
        {law_servers(4, 8, false), 2, 1}, // a worker's link is the busiest
        {law_owner(4, true), 2, 6},       // three in, then three out
        {law_owner(4, false), 2, 3},
        {law_allreduce(ALGORITHM_HALVING, 4), 4, 1.5},
        {law_allreduce(ALGORITHM_HALVING, 6), 6,
         3.5}, // two first send to two of the other four
        {law_allreduce(ALGORITHM_DOUBLING, 8), 3, 3},
        {law_allreduce(ALGORITHM_TREE, 2), 2, 2},
        {law_allreduce(ALGORITHM_TREE, 5), 6, 6},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_true(fabs(rows[i].law.hops - rows[i].hops) < 1e-12);
        assert_true(fabs(rows[i].law.share - rows[i].share) < 1e-12);
    }
    struct law a, ring = law_ring(6);
    a = law_allreduce(ALGORITHM_AUTO, 6);
    assert_memory_equal(&a, &ring, sizeof a);
    a = law_allreduce(ALGORITHM_RING, 6);
    assert_memory_equal(&a, &ring, sizeof a);
}

static void links_are_written_and_read(void **state)
{
    (void)state;
    const struct law law = law_ring(2);
    const struct link link = {.alpha_s = 30e-6, .bytes_per_s = 1e8};
    const double bytes[] = {4, 1e6, 1e8};
    double seconds[3];
    char path[] = "/tmp/lockstep-link-XXXXXX";
    static struct links out, in;
    for (int i = 0; i < 3; i++)
        seconds[i] = law_seconds(&law, &link, bytes[i]) * (i == 1 ? 1.1 : 1);
    out.workers = 2;
    assert_int_equal(links_add(&out, "ring", &law, bytes, seconds, 3), 0);
    assert_int_equal(links_add(&out, "tcp", &law, bytes, seconds, 1), 0);
    assert_int_equal(out.n, 1); // one size is not enough for a fit
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(links_write(&out, path), 0);
    assert_int_equal(links_read(&in, path, 0), 0);
    assert_int_equal(in.workers, 2);
    assert_int_equal(in.n, 1);
    assert_int_equal(in.fits[0].n, 3);
    for (int i = 0; i < 3; i++) {
        assert_true(in.fits[0].bytes[i] == bytes[i]);
        assert_true(fabs(in.fits[0].seconds[i] / seconds[i] - 1) < 1e-12);
        assert_true(fabs(in.fits[0].off[i] - out.fits[0].off[i]) < 1e-12);
    }
    // the error is that of the nearest size, on either side
    const struct link_fit *f = links_find(&in, "ring");
    assert_non_null(f);
    assert_true(fabs(links_error(f, 2e6) - fabs(f->off[1])) < 1e-9);
    assert_true(fabs(links_error(f, 2e8) - fabs(f->off[2])) < 1e-9);
    assert_null(links_find(&in, "dps"));
    assert_non_null(strstr(fail_message(), "no fit of dps, nor of tcp"));
    unlink(path);
    assert_int_equal(links_read(&in, path, 0), -1);
    assert_non_null(strstr(fail_message(), "want a rate"));
    assert_int_equal(links_read(&in, "25gbit", 1e-5), 0);
    assert_true(fabs(in.fits[0].link.bytes_per_s - 25e9 / 8 * LINK_PAYLOAD) <
                1);
    assert_int_equal(links_read(&in, "1MB/s", 1e-5), 0);
    assert_true(fabs(in.fits[0].link.bytes_per_s - 1e6) < 1e-6);
    assert_int_equal(links_read(&in, "1mB/s", 1e-5), -1);
    static const char *const gigabit[] = {"1gbit", "1Gbit", "1Gbit/s", "1gbps"};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(links_read(&in, gigabit[i], 1e-5), 0);
        assert_true(fabs(in.fits[0].link.bytes_per_s - 1e9 / 8 * LINK_PAYLOAD) <
                    1);
    }
    assert_int_equal(links_read(&in, "1gb", 1e-5), -1);
    assert_int_equal(links_read(&in, "1", 1e-5), -1);
    assert_int_equal(links_read(&in, "1MB", 1e-5), -1);
    assert_true(links_error(links_find(&in, "sps"), 1e6) == 0.15);
}

static void forecasts_of_replicas_and_servers(void **state)
{
    (void)state;
    static struct links links;
    struct forecast f;
    struct forecast_job j = {.exchange = {.workers = 4},
                             .params = 25e6,
                             .bytes_each = 4,
                             .bucket = (25e6 - 262144 - 4e6) / 2,
                             .embeddings = 3e6,
                             .compute_s = 3,
                             .backward_s = 2,
                             .tokens = 1000};
    links.n = 1;
    strcpy(links.fits[0].who, "tcp");
    links.fits[0].link = (struct link){.alpha_s = 0, .bytes_per_s = 1e8};
    // 100 MB take 1.5 s around the ring; all but the last 4e6 gradients are
    // hidden by backward. The first bucket has 1 MiB, two have j.bucket, and
    // the last has these
    assert_int_equal(forecast(&j, backend_find("ring"), &links, &f), 0);
    assert_true(fabs(f.link_bytes - 150e6) < 1);
    assert_true(fabs(f.exchange_s - 1.5) < 1e-9);
    assert_true(fabs(f.apart_s - 4.5) < 1e-9);
    assert_true(fabs(f.overlapped_s - 3.24) < 1e-9);
    assert_true(fabs(f.tokens_per_s - 4000 / 3.24) < 1e-6);
    assert_true(fabs(f.efficiency - 3 / 3.24) < 1e-9);
    assert_true(fabs(f.most_s - 3 - 0.24 * 1.15) < 1e-9);
    // through one server: 4 s, which begin when the 2 s of backward begin
    assert_int_equal(forecast(&j, backend_find("sps"), &links, &f), 0);
    assert_true(fabs(f.overlapped_s - 5) < 1e-9);
    assert_true(fabs(f.least_s - 4.4) < 1e-9);
    j.exchange.held = true;
    assert_int_equal(forecast(&j, backend_find("sps"), &links, &f), 0);
    assert_true(fabs(f.exchange_s - 8) < 1e-9);
    assert_true(fabs(f.overlapped_s - 9) < 1e-9); // then 4 s of replies
    assert_true(fabs(f.link_bytes - 400e6) < 1);  // not more bytes
    // embeddings reach into the bucket before the last
    j.exchange.held = false;
    j.embeddings = 5e6;
    assert_int_equal(forecast(&j, backend_find("ring"), &links, &f), 0);
    assert_true(fabs(f.overlapped_s - 3 - 6e-8 * (4e6 + j.bucket)) < 1e-9);
    // one bucket that holds all travels after backward
    j.bucket = 25e6;
    assert_int_equal(forecast(&j, backend_find("ring"), &links, &f), 0);
    assert_true(fabs(f.overlapped_s - 4.5) < 1e-9);
    // a 16-bit wire halves the time
    j.bytes_each = 2;
    assert_int_equal(forecast(&j, backend_find("dps"), &links, &f), 0);
    assert_true(fabs(f.exchange_s - 0.75) < 1e-9);
}

// Six blocks of 1 MiB of gradients, four workers, 100 MB/s, no latency. A pass
// over all blocks sends 3/4 of 6 MiB out of each worker, a pass over one block
// takes 8 ms.
static void forecasts_of_shards(void **state)
{
    (void)state;
    enum { BLOCKS = 6, N = 1 << 18 };
    static struct links links;
    struct bucket cut[BLOCKS];
    struct forecast f;
    for (int i = 0; i < BLOCKS; i++)
        cut[i] = (struct bucket){.off = (size_t)(BLOCKS - 1 - i) * N, .n = N};
    struct law_step step = {.world = 4,
                            .micro = 1,
                            .shards = true,
                            .kind = SHARD_STATE,
                            .cut = cut,
                            .count = BLOCKS,
                            .grain = 4096,
                            .sum_bytes = 4,
                            .param_bytes = 4};
    struct forecast_job j = {.exchange = {.workers = 4},
                             .params = BLOCKS * N,
                             .bytes_each = 4,
                             .step = &step,
                             .bucket = N,
                             .embeddings = N,
                             .compute_s = 3,
                             .backward_s = 2,
                             .tokens = 1000};
    links.n = 1;
    strcpy(links.fits[0].who, "tcp");
    links.fits[0].link = (struct link){.alpha_s = 0, .bytes_per_s = 1e8};
    const struct backend *zero = backend_find("zero");
    const double one = 0.75 * 4 * N / 1e8, norm = 1.5 * 8 * BLOCKS * N / 4096;
    // all but the first gather and the last sum are hidden
    assert_int_equal(forecast(&j, zero, &links, &f), 0);
    assert_true(fabs(f.link_bytes - 1.5 * 4 * BLOCKS * N - norm) <
                8192); // one worker sends one chunk of the norm
    assert_true(fabs(f.exchange_s - 12 * one - norm / 1e8) < 1e-6);
    assert_true(fabs(f.apart_s - 3 - f.exchange_s) < 1e-9);
    assert_true(fabs(f.overlapped_s - 3 - 2 * one - norm / 1e8) < 1e-6);
    // shard=3 gathers layers 1 and 2 of the four again for backward; then the
    // same with two micro-batches
    step.kind = SHARD_PARAMS;
    assert_int_equal(forecast(&j, zero, &links, &f), 0);
    assert_true(fabs(f.exchange_s - 14 * one - norm / 1e8) < 1e-6);
    step.micro = 2;
    assert_int_equal(forecast(&j, zero, &links, &f), 0);
    assert_true(fabs(f.exchange_s - (12 + 8 + 4) * one - norm / 1e8) < 1e-6);
    // accum=4 with shard=2 moves 5/2 of the bytes of shard=1
    step.kind = SHARD_GRADS;
    step.micro = 4;
    assert_int_equal(forecast(&j, zero, &links, &f), 0);
    assert_true(fabs(f.exchange_s - 5 * 6 * one - norm / 1e8) < 1e-6);
    // a short backward hides less
    step.micro = 1;
    j.backward_s = 2 * one;
    assert_int_equal(forecast(&j, zero, &links, &f), 0);
    assert_true(fabs(f.overlapped_s - 3 - 4 * one - 5 * one - norm / 1e8) <
                1e-6);
    // messages with a byte for each gradient, all at once
    step.kind = SHARD_STATE;
    step.messages = BLOCKS * N / 4;
    j.backward_s = 2;
    assert_int_equal(forecast(&j, zero, &links, &f), 0);
    assert_true(fabs(f.exchange_s - 7.5 * one - norm / 1e8) < 1e-6);
    assert_true(fabs(f.overlapped_s - 3 - 1.25 * one - norm / 1e8) < 1e-6);
    assert_true(law_step_hops(&step) == 1 + 3 * 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_follow_the_law),
        cmocka_unit_test(a_row_has_its_own_law),
        cmocka_unit_test(bytes_of_stages_and_slices),
        cmocka_unit_test(links_are_fitted_to_times),
        cmocka_unit_test(laws_count_messages_and_bytes),
        cmocka_unit_test(links_are_written_and_read),
        cmocka_unit_test(forecasts_of_replicas_and_servers),
        cmocka_unit_test(forecasts_of_shards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
