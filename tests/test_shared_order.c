// test_shared_order.c - what members on one host write into shared memory is
// seen in order: numbers before the counter that announces them, bytes before
// their count, and a sleeper by its waker. On processors that reorder writes,
// as ARM's, only the atomics of counters.c and streams_shm.c see to that.

#include "horovod_ring/counters.h"
#include "horovod_ring/streams.h"
#include "tests/forked.h"

#include "base/base.h"
#include "base/rng.h"

#include <sched.h>
#include <string.h>

#include "tests/test.h"

enum { TURNS = 3000, NUMBERS = 64, BYTES = 16 << 20, PIECE = 5000 };

struct turn {
    const struct counters *c;
    struct awaited awaited;
};

static bool has_come(const void *arg)
{
    const struct turn *t = arg;
    return counters_has_come(t->c, &t->awaited);
}

// Everyone writes its place, announces it and reads all places. Nobody spins,
// so each turn is a race between a sleeper and its waker. A wake-up that is
// lost costs 0.1 s, and many of them the world's deadline.
static int take_turns(struct cluster *cluster, const void *arg,
                      uint64_t *result)
{
    struct counters c;
    int rc = counters_open(&c, cluster, "turns");
    (void)arg;
    (void)result;
    for (uint64_t turn = 1; !rc && turn <= TURNS; turn++) {
        uint64_t *mine = (void *)counters_place(&c, c.rank, turn);
        struct turn t = {&c, {READY, turn, -1}};
        for (int i = 0; i < NUMBERS; i++)
            mine[i] = turn * (uint64_t)(1 + c.rank);
        counters_set(&c, READY, turn);
        rc = counters_wait(&c, now_ns(), 0, &t.awaited, has_come, &t);
        for (int r = 0; !rc && r < c.world; r++) {
            const uint64_t *theirs = (void *)counters_place(&c, r, turn);
            for (int i = 0; !rc && i < NUMBERS; i++)
                if (theirs[i] != turn * (uint64_t)(1 + r))
                    rc = fail("turn %d: number %d of rank %d is old", (int)turn,
                              i, r);
        }
    }
    if (rc)
        log_line("rank %d: %s", cluster->rank, fail_message());
    counters_close(&c);
    return rc;
}

static uint8_t byte_at(size_t i)
{
    return (uint8_t)(i * 2654435761u >> 13);
}

// Sends what fits of the next piece. Returns how many bytes.
static size_t send_piece(struct streams *p, int to, size_t at, size_t bytes)
{
    uint8_t piece[PIECE];
    bytes = bytes < BYTES - at ? bytes : BYTES - at;
    for (size_t i = 0; i < bytes; i++)
        piece[i] = byte_at(at + i);
    struct iovec v = {piece, bytes};
    return bytes ? (size_t)p->ops->send(p, to, &v, 1) : 0;
}

// Receives at most `bytes`, and compares them. Returns how many, or SIZE_MAX.
static size_t recv_piece(struct streams *p, int from, size_t at, size_t bytes)
{
    uint8_t piece[PIECE];
    size_t got = (size_t)p->ops->recv(p, from, piece, bytes);
    for (size_t i = 0; i < got; i++)
        if (piece[i] != byte_at(at + i)) {
            log_line("byte %zu is wrong", at + i);
            return SIZE_MAX;
        }
    return got;
}

// Two members send to each other at once, in pieces of random sizes.
static int exchange_bytes(struct cluster *cluster, const void *arg,
                          uint64_t *result)
{
    struct streams p = {0};
    const struct streams_config config = {.name = "bytes", .who = STREAMS_ALL};
    int rc = streams_open(&p, &streams_shm, cluster, &config);
    size_t out = 0, in = 0;
    (void)arg;
    (void)result;
    for (uint64_t i = 0; !rc && (out < BYTES || in < BYTES); i++) {
        int other = 1 - cluster->rank;
        size_t most = 1 + rng_below((uint64_t)cluster->rank, i, PIECE - 1);
        size_t sent = send_piece(&p, other, out, most);
        size_t got = recv_piece(&p, other, in, most);
        rc = got == SIZE_MAX ? -1 : 0;
        out += sent;
        in += got;
        if (!sent && !got)
            sched_yield();
    }
    if (!rc)
        rc = cluster_barrier(cluster);
    streams_close(&p);
    return rc;
}

static void turns(void **state)
{
    (void)state;
    assert_int_equal(forked_run(NULL, 2, 0, take_turns, NULL, NULL), 0);
    assert_int_equal(forked_run(NULL, 3, 0, take_turns, NULL, NULL), 0);
}

static void bytes(void **state)
{
    (void)state;
    assert_int_equal(forked_run(NULL, 2, 0, exchange_bytes, NULL, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns),
        cmocka_unit_test(bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
