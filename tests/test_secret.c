// test_secret.c - the job's secret: where it comes from, and whom it keeps out.

#include "base/secret.h"

#include "base/base.h"
#include "cluster/hub.h"
#include "cluster/zmq.h"
#include "message/curve.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/test.h"

static const char one[] = "0123456789abcdef0123456789abcdef",
                  other[] = "0123456789abcdef0123456789abcdeX";

static int no_secret(void **state)
{
    (void)state;
    unsetenv("LOCKSTEP_SECRET");
    unsetenv("LOCKSTEP_SECRET_FILE");
    return 0;
}

static void is_made_once(void **state)
{
    (void)state;
    uint8_t key[SECRET_KEY], again[SECRET_KEY];
    assert_int_equal(secret_read(key), 0);
    assert_int_equal(secret_make(), 0);
    char *text = strdup(getenv("LOCKSTEP_SECRET"));
    assert_int_equal(strlen(text), 64);
    assert_int_equal(secret_read(key), 1);
    assert_int_equal(secret_make(), 0);
    assert_string_equal(getenv("LOCKSTEP_SECRET"), text);
    unsetenv("LOCKSTEP_SECRET");
    assert_int_equal(secret_make(), 0);
    assert_string_not_equal(getenv("LOCKSTEP_SECRET"), text);
    assert_int_equal(secret_read(again), 1);
    assert_false(secret_same(key, again, SECRET_KEY));
    free(text);
}

// A file of its owner's, with or without a newline, is as good as the variable.
static void may_lie_in_a_file(void **state)
{
    (void)state;
    char path[] = "/tmp/lockstep-secret-XXXXXX";
    uint8_t key[SECRET_KEY], again[SECRET_KEY];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(dprintf(fd, "%s\n", one), 33);
    close(fd);
    setenv("LOCKSTEP_SECRET", one, 1);
    assert_int_equal(secret_read(key), 1);
    unsetenv("LOCKSTEP_SECRET");
    setenv("LOCKSTEP_SECRET_FILE", path, 1);
    assert_int_equal(secret_read(again), 1);
    assert_true(secret_same(key, again, SECRET_KEY));
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(secret_read(again), -1);
    assert_non_null(strstr(fail_message(), "try: chmod 600"));
    unlink(path);
    assert_int_equal(secret_read(again), -1);
    unsetenv("LOCKSTEP_SECRET_FILE");
    setenv("LOCKSTEP_SECRET", "password", 1);
    assert_int_equal(secret_read(again), -1);
    assert_non_null(strstr(fail_message(), "8 characters"));
    assert_null(strstr(fail_message(), "password"));
}

static void proofs_hold(void **state)
{
    (void)state;
    uint8_t key[SECRET_KEY], a[SECRET_KEY], b[SECRET_KEY], proof[SECRET_PROOF];
    setenv("LOCKSTEP_SECRET", one, 1);
    assert_int_equal(secret_read(key), 1);
    secret_derive(key, "ring", "x", 1, a);
    secret_derive(key, "ring", "y", 1, b);
    assert_false(secret_same(a, b, SECRET_KEY));
    secret_derive(key, "PLAIN", "x", 1, b);
    assert_false(secret_same(a, b, SECRET_KEY));
    secret_prove(a, "text", 4, proof);
    assert_true(secret_proves(a, "text", 4, proof));
    assert_false(secret_proves(a, "texT", 4, proof));
    assert_false(secret_proves(b, "text", 4, proof));
    proof[31] ^= 1;
    assert_false(secret_proves(a, "text", 4, proof));
}

struct worker {
    struct cluster_config config;
    pthread_t thread;
    int rc;
    char message[512];
};

static void *come(void *arg)
{
    struct worker *w = arg;
    struct cluster *c = NULL;
    w->rc = cluster_open(&c, &cluster_zmq, &w->config);
    w->rc = w->rc || cluster_barrier(c) ? -1 : 0;
    if (w->rc)
        snprintf(w->message, sizeof w->message, "%s", fail_message());
    cluster_close(&c);
    return NULL;
}

static void begin(struct worker *w, const char *hub, int rank, int world)
{
    *w = (struct worker){.config = {.rank = rank,
                                    .world = world,
                                    .hub = hub,
                                    .curve = "",
                                    .timeout_s = 20}};
    assert_int_equal(pthread_create(&w->thread, NULL, come, w), 0);
}

