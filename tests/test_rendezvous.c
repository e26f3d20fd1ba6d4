// test_rendezvous.c - the control plane without MPI: exchanges over the
// rendezvous server, missing workers, and keys.

#include "base/base.h"
#include "cluster/rendezvous.h"
#include "cluster/cluster.h"
#include "message/auth.h"
#include "message/connection.h"
#include "message/curve.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include "tests/closed_port.h"
#include "tests/test.h"

enum { MAX_WORLD = 8 };

struct worker {
    struct cluster_config config;
    pthread_t thread;
    int rc;
    double sum;
    char text[16], message[512];
    void (*body)(struct worker *w, struct cluster *c);
};

struct goodbye {
    char rendezvous[MESSAGE_ENDPOINT];
    int rc;
    atomic_bool closed;
};

static void *run(void *arg)
{
    struct worker *w = arg;
    struct cluster *c = NULL;
    w->rc = cluster_open(&c, &cluster_zmq, &w->config);
    if (!w->rc)
        w->body(w, c);
    if (w->rc)
        snprintf(w->message, sizeof w->message, "%s", fail_message());
    cluster_close(&c);
    return NULL;
}

static void start(struct worker *w, const char *rendezvous, const char *curve,
                  int rank, int world, double timeout_s,
                  void (*body)(struct worker *, struct cluster *))
{
    *w = (struct worker){
        .config = {.rank = rank,
                   .world = world,
                   .rendezvous = rendezvous,
                   .curve = curve,
                   .timeout_s = timeout_s},
        .body = body,
    };
    assert_int_equal(pthread_create(&w->thread, NULL, run, w), 0);
}

static void exchange(struct worker *w, struct cluster *c)
{
    for (int i = 0; i < 20 && !w->rc; i++)
        w->rc = cluster_barrier(c);
    double v = c->rank + 1;
    if (!w->rc)
        w->rc = cluster_sum(c, &v, 1);
    w->sum = v;
    strcpy(w->text, c->rank ? "" : "from zero");
    if (!w->rc)
        w->rc = cluster_bcast(c, w->text, sizeof w->text);
    if (!w->rc)
        w->rc = cluster_check_same(c, "wire=fp32\nn=10\n");
}

static void all_workers_exchange(void **state)
{
    (void)state;
    for (int world = 1; world <= MAX_WORLD; world *= 2) {
        struct rendezvous_server *h;
        struct worker w[MAX_WORLD];
        assert_int_equal(rendezvous_start(&h, "tcp://127.0.0.1:0", ""), 0);
        for (int r = 0; r < world; r++)
            start(&w[r], rendezvous_endpoint(h), "", r, world, 20, exchange);
        for (int r = 0; r < world; r++) {
            pthread_join(w[r].thread, NULL);
            assert_int_equal(w[r].rc, 0);
            assert_true(w[r].sum == world * (world + 1) / 2);
            assert_string_equal(w[r].text, "from zero");
        }
        rendezvous_stop(&h);
    }
}

static void differ(struct worker *w, struct cluster *c)
{
    w->rc = cluster_check_same(c, c->rank == 2 ? "seed=1\nwire=fp16\n"
                                               : "seed=1\nwire=fp32\n");
}

static void different_settings_are_named(void **state)
{
    (void)state;
    struct rendezvous_server *h;
    struct worker w[3];
    assert_int_equal(rendezvous_start(&h, "tcp://127.0.0.1:0", ""), 0);
    for (int r = 0; r < 3; r++)
        start(&w[r], rendezvous_endpoint(h), "", r, 3, 20, differ);
    for (int r = 0; r < 3; r++) {
        pthread_join(w[r].thread, NULL);
        assert_int_equal(w[r].rc, -1);
        assert_non_null(strstr(w[r].message, "rank 2 has \"wire=fp16\""));
    }
    rendezvous_stop(&h);
}

static void a_missing_worker_is_named(void **state)
{
    (void)state;
    struct rendezvous_server *h;
    struct worker w[2];
    assert_int_equal(rendezvous_start(&h, "tcp://127.0.0.1:0", ""), 0);
    start(&w[0], rendezvous_endpoint(h), "", 0, 4, 2, exchange);
    start(&w[1], rendezvous_endpoint(h), "", 2, 4, 2, exchange);
    for (int i = 0; i < 2; i++) {
        pthread_join(w[i].thread, NULL);
        assert_int_equal(w[i].rc, -1);
        assert_non_null(strstr(w[i].message, "rank 1, rank 3"));
    }
    rendezvous_stop(&h);
}

// Worker 1 saves: it works for longer than the deadline, or fails. If it is
// gone, the others miss it within the deadline.
enum save { SAVES_LONG, SAVES_IN_VAIN, IS_GONE };

static int do_nothing(void *ctx)
{
    (void)ctx;
    return 0;
}

static int save_long(void *ctx)
{
    const struct cluster *c = ctx;
    sleep_ns((uint64_t)(1.5e9 * c->timeout_s));
    return 0;
}

