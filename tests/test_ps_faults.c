// test_ps_faults.c - what servers and workers do when the other side dies, is
// not there, joins late, or has no key. Servers and workers are processes.

#include "base/base.h"
#include "base/rng.h"
#include "message/curve.h"
#include "tests/ps_servers.h"
#include "tests/ps_workers.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/closed_port.h"
#include "tests/test.h"

enum { WORLD = 4 };

static struct ps_progress *progress;

// ---- elastic: a worker dies, the others go on; one joins later

static void dies_and_joins(const char *opts, int servers)
{
    struct ps_servers s;
    pid_t pids[WORLD];
    assert_int_equal(ps_servers_start(&s, servers, 1, 20, ""), 0);
    struct ps_workers j = {.progress = progress,
                           .world = 3,
                           .opts = opts,
                           .endpoints = s.endpoints,
                           .curve = "",
                           .timeout_s = 15};
    atomic_store(&progress->last, 0);
    for (int r = 0; r < 3; r++)
        pids[r] = ps_workers_start(&j, r);
    ps_workers_await(&j, 1, 20);
    kill(pids[1], SIGKILL);
    ps_workers_join(pids[1]);
    int at = atomic_load(&progress->step[0]);
    ps_workers_await(&j, 0, at + 20); // they go on
    pids[1] = ps_workers_start(&j, 1);
    ps_workers_await(&j, 1, 1); // it has joined
    ps_workers_finish(&j);
    for (int r = 0; r < 3; r++)
        ps_workers_join(pids[r]);
    for (int r = 0; r < 3; r++) {
        if (progress->end[r].rc)
            print_message("rank %d: %s\n", r, progress->end[r].why);
        assert_int_equal(progress->end[r].rc, 0);
    }
    print_message("rank 1 joined after %llu updates\n",
                  (unsigned long long)progress->end[1].joined);
    assert_true(progress->end[1].joined >= 20);
    if (!strstr(opts, "consistency")) // the replicas are equal again
        assert_true(progress->end[0].hash == progress->end[1].hash &&
                    progress->end[0].hash == progress->end[2].hash);
    assert_int_equal(ps_servers_stop(&s), servers);
}

static void elastic_bsp_survives_a_dead_worker(void **state)
{
    (void)state;
    dies_and_joins("elastic=1", 1);
    dies_and_joins("elastic=1", 3);
    dies_and_joins("elastic=1,wire=fp16", 2);
}

static void elastic_ssp_and_asp_survive_a_dead_worker(void **state)
{
    (void)state;
    dies_and_joins("elastic=1,consistency=ssp:2", 1);
    dies_and_joins("elastic=1,consistency=asp", 2);
}

// Kills a worker at a random moment, again and again, with one to three
// servers.
static void elastic_workers_may_die_at_any_moment(void **state)
{
    (void)state;
    for (int round = 0; round < (test_long() ? 200 : 9); round++) {
        struct ps_servers s;
        pid_t pids[WORLD];
        assert_int_equal(ps_servers_start(&s, 1 + round % 3, 1, 20, ""), 0);
        struct ps_workers j = {.progress = progress,
                               .world = 3,
                               .opts = "elastic=1",
                               .endpoints = s.endpoints,
                               .curve = "",
                               .timeout_s = 10,
                               .steps = 40,
                               .pause_us = 0};
        for (int r = 0; r < 3; r++)
            pids[r] = ps_workers_start(&j, r);
        int victim = round % 3;
        ps_workers_await(&j, victim, 2);
        usleep((useconds_t)rng_below(5, (uint64_t)round, 8000));
        kill(pids[victim], SIGKILL);
        for (int r = 0; r < 3; r++)
            ps_workers_join(pids[r]);
        for (int r = 0; r < 3; r++) {
            if (r != victim && progress->end[r].rc)
                print_message("rank %d: %s\n", r, progress->end[r].why);
            assert_true(r == victim || progress->end[r].rc == 0);
        }
        assert_int_equal(ps_servers_stop(&s), 1 + round % 3);
    }
}

// ---- not elastic: the job ends, and every worker says why

static void a_dead_server_is_named(void **state)
{
    (void)state;
    for (int servers = 1; servers <= 2; servers++) {
        struct ps_servers s;
        pid_t pids[2];
        assert_int_equal(ps_servers_start(&s, servers, 1, 5, ""), 0);
        struct ps_workers j = {.progress = progress,
                               .world = 2,
                               .opts = "wire=fp32",
                               .endpoints = s.endpoints,
                               .curve = "",
                               .timeout_s = 5,
                               .steps = 1 << 24};
        for (int r = 0; r < 2; r++)
            pids[r] = ps_workers_start(&j, r);
        ps_workers_await(&j, 1, 5);
        kill(s.pids[servers - 1], SIGKILL);
        for (int r = 0; r < 2; r++) {
            ps_workers_join(pids[r]);
            assert_int_equal(progress->end[r].rc, -1);
            print_message("rank %d: %s\n", r, progress->end[r].why);
            assert_non_null(strstr(progress->end[r].why, "127.0.0.1"));
        }
        ps_servers_stop(&s);
    }
}