// Whoever has another secret, or none, ends in the handshake; the others meet.
// At 0.0.0.0 keys are derived from it, on loopback a password.
static void strangers_stay_out(void **state)
{
    (void)state;
    static const char *const places[] = {"tcp://127.0.0.1:0",
                                         "tcp://0.0.0.0:0"};
    for (int i = 0; i < 2; i++) {
        struct hub_server *h;
        struct worker w[2];
        setenv("LOCKSTEP_SECRET", one, 1);
        assert_int_equal(hub_start(&h, places[i], ""), 0);
        for (int k = 0; k < 2; k++) {
            if (k)
                setenv("LOCKSTEP_SECRET", other, 1);
            else
                unsetenv("LOCKSTEP_SECRET");
            begin(&w[0], hub_endpoint(h), 0, 2);
            pthread_join(w[0].thread, NULL);
            print_message("%s\n", w[0].message);
            assert_int_equal(w[0].rc, -1);
            assert_non_null(strstr(w[0].message, "LOCKSTEP_SECRET"));
        }
        setenv("LOCKSTEP_SECRET", one, 1);
        for (int r = 0; r < 2; r++)
            begin(&w[r], hub_endpoint(h), r, 2);
        for (int r = 0; r < 2; r++) {
            pthread_join(w[r].thread, NULL);
            assert_string_equal(w[r].message, "");
            assert_int_equal(w[r].rc, 0);
        }
        hub_stop(&h);
    }
}

// Many who connect and say nothing, more than a process has descriptors by
// default, keep nobody out.
static void idle_strangers_hold_nobody_up(void **state)
{
    (void)state;
    enum { IDLE = 1500, ROOM = 2 * IDLE + 200 };
    static int fd[IDLE];
    struct hub_server *h;
    struct worker w[2];
    struct rlimit before, few;
    struct sockaddr_in a = {.sin_family = AF_INET};
    int port;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = 256;
    if (before.rlim_max < ROOM)
        skip();
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    setenv("LOCKSTEP_SECRET", one, 1);
    assert_int_equal(hub_start(&h, "tcp://127.0.0.1:0", ""), 0);
    assert_int_equal(sscanf(hub_endpoint(h), "tcp://127.0.0.1:%d", &port), 1);
    a.sin_port = htons((uint16_t)port);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < IDLE; i++) {
        fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_true(fd[i] >= 0);
        assert_int_equal(connect(fd[i], (struct sockaddr *)&a, sizeof a), 0);
    }
    for (int r = 0; r < 2; r++)
        begin(&w[r], hub_endpoint(h), r, 2);
    for (int r = 0; r < 2; r++) {
        pthread_join(w[r].thread, NULL);
        assert_string_equal(w[r].message, "");
    }
    for (int i = 0; i < IDLE; i++)
        close(fd[i]);
    hub_stop(&h);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

// A worker may be told another name of the address that the server listens at.
static void a_name_is_its_address(void **state)
{
    (void)state;
    struct hub_server *h;
    struct worker w;
    char name[64];
    setenv("LOCKSTEP_SECRET", one, 1);
    assert_int_equal(hub_start(&h, "tcp://127.0.0.1:0", ""), 0);
    snprintf(name, sizeof name, "tcp://0x7f.1%s",
             strrchr(hub_endpoint(h), ':'));
    begin(&w, name, 0, 1);
    pthread_join(w.thread, NULL);
    assert_string_equal(w.message, "");
    hub_stop(&h);
}

// Without a secret nothing listens where other hosts reach it.
static void open_doors_are_refused(void **state)
{
    (void)state;
    struct hub_server *h;
    assert_int_equal(hub_start(&h, "tcp://0.0.0.0:0", ""), -1);
    assert_non_null(strstr(fail_message(), "is open to other hosts"));
    assert_non_null(strstr(fail_message(), "try: LOCKSTEP_SECRET_FILE="));
    assert_int_equal(hub_start(&h, "tcp://127.0.0.1:0", ""), 0);
    hub_stop(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(is_made_once, no_secret),
        cmocka_unit_test_setup(may_lie_in_a_file, no_secret),
        cmocka_unit_test_setup(proofs_hold, no_secret),
        cmocka_unit_test_setup(strangers_stay_out, no_secret),
        cmocka_unit_test_setup(idle_strangers_hold_nobody_up, no_secret),
        cmocka_unit_test_setup(a_name_is_its_address, no_secret),
        cmocka_unit_test_setup(open_doors_are_refused, no_secret),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
