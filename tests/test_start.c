// test_start.c - Open MPI would wait for ever for a rank that does not start,
// and for a rank that mpirun does not hear any more. The launcher ends such a
// job at a deadline, and mpirun with it.

#include "lockstep/supervise.h"

#include "base/base.h"
#include "lockstep/progress.h"

#include "tests/test.h"

// Runs a script in place of mpirun, for two workers and a server. A rank may
// print nothing for `start_s` seconds before it has joined the others, and for
// `quiet_s` seconds after.
static int run(const char *script, double start_s, double quiet_s)
{
    struct job *j = NULL;
    struct progress *progress = NULL;
    char text[256], sh[] = "/bin/sh", flag[] = "-c";
    char *argv[] = {sh, flag, text, NULL};
    struct job_config config = {.children = 1,
                                .log_path = "",
                                .grace_s = 0.1,
                                .mpirun = {.ranks = 3,
                                           .start_s = start_s,
                                           .quiet_s = quiet_s}};
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

#define ALL "for r in 0 1 2; do echo \"[1,$r]<stdout>:"

static void silence_ends_the_start(void **state)
{
    (void)state;
    assert_int_equal(run("echo '[1,0]<stdout>:@here'; exec sleep 100", 0.2, 99),
                     -1);
    assert_string_equal(fail_message(),
                        "2 of 3 processes did not start within 0.2 s: rank 1, "
                        "server 0; try: a larger timeout=");
}

static void a_rank_that_prints_has_started(void **state)
{
    (void)state;
    assert_int_equal(run(ALL "@here\"; done; sleep 0.3", 0.2, 100), 0);
    assert_int_equal(run("sleep 0.3", 0, 0), 0); // no limit
}

// A frozen mpirun hands nothing on, and SIGTERM does not end it.
static void a_frozen_mpirun_is_killed(void **state)
{
    (void)state;
    assert_int_equal(run(ALL "@here\"; done; kill -STOP $$", 100, 0.3), -1);
    assert_string_equal(fail_message(),
                        "mpirun: no sign of life of 3 of 3 processes within "
                        "0.3 s: rank 0, rank 1, server 0");
    assert_int_equal(run(ALL "@here\"; done; while sleep 0.1; do "
                             "echo '[1,0]<stdout>:@alive'; done",
                         100, 2),
                     -1);
    assert_string_equal(fail_message(),
                        "mpirun: no sign of life of 2 of 3 processes within "
                        "2 s: rank 1, server 0");
}

// The ranks of a job have ended well, and mpirun does not notice it.
static void mpirun_cannot_outlive_its_ranks(void **state)
{
    (void)state;
    assert_int_equal(run(ALL "@here\"; done; " ALL "@done\"; done; "
                             "kill -STOP $$",
                         100, 100),
                     0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silence_ends_the_start),
        cmocka_unit_test(a_rank_that_prints_has_started),
        cmocka_unit_test(a_frozen_mpirun_is_killed),
        cmocka_unit_test(mpirun_cannot_outlive_its_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