static void an_absent_server_is_named(void **state)
{
    (void)state;
    char nobody[CLOSED_PORT_TEXT];
    int port = closed_port(nobody);
    struct ps_workers j = {.progress = progress,
                           .world = 1,
                           .opts = "wire=fp32",
                           .endpoints = nobody,
                           .curve = "",
                           .timeout_s = 0.5};
    ps_workers_join(ps_workers_start(&j, 0));
    assert_non_null(strstr(progress->end[0].why, nobody));
    assert_non_null(strstr(progress->end[0].why, "0.5 s"));
    close(port);
}

// Waits until one of two processes has ended. Returns the other one.
static pid_t outlives(const pid_t pids[2])
{
    for (int i = 0;; i = !i) {
        if (waitpid(pids[i], NULL, WNOHANG))
            return pids[!i];
        usleep(1000);
    }
}

// Two workers come as rank 0. The second is refused.
static void a_second_rank_0_is_refused(void **state)
{
    (void)state;
    struct ps_servers s;
    pid_t pids[2];
    assert_int_equal(ps_servers_start(&s, 1, 1, 20, ""), 0);
    struct ps_workers j = {.progress = progress,
                           .world = 2,
                           .opts = "wire=fp32",
                           .endpoints = s.endpoints,
                           .curve = "",
                           .timeout_s = 20,
                           .steps = 1};
    pids[0] = ps_workers_start(&j, 0);
    pids[1] = ps_workers_start(&j, 0);
    pid_t first = outlives(pids);
    assert_int_equal(progress->end[0].rc, -1);
    assert_non_null(strstr(progress->end[0].why, "rank 0 already"));
    pids[1] = ps_workers_start(&j, 1);
    ps_workers_join(first);
    ps_workers_join(pids[1]);
    assert_int_equal(progress->end[0].rc, 0);
    ps_servers_stop(&s);
}

// The program prints one line with the port, the cause and one remedy.
static void a_port_in_use_is_named(void **state)
{
    (void)state;
    struct ps_servers s;
    char command[1024], line[512];
    assert_int_equal(ps_servers_start(&s, 1, 1, 1, ""), 0);
    assert_int_equal(text_into(command, sizeof command, "'%s' bind=%s 2>&1",
                               PS_SERVER, s.endpoints),
                     0);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    assert_non_null(fgets(line, sizeof line, f));
    assert_int_not_equal(pclose(f), 0);
    print_message("%s", line);
    assert_non_null(strstr(line, s.endpoints));
    const char *try = strstr(line, "try:");
    assert_non_null(try);
    assert_null(strstr(try + 1, "try:"));
    assert_int_equal(ps_servers_stop(&s), 0); // no worker came
}

// ---- keys

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
    struct ps_servers s;
    pid_t pids[2];
    assert_non_null(mkdtemp(dir));
    assert_non_null(mkdtemp(other));
    assert_int_equal(curve_make(dir), 0);
    assert_int_equal(curve_make(other), 0);
    assert_int_equal(ps_servers_start(&s, 2, 1, 5, dir), 0);
    struct ps_workers j = {.progress = progress,
                           .world = 2,
                           .opts = "wire=fp32",
                           .endpoints = s.endpoints,
                           .curve = "",
                           .timeout_s = 1,
                           .steps = 3};
    ps_workers_join(ps_workers_start(&j, 0)); // no key
    assert_int_equal(progress->end[0].rc, -1);
    print_message("no key: %s\n", progress->end[0].why);
    j.curve = other;
    ps_workers_join(ps_workers_start(&j, 0)); // a wrong key
    assert_int_equal(progress->end[0].rc, -1);
    print_message("a wrong key: %s\n", progress->end[0].why);
    j.curve = dir;
    j.timeout_s = 10;
    for (int r = 0; r < 2; r++)
        pids[r] = ps_workers_start(&j, r);
    for (int r = 0; r < 2; r++) {
        ps_workers_join(pids[r]);
        assert_int_equal(progress->end[r].rc, 0);
    }
    assert_int_equal(ps_servers_stop(&s), 2);
    remove_keys(dir);
    remove_keys(other);
}

int main(int argc, char **argv)
{
    progress = ps_progress_make();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elastic_bsp_survives_a_dead_worker),
        cmocka_unit_test(elastic_ssp_and_asp_survive_a_dead_worker),
        cmocka_unit_test(elastic_workers_may_die_at_any_moment),
        cmocka_unit_test(a_dead_server_is_named),
        cmocka_unit_test(an_absent_server_is_named),
        cmocka_unit_test(a_second_rank_0_is_refused),
        cmocka_unit_test(a_port_in_use_is_named),
        cmocka_unit_test(only_the_right_keys_are_admitted),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
