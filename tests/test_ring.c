// test_ring.c - the ring passes the cases that every backend must pass. Also
// tests the plan of its messages, and its sockets.

#include "horovod_ring/carriers.h"
#include "horovod_ring/plan.h"
#include "horovod_ring/tcp.h"
#include "sync/replicas.h"
#include "tests/queue_device.h"
#include "tests/sync_cases.h"

#include "base/base.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/test.h"

static const struct group_ops *const tcp[] = {&ring_tcp, NULL};

// The bytes of the plan, for each bucket.
static void law(const struct sync_job *job, int rank, int world,
                enum dtype wire, uint64_t *out, uint64_t *in)
{
    const struct plan p = {.rank = rank, .world = world, .grain = 1};
    *out = *in = 0;
    for (int i = 0; i < job->nbuckets; i++) {
        const struct group_op sum = {.vector.n = job->buckets[i].n};
        *out += plan_elements(&p, &sum, OUT) * dtype_bytes(wire);
        *in += plan_elements(&p, &sum, IN) * dtype_bytes(wire);
    }
}

// Slices are so small that small vectors have many of them.
static const struct fixture ring = {
    .sync = "ring",
    .ops = &sync_replicas,
    .carriers = tcp,
    .opts = "slice_kb=1",
    .law = law,
};

// Through a staging buffer, as on a GPU that two workers share.
static const struct fixture staged_ring = {
    .sync = "ring",
    .ops = &sync_replicas,
    .carriers = tcp,
    .opts = "slice_kb=1",
    .device = queue_device_open,
    .few = true,
    .law = law,
};

static int is_skipped(struct worker *w)
{
    struct sync_out out;
    if (worker_step(w, 1, &out))
        return -1;
    return out.skipped ? 0 : fail("rank 0's NaN was not seen");
}

static void cases_pass_with_a_staging_buffer(void **state)
{
    (void)state;
    struct setup nan = {.world = 2,
                        .n = 1000,
                        .first = 100,
                        .bucket = 500,
                        .opts = "inject=nan:1"};
    case_integers(&staged_ring);
    case_overflow(&staged_ring);
    case_bcast(&staged_ring);
    case_state(&staged_ring);
    case_bytes(&staged_ring);
    assert_int_equal(world_run(&staged_ring, &nan, is_skipped, NULL), 0);
}

// Checks the messages of a verb. A worker receives what its left neighbour
// sends. Each worker sends what it has received before, or a chunk of its own.
// In total it moves the elements of the law.
static void check_verb(const struct group_op *op, int world, size_t grain)
{
    for (int r = 0; r < world; r++) {
        const struct plan p = {.rank = r, .world = world, .grain = grain};
        const struct plan left = {.rank = (r + world - 1) % world,
                                  .world = world,
                                  .grain = grain};
        size_t sent = 0, received = 0;
        int outs = plan_messages(&p, op, OUT), ins = plan_messages(&p, op, IN);
        assert_int_equal(ins, plan_messages(&left, op, OUT));
        for (int m = 0; m < ins; m++) {
            struct group_chunk in = plan_span(&p, op, IN, m);
            struct group_chunk from = plan_span(&left, op, OUT, m);
            assert_memory_equal(&in, &from, sizeof in);
            assert_true(in.off + in.n <= op->vector.n);
            received += in.n;
        }
        for (int m = 0; m < outs; m++) {
            struct group_chunk out = plan_span(&p, op, OUT, m);
            if (!plan_is_own(&p, op, m)) {
                struct group_chunk before =
                    plan_span(&p, op, IN, m - plan_lag(&p, op));
                assert_memory_equal(&out, &before, sizeof out);
            }
            sent += out.n;
        }
        assert_int_equal(sent, plan_elements(&p, op, OUT));
        assert_int_equal(received, plan_elements(&p, op, IN));
    }
}

