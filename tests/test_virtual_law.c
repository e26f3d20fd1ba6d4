// test_virtual_law.c - times on the virtual cluster follow the formulas of
// virtual.h, and a run is written as a trace.

#include "tests/virtual_run.h"

struct job {
    int ranks, pieces;
    size_t bytes;
};

// Each rank sends 2(w-1) messages of S/w bytes to the next rank.
static int ring(struct virtual_rank *r, void *arg)
{
    const struct job *j = arg;
    int w = j->ranks, me = virtual_id(r);
    size_t bytes = j->bytes / (size_t)w;
    char *out = virtual_alloc(r, bytes, 1), *in = virtual_alloc(r, bytes, 1);
    for (int m = 0; m < 2 * (w - 1); m++) {
        struct virtual_req req[2];
        if (virtual_isend(r, (me + 1) % w, out, bytes, &req[0]) ||
            virtual_irecv(r, (me + w - 1) % w, in, bytes, &req[1]) ||
            virtual_wait(r, req, 2))
            return -1;
    }
    return 0;
}

static void time_of_ring(void **state)
{
    (void)state;
    for (int w = 2; w <= 64; w = w < 9 ? w + 1 : 2 * w) {
        struct job j = {.ranks = w, .bytes = (size_t)w * 5040};
        struct virtual_setup s = setup(w);
        struct virtual_result *v = run(&s, ring, &j);
        assert_clean(v);
        assert_seconds(v->seconds,
                       2 * (w - 1) * (alpha_s + 5040 / bytes_per_s));
        for (int r = 0; r < w; r++) {
            assert_int_equal(v->rank[r].bytes_out, 2 * (w - 1) * 5040);
            assert_int_equal(v->rank[r].bytes_in, 2 * (w - 1) * 5040);
            assert_int_equal(v->rank[r].alloc_peak, 2 * 5040);
        }
        virtual_close(&v);
    }
}

// Broadcasts rank 0's bytes. In each round, every rank r that has the bytes
// sends them to rank r + far.
static int tree(struct virtual_rank *r, void *arg)
{
    const struct job *j = arg;
    int me = virtual_id(r), w = j->ranks;
    char *p = virtual_alloc(r, j->bytes, 1);
    for (int far = 1; far < w; far *= 2) {
        if (me < far && me + far < w && send(r, me + far, p, j->bytes))
            return -1;
        if (me >= far && me < 2 * far && receive(r, me - far, p, j->bytes))
            return -1;
    }
    return 0;
}

static void time_of_tree(void **state)
{
    (void)state;
    for (int k = 1; k <= 5; k++) {
        struct job j = {.ranks = 1 << k, .bytes = 30000};
        struct virtual_setup s = setup(j.ranks);
        struct virtual_result *v = run(&s, tree, &j);
        assert_clean(v);
        assert_seconds(v->seconds, k * (alpha_s + 30000 / bytes_per_s));
        assert_int_equal(v->n_messages, j.ranks - 1);
        virtual_close(&v);
    }
}

// Rank 0 receives S bytes from each other rank, then sends S to each.
static int server(struct virtual_rank *r, void *arg)
{
    const struct job *j = arg;
    char *p = virtual_alloc(r, j->bytes, 1);
    struct virtual_req req[64];
    if (virtual_id(r))
        return send(r, 0, p, j->bytes) || receive(r, 0, p, j->bytes) ? -1 : 0;
    for (int i = 1; i < j->ranks; i++)
        if (virtual_irecv(r, i, p, j->bytes, &req[i - 1]))
            return -1;
    if (virtual_wait(r, req, j->ranks - 1))
        return -1;
    for (int i = 1; i < j->ranks; i++)
        if (virtual_isend(r, i, p, j->bytes, &req[i - 1]))
            return -1;
    return virtual_wait(r, req, j->ranks - 1);
}

static void time_of_server(void **state)
{
    (void)state;
    for (int n = 1; n <= 32; n = 2 * n + 1) {
        struct job j = {.ranks = n + 1, .bytes = 40000};
        struct virtual_setup s = setup(j.ranks);
        struct virtual_result *v = run(&s, server, &j);
        assert_clean(v);
        assert_seconds(v->seconds, 2 * alpha_s + 2 * n * 40000 / bytes_per_s);
        assert_int_equal(v->rank[0].bytes_in, n * 40000);
        assert_int_equal(v->rank[0].bytes_out, n * 40000);
        virtual_close(&v);
    }
}

