// test_netns.c - emulated hosts: they reach each other, have the wanted rate,
// and are removed even after a kill. Skipped without root or tc.

#include "netns/netns.h"

#include "base/base.h"

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/test.h"

// Namespaces made by process `pid`.
static int count(int pid)
{
    char prefix[32];
    int n = 0;
    snprintf(prefix, sizeof prefix, "ls%d-", pid);
    DIR *d = opendir("/run/netns");
    if (!d)
        return 0;
    for (struct dirent *e; (e = readdir(d));)
        n += !strncmp(e->d_name, prefix, strlen(prefix));
    closedir(d);
    return n;
}

static void bad_nets_are_refused(void **state)
{
    (void)state;
    struct netns *n;
    const char *texts[] = {"",
                           "fast",
                           "1",
                           "0gbit",
                           "-1gbit",
                           "1gbit,hosts=0",
                           "1gbit;ls",
                           "1gbit,hosts=2x",
                           "1tbit",
                           "1gbit,host",
                           "1gbit,hosts=9999"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_int_equal(netns_open(&n, texts[i], 2), -1);
        assert_non_null(strstr(fail_message(), "net="));
    }
    assert_int_equal(count(getpid()), 0);
}

static int in_host(const struct netns *n, int host, const char *command)
{
    pid_t pid = fork();
    if (pid == 0) {
        if (netns_enter(netns_name(n, host)))
            _exit(99);
        _exit(WEXITSTATUS(system(command)));
    }
    int status;
    waitpid(pid, &status, 0);
    return WEXITSTATUS(status);
}

static void hosts_reach_each_other(void **state)
{
    (void)state;
    struct netns *n;
    char text[256];
    assert_int_equal(netns_open(&n, "1gbit,hosts=3", 2), 0);
    assert_int_equal(netns_hosts(n), 3);
    assert_int_equal(count(getpid()), 4);
    assert_string_equal(netns_address(n, 2), "10.77.0.3");
    assert_int_equal(in_host(n, 0, "ip route show | grep -q 'congctl cubic'"),
                     0);
    assert_int_equal(
        in_host(n, 1, "tc qdisc show dev eth0 | grep -q 'tbf.*rate 1Gbit'"), 0);
    // a connection to the third host, through the switch
    snprintf(text, sizeof text,
             "LC_ALL=C timeout 5 bash -c 'exec 3<>/dev/tcp/%s/9' 2>&1 | "
             "grep -q refused",
             netns_address(n, 2));
    assert_int_equal(in_host(n, 0, text), 0);
    netns_close(&n);
    assert_null(n);
    assert_int_equal(count(getpid()), 0);
}

// What passes at once is as short as the link is slow.
static void bursts_follow_the_rate(void **state)
{
    (void)state;
    static const char *const nets[][2] = {{"100mbit", "25000b"},
                                          {"1mbit", "8Kb"},
                                          {"1gbit", "250000b"},
                                          {"10gbit", "26....b"}};
    for (int i = 0; i < 4; i++) {
        struct netns *n;
        char text[128];
        assert_int_equal(netns_open(&n, nets[i][0], 1), 0);
        snprintf(text, sizeof text,
                 "tc qdisc show dev eth0 | grep -q 'burst %s '", nets[i][1]);
        assert_int_equal(in_host(n, 0, text), 0);
        netns_close(&n);
    }
}

static void hosts_of_a_killed_process_are_removed(void **state)
{
    (void)state;
    struct netns *n;
    int pipes[2];
    char ready;
    assert_int_equal(pipe(pipes), 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (netns_open(&n, "1gbit", 2) || write(pipes[1], "x", 1) != 1)
            _exit(1);
        pause();
    }
    close(pipes[1]);
    assert_int_equal(read(pipes[0], &ready, 1), 1);
    assert_int_equal(count(pid), 3);
    netns_sweep(); // does not touch hosts of a living process
    assert_int_equal(count(pid), 3);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    netns_sweep();
    assert_int_equal(count(pid), 0);
}

// The process that made a namespace is gone, and its process id now belongs to
// another process: this one. That namespace is removed. Those that this process
// made stay.
static void a_reused_process_id_is_recognised(void **state)
{
    (void)state;
    struct netns *n;
    char text[128];
    assert_int_equal(netns_open(&n, "1gbit", 1), 0);
    snprintf(text, sizeof text, "ip netns add ls%d-1-0", (int)getpid());
    for (int i = 0; count(getpid()) < 3; i++) { // others may sweep, too
        assert_true(i < 10);
        if (system(text))
            puts("another launcher took it away");
    }
    netns_sweep();
    assert_int_equal(count(getpid()), 2);
    assert_int_equal(in_host(n, 0, "true"), 0);
    netns_close(&n);
    assert_int_equal(count(getpid()), 0);
}

// What cannot be removed is logged. It is not why the job failed.
static void a_clean_up_hides_no_error(void **state)
{
    (void)state;
    struct netns *n;
    char path[64], text[192];
    assert_int_equal(netns_open(&n, "1gbit", 1), 0);
    snprintf(path, sizeof path, "/run/netns/%s", netns_name(n, 0));
    snprintf(text, sizeof text, "ip netns del %s && mkdir %s", netns_name(n, 0),
             path);
    assert_int_equal(system(text), 0);
    fail("the cause");
    netns_close(&n);
    assert_string_equal(fail_message(), "the cause");
    assert_int_equal(rmdir(path), 0);
}

// `ip netns add` makes an empty file, then mounts the namespace on it. A
// launcher that begins between these two does not take the file away.
static void hosts_that_are_being_made_stay(void **state)
{
    (void)state;
    char path[64];
    snprintf(path, sizeof path, "/run/netns/ls%d-1-sw", (int)getpid());
    FILE *f = fopen(path, "wx");
    assert_non_null(f);
    fclose(f);
    netns_sweep();
    assert_int_equal(unlink(path), 0);
}

// In a time namespace the same process seems to have started at another time.
static void another_clock_removes_no_hosts(void **state)
{
    (void)state;
    enum { NEWTIME = 0x80 }; // CLONE_NEWTIME
    struct netns *n;
    int status;
    assert_int_equal(netns_open(&n, "1gbit", 1), 0);
    pid_t pid = fork();
    if (pid == 0) {
        FILE *f =
            unshare(NEWTIME) ? NULL : fopen("/proc/self/timens_offsets", "w");
        if (!f || fputs("boottime 1000 0\n", f) < 0 || fclose(f))
            _exit(TEST_SKIPPED);
        pid_t there = fork(); // only children are in the new namespace
        if (there == 0) {
            netns_sweep();
            _exit(0);
        }
        _exit(waitpid(there, &status, 0) == there && status == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(status == 0 || WEXITSTATUS(status) == TEST_SKIPPED);
    assert_int_equal(count(getpid()), 2);
    netns_close(&n);
}

int main(void)
{
    struct netns *n = NULL;
    if (geteuid() || netns_open(&n, "1gbit", 1)) {
        printf("skipped: no network namespaces here: %s\n",
               geteuid() ? "not root" : fail_message());
        return TEST_SKIPPED;
    }
    netns_close(&n);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_nets_are_refused),
        cmocka_unit_test(hosts_reach_each_other),
        cmocka_unit_test(bursts_follow_the_rate),
        cmocka_unit_test(hosts_of_a_killed_process_are_removed),
        cmocka_unit_test(a_reused_process_id_is_recognised),
        cmocka_unit_test(a_clean_up_hides_no_error),
        cmocka_unit_test(hosts_that_are_being_made_stay),
        cmocka_unit_test(another_clock_removes_no_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