static int save_in_vain(void *ctx)
{
    (void)ctx;
    return fail("disk full");
}

static enum save saves;

static void await_the_saver(struct worker *w, struct cluster *c)
{
    w->rc = cluster_barrier(c);
    if (w->rc || (c->rank == 1 && saves == IS_GONE))
        return;
    w->rc = cluster_work(c,
                         c->rank != 1          ? do_nothing
                         : saves == SAVES_LONG ? save_long
                                               : save_in_vain,
                         c);
}

static void a_saver_may_pass_the_deadline(void **state)
{
    (void)state;
    static const char *const says[] = {
        [SAVES_IN_VAIN] = "rank 1 has failed", [IS_GONE] = "rank 1 (left)"};
    for (saves = SAVES_LONG; saves <= IS_GONE; saves++) {
        struct rendezvous_server *h;
        struct worker w[3];
        assert_int_equal(rendezvous_start(&h, "tcp://127.0.0.1:0", ""), 0);
        for (int r = 0; r < 3; r++)
            start(&w[r], rendezvous_endpoint(h), "", r, 3, 2, await_the_saver);
        for (int r = 0; r < 3; r++) {
            pthread_join(w[r].thread, NULL);
            if (r == 1 && saves == SAVES_IN_VAIN)
                assert_string_equal(w[r].message, "disk full");
            else if (saves == SAVES_LONG || r == 1)
                assert_int_equal(w[r].rc, 0);
            else
                assert_non_null(strstr(w[r].message, says[saves]));
        }
        rendezvous_stop(&h);
    }
}

static void an_absent_server_is_named(void **state)
{
    (void)state;
    struct worker w;
    char nobody[CLOSED_PORT_TEXT];
    int port = closed_port(nobody);
    start(&w, nobody, "", 0, 2, 0.3, exchange);
    pthread_join(w.thread, NULL);
    assert_int_equal(w.rc, -1);
    assert_non_null(strstr(w.message, nobody));
    close(port);
}

static void a_port_in_use_is_refused(void **state)
{
    (void)state;
    struct rendezvous_server *h, *other = NULL;
    assert_int_equal(rendezvous_start(&h, "tcp://127.0.0.1:0", ""), 0);
    assert_int_equal(rendezvous_start(&other, rendezvous_endpoint(h), ""), -1);
    assert_non_null(strstr(fail_message(), "another port"));
    rendezvous_stop(&h);
}

static void remove_keys(const char *dir)
{
    const char *names[] = {"server.public", "server.secret", "worker.public",
                           "worker.secret"};
    char path[256];
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        unlink(path);
    }
    rmdir(dir);
}

static void only_the_right_keys_are_admitted(void **state)
{
    (void)state;
    char dir[] = "/tmp/keysXXXXXX", other[] = "/tmp/keysXXXXXX";
    char path[64];
    struct stat st;
    assert_non_null(mkdtemp(dir));
    assert_non_null(mkdtemp(other));
    assert_int_equal(curve_make(dir), 0);
    assert_int_equal(curve_make(dir), -1);
    assert_int_equal(curve_make(other), 0);
    snprintf(path, sizeof path, "%s/worker.secret", dir);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);

    struct rendezvous_server *h;
    struct worker w[4];
    assert_int_equal(rendezvous_start(&h, "tcp://127.0.0.1:0", dir), 0);
    start(&w[0], rendezvous_endpoint(h), dir, 0, 2, 10, exchange);
    start(&w[1], rendezvous_endpoint(h), dir, 1, 2, 10, exchange);
    start(&w[2], rendezvous_endpoint(h), "", 0, 2, 1, exchange); // no key
    start(&w[3], rendezvous_endpoint(h), other, 1, 2, 1,
          exchange); // a wrong key
    for (int i = 0; i < 4; i++) {
        pthread_join(w[i].thread, NULL);
        assert_int_equal(w[i].rc, i < 2 ? 0 : -1);
        if (i >= 2)
            print_message("unauthenticated: %s\n", w[i].message);
    }
    // This worker has the right key of the server, but the server does not know
    // the worker's key.
    char from[64];
    snprintf(from, sizeof from, "%s/server.public", dir);
    snprintf(path, sizeof path, "%s/server.public", other);
    unlink(path);
    assert_int_equal(link(from, path), 0);
    start(&w[0], rendezvous_endpoint(h), other, 0, 2, 5, exchange);
    pthread_join(w[0].thread, NULL);
    assert_int_equal(w[0].rc, -1);
    print_message("unauthenticated: %s\n", w[0].message);
    assert_non_null(strstr(w[0].message, "refused our key"));
    rendezvous_stop(&h);
    remove_keys(dir);
    remove_keys(other);
}

