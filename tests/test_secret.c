// test_secret.c - the job's secret: where it comes from, and that workers
// without it are refused.

#include "base/secret.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "cluster/rendezvous.h"
#include "message/connection.h"
#include "message/curve.h"

#include <arpa/inet.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#include "tests/test.h"

static const char one[] = "0123456789abcdef0123456789abcdef",
                  other[] = "0123456789abcdef0123456789abcdeX";

static char mine[PATH_MAX], theirs[PATH_MAX]; // state folders of two users

static int no_secret(void **state)
{
    (void)state;
    unsetenv("LOCKSTEP_SECRET");
    unsetenv("LOCKSTEP_SECRET_FILE");
    setenv("XDG_STATE_HOME", mine, 1);
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

// The secret may be in a file of its owner, with or without a newline, instead
// of the variable.
static void may_be_in_a_file(void **state)
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

// The first process that asks makes the user's secret. All later ones find it.
static void users_have_one(void **state)
{
    (void)state;
    enum { ASK = 8 };
    uint8_t key[SECRET_KEY], again[SECRET_KEY], said[SECRET_KEY];
    char path[PATH_MAX + 64];
    struct stat st;
    int answers[2], status;
    assert_int_equal(pipe(answers), 0);
    for (int i = 0; i < ASK; i++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            bool ok = secret_of_user(key) == 1 &&
                      write(answers[1], key, SECRET_KEY) == SECRET_KEY;
            _exit(!ok);
        }
    }
    for (int i = 0; i < ASK; i++) {
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    assert_int_equal(secret_of_user(key), 1);
    for (int i = 0; i < ASK; i++) {
        assert_int_equal(read(answers[0], said, SECRET_KEY), SECRET_KEY);
        assert_true(secret_same(said, key, SECRET_KEY));
    }
    close(answers[0]);
    close(answers[1]);
    snprintf(path, sizeof path, "%s/lockstep/secret", mine);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    setenv("XDG_STATE_HOME", theirs, 1);
    assert_int_equal(secret_of_user(again), 1);
    assert_false(secret_same(again, key, SECRET_KEY));
    assert_int_equal(chmod(path, 0640), 0);
    setenv("XDG_STATE_HOME", mine, 1);
    assert_int_equal(secret_of_user(again), -1);
    assert_non_null(strstr(fail_message(), "try: chmod 600"));
    // In a user namespace there may be no user but root.
    if (geteuid() == 0 && !chmod(path, 0600) && !chown(path, 1, 1)) {
        assert_int_equal(secret_of_user(again), -1);
        assert_non_null(strstr(fail_message(), "belongs to user 1"));
    }
    unlink(path);
}

// If the home folder cannot be written, one line says so, and the job still
// runs.
static void a_home_may_be_closed(void **state)
{
    (void)state;
    uint8_t key[SECRET_KEY];
    char path[PATH_MAX + 64], line[1024] = "";
    int lines[2], before = dup(STDERR_FILENO);
    assert_true(before >= 0 && pipe(lines) == 0);
    setenv("XDG_STATE_HOME", "/dev/null/state", 1);
    assert_int_equal(dup2(lines[1], STDERR_FILENO), STDERR_FILENO);
    int rc = secret_of_user(key), again = secret_of_user(key);
    assert_int_equal(dup2(before, STDERR_FILENO), STDERR_FILENO);
    close(lines[1]);
    assert_true(read(lines[0], line, sizeof line - 1) > 0);
    close(lines[0]);
    close(before);
    assert_int_equal(rc, 0);
    assert_int_equal(again, 0);
    assert_non_null(strstr(line, "/dev/null/state/lockstep: Not a directory"));
    assert_non_null(strstr(line, "try: LOCKSTEP_SECRET_FILE="));
    assert_ptr_equal(strchr(line, '\n') + 1, line + strlen(line)); // one
    unsetenv("XDG_STATE_HOME");
    setenv("HOME", theirs, 1);
    assert_int_equal(secret_of_user(key), 1);
    snprintf(path, sizeof path, "%s/.local/state/lockstep/secret", theirs);
    assert_int_equal(access(path, R_OK), 0);
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

static void begin(struct worker *w, const char *rendezvous, int rank, int world)
{
    *w = (struct worker){.config = {.rank = rank,
                                    .world = world,
                                    .rendezvous = rendezvous,
                                    .curve = "",
                                    .timeout_s = 20}};
    assert_int_equal(pthread_create(&w->thread, NULL, come, w), 0);
}

// A worker with another secret, or with none, fails in the handshake. The
// workers with the secret connect. At 0.0.0.0 they derive keys from the secret,
// on loopback a password.
static void other_secrets_are_refused(void **state)
{
    (void)state;
    static const char *const places[] = {"tcp://127.0.0.1:0",
                                         "tcp://0.0.0.0:0"};
    for (int i = 0; i < 2; i++) {
        struct rendezvous_server *h;
        struct worker w[2];
        setenv("LOCKSTEP_SECRET", one, 1);
        assert_int_equal(rendezvous_start(&h, places[i], ""), 0);
        for (int k = 0; k < 2; k++) {
            if (k)
                setenv("LOCKSTEP_SECRET", other, 1);
            else
                unsetenv("LOCKSTEP_SECRET");
            begin(&w[0], rendezvous_endpoint(h), 0, 2);
            pthread_join(w[0].thread, NULL);
            print_message("%s\n", w[0].message);
            assert_int_equal(w[0].rc, -1);
            assert_non_null(strstr(w[0].message, "LOCKSTEP_SECRET"));
        }
        setenv("LOCKSTEP_SECRET", one, 1);
        for (int r = 0; r < 2; r++)
            begin(&w[r], rendezvous_endpoint(h), r, 2);
        for (int r = 0; r < 2; r++) {
            pthread_join(w[r].thread, NULL);
            assert_string_equal(w[r].message, "");
            assert_int_equal(w[r].rc, 0);
        }
        rendezvous_stop(&h);
    }
}

// A worker that was refused has no receiver for its messages. Its send must
// fail at once.
static void is_told_at_a_send(const char *endpoint)
{
    struct connection c;
    void *context = zmq_ctx_new();
    assert_int_equal(connection_open(&c, context, endpoint, "", 20), 0);
    while (zmq_send(c.socket, "x", 1, 0) >= 0)
        sleep_ns(1000000);
    assert_int_equal(connection_not_sent(&c), -1);
    assert_non_null(strstr(fail_message(), "refused our key"));
    connection_close(&c);
    zmq_ctx_term(context);
}

// A job that is started by hand without a secret uses its user's. A worker of
// another user is refused, and its error gives the reason.
static void other_users_are_refused(void **state)
{
    (void)state;
    struct rendezvous_server *h;
    struct worker w;
    assert_int_equal(rendezvous_start(&h, "tcp://127.0.0.1:0", ""), 0);
    setenv("XDG_STATE_HOME", theirs, 1);
    begin(&w, rendezvous_endpoint(h), 0, 1);
    pthread_join(w.thread, NULL);
    assert_int_equal(w.rc, -1);
    assert_non_null(strstr(w.message, "refused our key"));
    assert_non_null(strstr(w.message, "LOCKSTEP_SECRET"));
    is_told_at_a_send(rendezvous_endpoint(h));
    setenv("XDG_STATE_HOME", mine, 1);
    begin(&w, rendezvous_endpoint(h), 0, 1);
    pthread_join(w.thread, NULL);
    assert_string_equal(w.message, "");
    rendezvous_stop(&h);
}

// Who gives a connection up before the handshake is asked again: it, or this
// process, may have been stopped for a while. Not for ever, since a server with
// other keys does the same.
static void a_handshake_is_tried_again(void **state)
{
    (void)state;
    struct connection c;
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t size = sizeof a;
    char endpoint[64];
    int closed = 0, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    void *context = zmq_ctx_new();
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &size), 0);
    snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%d",
             ntohs(a.sin_port));
    assert_int_equal(connection_open(&c, context, endpoint, "", 20), 0);
    while (!connection_check(&c) && closed < 20) {
        close(accept(fd, NULL, NULL));
        closed++;
        sleep_ns(50000000);
    }
    print_message("%d times; %s\n", closed, fail_message());
    assert_int_equal(closed, 5);
    assert_non_null(strstr(fail_message(), "no handshake"));
    connection_close(&c);
    zmq_ctx_term(context);
    close(fd);
}

