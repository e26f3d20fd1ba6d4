// test_start.c - Open MPI would wait for ever for a rank that does not start.
// The launcher ends such a job at a deadline.

#include "lockstep/supervise.h"

#include "base/base.h"
#include "lockstep/cores.h"
#include "lockstep/progress.h"

#include <string.h>
#include <unistd.h>

#include "tests/test.h"

// Runs a script in place of mpirun, for two workers and a server. A rank has
// started once it has printed a line.
static int run(const char *script, double start_s)
{
    struct job *j = NULL;
    struct progress *progress = NULL;
    char text[256], sh[] = "/bin/sh", flag[] = "-c";
    char *argv[] = {sh, flag, text, NULL};
    struct job_config config = {.children = 1,
                                .log_path = "",
                                .grace_s = 60,
                                .ranks = 3,
                                .start_s = start_s};
    struct job_child child = {.kind = JOB_MPIRUN, .rank = 2, .argv = argv};
    snprintf(text, sizeof text, "%s", script);
    assert_int_equal(progress_open(&progress), 0);
    config.progress = progress;
    assert_int_equal(job_open(&j, &config), 0);
    assert_int_equal(job_start(j, &child), 0);
    int rc = job_run(j);
    job_close(&j);
    progress_close(&progress);
    return rc;
}

static void silence_ends_the_start(void **state)
{
    (void)state;
    assert_int_equal(run("echo '[1,0]<stdout>:@here'; exec sleep 100", 0.2),
                     -1);
    assert_string_equal(fail_message(),
                        "2 of 3 processes did not start within 0.2 s: rank 1, "
                        "server 0; try: a larger timeout=");
}

static void a_rank_that_prints_has_started(void **state)
{
    (void)state;
    assert_int_equal(run("for r in 0 1 2; do echo \"[1,$r]<stderr>:x\"; done",
                         100),
                     0);
    assert_int_equal(run("sleep 0.3", 0), 0); // no limit
}

// A worker that the system does not keep on its cores says so: its times are
// not those of a worker alone.
static void cores_that_cannot_be_had_are_named(void **state)
{
    (void)state;
    cpu_set_t none;
    char text[256] = "";
    int ends[2], before = dup(STDERR_FILENO);
    CPU_ZERO(&none);
    CPU_SET(CPU_SETSIZE - 1, &none);
    assert_int_equal(pipe(ends), 0);
    assert_true(before >= 0 && dup2(ends[1], STDERR_FILENO) >= 0);
    cores_take(&none);
    dup2(before, STDERR_FILENO);
    close(before);
    close(ends[1]);
    assert_true(read(ends[0], text, sizeof text - 1) > 0);
    close(ends[0]);
    assert_non_null(strstr(text, "cores: Invalid argument: this worker is "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silence_ends_the_start),
        cmocka_unit_test(a_rank_that_prints_has_started),
        cmocka_unit_test(cores_that_cannot_be_had_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