// A silent peer is given up after timeout=, and not before.
static void a_silent_peer_is_given_up_after_the_timeout(void **state)
{
    (void)state;
    static const double limits[] = {0.2, 6, 60, 1000};
    void *context = zmq_ctx_new();
    for (int i = 0; i < 4; i++) {
        struct connection c;
        int limit = 0, beat = 0;
        size_t size = sizeof limit;
        assert_int_equal(connection_open(&c, context, "tcp://127.0.0.1:1", "",
                                         limits[i]),
                         0);
        assert_int_equal(zmq_getsockopt(c.socket, ZMQ_HEARTBEAT_TIMEOUT, &limit,
                                        &size),
                         0);
        assert_int_equal(zmq_getsockopt(c.socket, ZMQ_HEARTBEAT_IVL, &beat,
                                        &size),
                         0);
        assert_true(limit >= limits[i] * 1000);
        assert_true(limit <= limits[i] * 1000 + 1 && beat < limit);
        connection_close(&c);
    }
    zmq_ctx_term(context);
}

static void *close_it(void *arg)
{
    struct goodbye *g = arg;
    struct cluster *c = NULL;
    const struct cluster_config config = {.world = 1,
                                          .rendezvous = g->rendezvous,
                                          .curve = "",
                                          .timeout_s = 60};
    g->rc = cluster_open(&c, &cluster_zmq, &config) || cluster_barrier(c);
    cluster_close(&c);
    atomic_store(&g->closed, true);
    return NULL;
}

// Receives one message of a worker, and stores its address in *from.
static void take(void *router, zmq_msg_t *from, struct rendezvous_head *head)
{
    uint8_t raw[RENDEZVOUS_HEAD];
    assert_true(zmq_msg_recv(from, router, 0) >= 0);
    assert_int_equal(zmq_recv(router, raw, RENDEZVOUS_HEAD, 0),
                     RENDEZVOUS_HEAD);
    assert_true(zmq_recv(router, NULL, 0, 0) >= 0);
    assert_int_equal(rendezvous_head_get(head, raw, RENDEZVOUS_HEAD), 0);
}

static void answer(void *router, zmq_msg_t *from, struct rendezvous_head head,
                   enum rendezvous_kind kind)
{
    uint8_t raw[RENDEZVOUS_HEAD], piece[64] = {0};
    head.kind = (uint32_t)kind;
    rendezvous_head_put(raw, &head);
    assert_true(zmq_msg_send(from, router, ZMQ_SNDMORE) >= 0);
    assert_int_equal(zmq_send(router, raw, RENDEZVOUS_HEAD, ZMQ_SNDMORE),
                     RENDEZVOUS_HEAD);
    assert_true(zmq_send(router, piece, head.bytes, 0) >= 0);
}

// A worker that says goodbye waits for the rendezvous server's goodbye, or for
// the end of the connection. Otherwise, if the server ends at the same time,
// the goodbye stays unsent, and the worker lingers for as long as its timeout.
static void a_goodbye_waits_for_the_server(void **state)
{
    (void)state;
    for (int answers = 0; answers < 2; answers++) {
        void *context = zmq_ctx_new(),
             *router = zmq_socket(context, ZMQ_ROUTER);
        struct goodbye g = {0};
        struct rendezvous_head head;
        struct auth *auth;
        size_t size = sizeof g.rendezvous;
        pthread_t thread;
        zmq_msg_t from;
        zmq_msg_init(&from);
        assert_int_equal(auth_serve(&auth, context, router, "tcp://127.0.0.1:0",
                                    ""),
                         0);
        assert_int_equal(zmq_bind(router, "tcp://127.0.0.1:0"), 0);
        assert_int_equal(zmq_getsockopt(router, ZMQ_LAST_ENDPOINT, g.rendezvous,
                                        &size),
                         0);
        assert_int_equal(pthread_create(&thread, NULL, close_it, &g), 0);
        take(router, &from, &head);
        answer(router, &from, head, RENDEZVOUS_ALL);
        take(router, &from, &head);
        assert_int_equal(head.kind, RENDEZVOUS_BYE);
        sleep_ns(200000000);
        assert_false(atomic_load(&g.closed));
        if (answers)
            answer(router, &from, head, RENDEZVOUS_BYE);
        else
            zmq_close(router);
        pthread_join(thread, NULL);
        assert_int_equal(g.rc, 0);
        if (answers)
            zmq_close(router);
        auth_close(&auth);
        zmq_msg_close(&from);
        zmq_ctx_term(context);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_workers_exchange),
        cmocka_unit_test(different_settings_are_named),
        cmocka_unit_test(a_missing_worker_is_named),
        cmocka_unit_test(a_saver_may_pass_the_deadline),
        cmocka_unit_test(an_absent_server_is_named),
        cmocka_unit_test(a_port_in_use_is_refused),
        cmocka_unit_test(only_the_right_keys_are_admitted),
        cmocka_unit_test(a_silent_peer_is_given_up_after_the_timeout),
        cmocka_unit_test(a_goodbye_waits_for_the_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