// Many clients connect and send nothing: more than a process has descriptors by
// default. Workers can still connect.
static void idle_connections_block_no_worker(void **state)
{
    (void)state;
    enum { IDLE = 1500, DESCRIPTORS = 2 * IDLE + 200 };
    static int fd[IDLE];
    struct rendezvous_server *h;
    struct worker w[2];
    struct rlimit before, few;
    struct sockaddr_in a = {.sin_family = AF_INET};
    int port;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = 256;
    if (before.rlim_max < DESCRIPTORS)
        skip();
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    setenv("LOCKSTEP_SECRET", one, 1);
    assert_int_equal(rendezvous_start(&h, "tcp://127.0.0.1:0", ""), 0);
    assert_int_equal(sscanf(rendezvous_endpoint(h), "tcp://127.0.0.1:%d",
                            &port),
                     1);
    a.sin_port = htons((uint16_t)port);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < IDLE; i++) {
        fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_true(fd[i] >= 0);
        assert_int_equal(connect(fd[i], (struct sockaddr *)&a, sizeof a), 0);
    }
    for (int r = 0; r < 2; r++)
        begin(&w[r], rendezvous_endpoint(h), r, 2);
    for (int r = 0; r < 2; r++) {
        pthread_join(w[r].thread, NULL);
        assert_string_equal(w[r].message, "");
    }
    for (int i = 0; i < IDLE; i++)
        close(fd[i]);
    rendezvous_stop(&h);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