// A chain: each rank receives a piece while it sends on the piece before it.
static int chain(struct virtual_rank *r, void *arg)
{
    const struct job *j = arg;
    int me = virtual_id(r), last = j->ranks - 1;
    size_t bytes = j->bytes / (size_t)j->pieces;
    char *p = virtual_alloc(r, j->bytes, 1);
    for (int m = 0; m <= j->pieces; m++) {
        struct virtual_req req[2] = {{.op = NULL}, {.op = NULL}};
        if (me > 0 && m < j->pieces &&
            virtual_irecv(r, me - 1, p + (size_t)m * bytes, bytes, &req[0]))
            return -1;
        int piece = me ? m - 1 : m;
        if (me < last && piece >= 0 && piece < j->pieces &&
            virtual_isend(r, me + 1, p + (size_t)piece * bytes, bytes, &req[1]))
            return -1;
        if (virtual_wait(r, req, 2))
            return -1;
    }
    return 0;
}

static void time_of_chain(void **state)
{
    (void)state;
    for (int n = 2; n <= 9; n++)
        for (int m = 1; m <= 32; m *= 4) {
            struct job j = {.ranks = n, .pieces = m, .bytes = 320000};
            struct virtual_setup s = setup(n);
            struct virtual_result *v = run(&s, chain, &j);
            assert_clean(v);
            assert_seconds(v->seconds,
                           (n - 2 + m) * (alpha_s + 320000. / m / bytes_per_s));
            virtual_close(&v);
        }
}

// Ranks 0 and 2 are threads of one worker and share its link. Rank 0 tells rank
// 2 when to send to rank 1, on the other worker.
static int two_threads(struct virtual_rank *r, void *arg)
{
    (void)arg;
    char p[1000];
    int me = virtual_id(r), turn = 0;
    if (me == 0) {
        virtual_compute(r, 1);
        return send(r, 2, &turn, sizeof turn) || send(r, 1, p, sizeof p) ? -1
                                                                         : 0;
    }
    if (me == 1)
        return receive(r, 0, p, sizeof p) || receive(r, 2, p, sizeof p) ? -1
                                                                        : 0;
    if (me == 3)
        return 0;
    if (receive(r, 0, &turn, sizeof turn) || virtual_now(r) != 1)
        return fail("told at %g s", virtual_now(r));
    return send(r, 1, p, sizeof p);
}

static void threads_share_a_link(void **state)
{
    (void)state;
    struct virtual_setup s = setup(4);
    s.hosts = 2;
    struct virtual_result *v = run(&s, two_threads, NULL);
    assert_clean(v);
    assert_int_equal(v->n_messages, 2);
    assert_int_equal(v->rank[2].bytes_in, 0);
    assert_int_equal(v->rank[1].bytes_in, 2000);
    assert_seconds(v->messages[0].end_s, 1 + 1000 / bytes_per_s);
    // Rank 1 calls receive for the second message only when the first has
    // arrived, alpha after it left the link.
    assert_seconds(v->messages[1].begin_s, 1 + 1000 / bytes_per_s + alpha_s);
    virtual_close(&v);
    s.eager = 1000; // now the second message waits only for the link
    v = run(&s, two_threads, NULL);
    assert_clean(v);
    assert_seconds(v->messages[1].begin_s, 1 + 1000 / bytes_per_s);
    virtual_close(&v);
    s.hosts = -1;
    assert_null(virtual_run(&s, two_threads, NULL));
}

static void trace_is_written(void **state)
{
    (void)state;
    char line[512];
    int bars = 0;
    FILE *f = tmpfile(), *full = fopen("/dev/full", "w");
    assert_non_null(f);
    struct job j = {.ranks = 3, .bytes = 3 * 4000};
    struct virtual_setup s = setup(3);
    struct virtual_result *v = run(&s, ring, &j);
    assert_int_equal(virtual_trace(v, NULL, f), 0);
    rewind(f);
    while (fgets(line, sizeof line, f))
        bars += strstr(line, "\"ph\": \"X\"") != NULL;
    assert_int_equal(bars, 2 * 3 * 4);
    fclose(f);
    if (full) {
        assert_int_equal(virtual_trace(v, NULL, full), -1);
        fclose(full);
    }
    virtual_close(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_of_ring),
        cmocka_unit_test(time_of_tree),
        cmocka_unit_test(time_of_server),
        cmocka_unit_test(time_of_chain),
        cmocka_unit_test(threads_share_a_link),
        cmocka_unit_test(trace_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