static void the_plan_moves_the_chunks(void **state)
{
    (void)state;
    for (int world = 2; world <= 9; world++) {
        for (size_t n = 1; n < 40; n += 6)
            for (int verb = 0; verb < GROUP_SEND; verb++)
                for (int root = 0; root < world; root++)
                    for (size_t grain = 1; grain < 8; grain += 3) {
                        const struct group_op op = {.verb =
                                                        (enum group_verb)verb,
                                                    .vector.n = n,
                                                    .peer = root};
                        check_verb(&op, world, grain);
                    }
        // If world divides n, an all_reduce sends 2(world-1)/world n elements,
        // and its two halves send half of that each.
        size_t n = 12 * (size_t)world;
        const struct plan p = {.rank = 1, .world = world, .grain = 1};
        struct group_op op = {.verb = GROUP_ALL_REDUCE, .vector.n = n};
        assert_int_equal(plan_elements(&p, &op, OUT), 2 * (n - 12));
        op.verb = GROUP_REDUCE_SCATTER;
        assert_int_equal(plan_elements(&p, &op, OUT), n - 12);
        op.verb = GROUP_ALL_GATHER;
        assert_int_equal(plan_elements(&p, &op, OUT), n - 12);
    }
}

static void interfaces_have_addresses(void **state)
{
    (void)state;
    struct sockaddr_in a;
    const uint32_t loopback = htonl(INADDR_LOOPBACK);
    const char *const good[] = {"", "lo", "127.0.0.0/8"};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tcp_address(&a, good[i]), 0);
        assert_true(a.sin_addr.s_addr == loopback);
    }
    assert_int_equal(tcp_address(&a, "nosuch0"), -1);
    assert_non_null(strstr(fail_message(), "nosuch0"));
    assert_int_equal(tcp_address(&a, "203.0.113.0/24"), -1);
}

// Without a caller tcp_accept() returns at once. Without a listener the call
// fails at once, and the error has the address.
static void an_absent_peer_is_noticed_at_once(void **state)
{
    (void)state;
    struct sockaddr_in a;
    socklen_t len = sizeof a;
    assert_int_equal(tcp_address(&a, ""), 0);
    int fd = tcp_listen(&a);
    assert_true(fd >= 0);
    assert_int_equal(tcp_accept(fd), TCP_NONE);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    close(fd);
    int call = tcp_begin(&a);
    if (call >= 0) {
        struct pollfd p = {.fd = call, .events = POLLOUT};
        assert_int_equal(poll(&p, 1, 20000), 1);
        assert_int_equal(tcp_connected(call, &a), -1);
        close(call);
    }
    assert_non_null(strstr(fail_message(), "127.0.0.1"));
}

// ---- unauthenticated callers that connect before the left neighbour does

static struct cluster *behind; // the real cluster, which meddle() calls

// Bytes of a caller that knows all but the keys: "lockring", version, rank, a
// nonce; then a proof.
enum { CALLERS = 200, HELLO = 48, PROOF = 32 };

// Some callers send nothing, some garbage, some only a good hello, and some a
// hello and a wrong proof. All stay connected. They are more than the ring
// accepts at a time.
static int call_unauthenticated(const struct sockaddr_in *to)
{
    uint8_t words[HELLO + PROOF] = "lockring";
    const int32_t head[2] = {2, 1};
    static const size_t says[] = {0, 1, HELLO, HELLO + PROOF};
    memcpy(words + 8, head, sizeof head);
    for (int i = 0; i < CALLERS; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        size_t n = says[i % 4];
        words[0] = i % 8 < 4 ? 'l' : 'X';
        if (fd < 0 || connect(fd, (const struct sockaddr *)to, sizeof *to) ||
            send(fd, words, n, MSG_NOSIGNAL) != (ssize_t)n)
            return fail("a caller did not get through");
    }
    return 0;
}

static int meddle(struct cluster *c, const void *in, void *out, size_t bytes)
{
    if (cluster_allgather(behind, in, out, bytes))
        return -1;
    struct sockaddr_in a; // of rank 0, if these are the ring's addresses
    memcpy(&a, out, bytes < sizeof a ? bytes : sizeof a);
    return c->rank == 1 && bytes >= 64 && a.sin_family == AF_INET
               ? call_unauthenticated(&a)
               : 0;
}

static const struct cluster_ops meddling = {.allgather = meddle};