// A worker may get another name for the server's address.
static void a_name_is_its_address(void **state)
{
    (void)state;
    struct rendezvous_server *h;
    struct worker w;
    char name[64];
    setenv("LOCKSTEP_SECRET", one, 1);
    assert_int_equal(rendezvous_start(&h, "tcp://127.0.0.1:0", ""), 0);
    snprintf(name, sizeof name, "tcp://0x7f.1%s",
             strrchr(rendezvous_endpoint(h), ':'));
    begin(&w, name, 0, 1);
    pthread_join(w.thread, NULL);
    assert_string_equal(w.message, "");
    rendezvous_stop(&h);
}

// Without a secret nothing listens at an address that other hosts can reach.
static void open_endpoints_need_a_secret(void **state)
{
    (void)state;
    struct rendezvous_server *h;
    assert_int_equal(rendezvous_start(&h, "tcp://0.0.0.0:0", ""), -1);
    assert_non_null(strstr(fail_message(), "is open to other hosts"));
    assert_non_null(strstr(fail_message(), "try: LOCKSTEP_SECRET_FILE="));
    assert_int_equal(rendezvous_start(&h, "tcp://nobody.invalid:1", ""), -1);
    assert_non_null(
        strstr(fail_message(), "no host or interface of this name"));
    assert_int_equal(rendezvous_start(&h, "tcp://127.0.0.1:0", ""), 0);
    rendezvous_stop(&h);
}

static int make_homes(void **state)
{
    (void)state;
    char *const homes[] = {mine, theirs};
    for (int i = 0; i < 2; i++) {
        strcpy(homes[i], "/tmp/lockstep-state-XXXXXX");
        if (!mkdtemp(homes[i]))
            return -1;
    }
    return 0;
}

static int remove_homes(void **state)
{
    (void)state;
    char command[2 * PATH_MAX + 16];
    snprintf(command, sizeof command, "rm -rf %s %s", mine, theirs);
    return system(command);
}

// Keys that cannot all be written leave no file, so the next try can succeed.
static void half_of_the_keys_do_not_stay(void **state)
{
    (void)state;
    char dir[] = "/tmp/lockstep-keys-XXXXXX", path[64];
    struct rlimit before, none;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/keys", dir);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    assert_int_equal(curve_make(path), -1);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_non_null(strstr(fail_message(), "server.public: File too large"));
    assert_int_equal(rmdir(path), -1); // it is gone already
    snprintf(path, sizeof path, "%s/worker.public", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(curve_make(dir), -1);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(curve_make(dir), 0);
    snprintf(path, sizeof path, "rm -r %s", dir);
    assert_int_equal(system(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(is_made_once, no_secret),
        cmocka_unit_test_setup(may_be_in_a_file, no_secret),
        cmocka_unit_test_setup(users_have_one, no_secret),
        cmocka_unit_test_setup(a_home_may_be_closed, no_secret),
        cmocka_unit_test_setup(proofs_hold, no_secret),
        cmocka_unit_test_setup(other_secrets_are_refused, no_secret),
        cmocka_unit_test_setup(other_users_are_refused, no_secret),
        cmocka_unit_test_setup(a_handshake_is_tried_again, no_secret),
        cmocka_unit_test_setup(idle_connections_block_no_worker, no_secret),
        cmocka_unit_test_setup(a_name_is_its_address, no_secret),
        cmocka_unit_test_setup(open_endpoints_need_a_secret, no_secret),
        cmocka_unit_test(half_of_the_keys_do_not_stay),
    };
    return cmocka_run_group_tests(tests, make_homes, remove_homes);
}
