// test_ps_memory.c - a slow worker cannot make a server take much memory. The
// server holds slices that the other workers have sent before. Their bytes have
// a bound, for any delay and any size of the gradient.

#include "base/base.h"
#include "ps_wire/wire.h"
#include "tests/ps_servers.h"
#include "tests/ps_workers.h"

#include <stdlib.h>

#include "tests/test.h"

enum { WORLD = 16, N = 1 << 20, SLICE_KB = 32, STEPS = 4 };
enum { KB_VECTOR = N / 256, KB_SLACK = 12 << 10 };

// A row of /proc/PID/status in KiB; 0 where the process has ended.
static long status_kb(pid_t pid, const char *row)
{
    char path[64], line[256];
    long kb = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, row, strlen(row)))
            kb = strtol(line + strlen(row), NULL, 10);
    if (f)
        fclose(f);
    return kb;
}

// The server may take memory for the parameters, their sum, and the slices that
// ps_window() allows. The slack is for the sockets, ZeroMQ and memory that
// malloc keeps. Without a bound, the fifteen other workers would have sent
// fifteen vectors before rank 0 sends its first slice.
static void a_slow_worker_does_not_fill_the_server(void **state)
{
    const char *opts = *state;
    struct ps_servers s;
    pid_t pids[WORLD];
    assert_int_equal(ps_servers_start(&s, 1, 1, 60, ""), 0);
    long before = status_kb(s.pids[0], "VmRSS:"), peak = before;
    struct ps_workers j = {.progress = ps_progress_make(),
                           .world = WORLD,
                           .opts = opts,
                           .endpoints = s.endpoints,
                           .curve = "",
                           .timeout_s = 60,
                           .steps = STEPS,
                           .slow_us = 200000,
                           .n = N,
                           .slice_kb = SLICE_KB};
    for (int r = 0; r < WORLD; r++)
        pids[r] = ps_workers_start(&j, r);
    for (int r = 0; r < WORLD; r++) {
        ps_workers_await(&j, r, STEPS - 1);
        long now = status_kb(s.pids[0], "VmHWM:");
        peak = now > peak ? now : peak;
    }
    for (int r = 0; r < WORLD; r++) {
        ps_workers_join(pids[r]);
        if (j.progress->end[r].rc)
            print_message("rank %d: %s\n", r, j.progress->end[r].why);
        assert_int_equal(j.progress->end[r].rc, 0);
    }
    assert_int_equal(ps_servers_stop(&s), 1);
    long flight = WORLD * ps_window(WORLD) * SLICE_KB;
    long bound = 2 * KB_VECTOR + flight + KB_SLACK;
    print_message("%s: the server grew by %ld KiB; parameters %d, sum %d, in "
                  "flight at most %ld, slack %d: bound %ld; %d gradients: %d\n",
                  opts, peak - before, KB_VECTOR, KB_VECTOR, flight, KB_SLACK,
                  bound, WORLD - 1, (WORLD - 1) * KB_VECTOR);
    assert_true(before > 0 && bound < (WORLD - 1) * KB_VECTOR);
    if (!TEST_SANITIZED) // sanitizers keep freed memory
        assert_true(peak - before <= bound);
}

int main(void)
{
    static char opts[][24] = {"update=server", "update=worker", "wire=fp16",
                              "consistency=asp"};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(a_slow_worker_does_not_fill_the_server,
                                  opts[0]),
        cmocka_unit_test_prestate(a_slow_worker_does_not_fill_the_server,
                                  opts[1]),
        cmocka_unit_test_prestate(a_slow_worker_does_not_fill_the_server,
                                  opts[2]),
        cmocka_unit_test_prestate(a_slow_worker_does_not_fill_the_server,
                                  opts[3]),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