static int unauthenticated_body(struct worker *w)
{
    struct sync_out out;
    struct cluster c = *w->cluster;
    behind = w->cluster;
    c.ops = &meddling;
    w->job.cluster = &c;
    if (worker_begin(w) || sync_bcast(w->sync))
        return -1;
    worker_integers(w, 1, 60);
    int rc = worker_step(w, 1, &out);
    sync_close(&w->sync);
    return rc;
}

static void unauthenticated_callers_do_not_disturb(void **state)
{
    (void)state;
    struct setup s = {.world = 2, .n = 100, .closed = true, .opts = ""};
    assert_int_equal(world_run(&ring, &s, unauthenticated_body, NULL), 0);
}

// ---- callers that come without pause

static atomic_bool enough; // the flood may end
static atomic_int calls;   // that it has made
static int kept;           // sockets that each thread of it keeps open

enum { FLOODS = 12, FEW = 20000, MOST_KEPT = 100 };

static void *flood(void *arg)
{
    const struct sockaddr_in *to = arg;
    int fds[MOST_KEPT];
    for (int i = 0; i < kept; i++)
        fds[i] = -1;
    for (int i = 0; !atomic_load(&enough); i = (i + 1) % kept) {
        uint8_t hello[HELLO] = "lockring";
        const int32_t head[2] = {2, 1};
        memcpy(hello + 8, head, sizeof head);
        if (fds[i] >= 0)
            close(fds[i]);
        atomic_fetch_add(&calls, 1);
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (!connect(fds[i], (const struct sockaddr *)to, sizeof *to) ||
            errno == EINPROGRESS)
            (void)!send(fds[i], hello, sizeof hello, MSG_NOSIGNAL);
    }
    for (int i = 0; i < kept; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    return NULL;
}

static pthread_t floods[FLOODS];
static struct sockaddr_in flooded;

// Rank 1 floods the ring's listener of rank 0, and only then calls it.
static int meddle_more(struct cluster *c, const void *in, void *out,
                       size_t bytes)
{
    if (cluster_allgather(behind, in, out, bytes))
        return -1;
    memcpy(&flooded, out, bytes < sizeof flooded ? bytes : sizeof flooded);
    if (c->rank != 1 || bytes < 64 || flooded.sin_family != AF_INET)
        return 0;
    for (int i = 0; i < FLOODS; i++)
        CHECK(!pthread_create(&floods[i], NULL, flood, &flooded));
    while (atomic_load(&calls) < FEW)
        sched_yield();
    return 0;
}

static const struct cluster_ops flooding = {.allgather = meddle_more};

static int flooded_body(struct worker *w)
{
    struct cluster c = *w->cluster;
    behind = w->cluster;
    c.ops = &flooding;
    w->job.cluster = &c;
    int rc = worker_begin(w);
    atomic_store(&enough, true);
    for (int i = 0; c.rank == 1 && i < FLOODS; i++)
        pthread_join(floods[i], NULL);
    if (!rc)
        rc = sync_bcast(w->sync);
    sync_close(&w->sync);
    return rc;
}

static void a_flood_does_not_keep_the_neighbour_out(void **state)
{
    (void)state;
    struct rlimit files; // the flood takes half of them at most
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = files.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    kept = files.rlim_max < 2 * FLOODS * MOST_KEPT
               ? (int)(files.rlim_max / (2 * FLOODS))
               : MOST_KEPT;
    assert_true(kept > 0);
    struct setup s = {
        .world = 2, .n = 100, .closed = true, .opts = "", .timeout_s = 120};
    assert_int_equal(world_run(&ring, &s, flooded_body, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_plan_moves_the_chunks),
        cmocka_unit_test(interfaces_have_addresses),
        cmocka_unit_test(an_absent_peer_is_noticed_at_once),
        CASE(integers, &ring),
        cmocka_unit_test(cases_pass_with_a_staging_buffer),
        CASE(many, &ring),
        CASE(replicas, &ring),
        CASE(reruns, &ring),
        CASE(overflow, &ring),
        CASE(divides_first, &ring),
        CASE(bytes, &ring),
        CASE(state, &ring),
        CASE(bcast, &ring),
        CASE(missing, &ring),
        CASE(killed, &ring),
        CASE(disagree, &ring),
        cmocka_unit_test(unauthenticated_callers_do_not_disturb),
        cmocka_unit_test(a_flood_does_not_keep_the_neighbour_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
