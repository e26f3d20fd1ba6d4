// test_start.c - Open MPI would wait for ever for a rank that does not start,
// and for a rank that mpirun does not hear any more. The launcher ends such a
// job at a deadline, and mpirun with it; also a process that was stopped.

#include "launch/supervise.h"

#include "base/base.h"
#include "launch/cores.h"
#include "launch/progress.h"

#include <string.h>
#include <unistd.h>

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

// Runs two scripts, the first as a child of `kind`, the other as a worker.
static int run_two(enum job_kind kind, const char *first, const char *second,
                   bool elastic)
{
    struct job *j = NULL;
    struct progress *progress = NULL;
    char sh[] = "/bin/sh", flag[] = "-c", text[2][256];
    struct job_config config = {.children = 2,
                                .log_path = "",
                                .grace_s = 0.2,
                                .stopped_s = kind == JOB_SERVER ? 100 : 0.3,
                                .elastic = elastic};
    snprintf(text[0], sizeof text[0], "%s", first);
    snprintf(text[1], sizeof text[1], "%s", second);
    assert_int_equal(progress_open(&progress), 0);
    config.progress = progress;
    assert_int_equal(job_open(&j, &config), 0);
    for (int i = 0; i < 2; i++) {
        char *argv[] = {sh, flag, text[i], NULL};
        struct job_child child = {.kind = i ? JOB_WORKER : kind,
                                  .rank = i,
                                  .argv = argv};
        assert_int_equal(job_start(j, &child), 0);
    }
    int rc = job_run(j);
    job_close(&j);
    progress_close(&progress);
    return rc;
}

// The other worker is done and does not miss it.
static void a_stopped_worker_is_killed(void **state)
{
    (void)state;
    static const char stop[] = "kill -STOP $$";
    assert_int_equal(run_two(JOB_WORKER, "exit 0", stop, false), -1);
    assert_non_null(strstr(fail_message(), "rank 1: killed by signal 9"));
    assert_int_equal(run_two(JOB_WORKER, "exit 0", stop, true), 0);
}

// In an elastic job, too, a worker that gives up on a stopped server was not
// lost alone: the job failed.
static void workers_need_their_server(void **state)
{
    (void)state;
    assert_int_equal(
        run_two(JOB_SERVER, "kill -STOP $$; sleep 100",
                "read p rest < /proc/$PPID/task/$PPID/children; "
                "until grep -q ') T ' /proc/$p/stat; do sleep 0.02; done; "
                "echo '@error server 0: no answer' >&2; exit 1",
                true),
        -1);
    assert_string_equal(fail_message(), "rank 1: server 0: no answer");
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
        cmocka_unit_test(a_frozen_mpirun_is_killed),
        cmocka_unit_test(mpirun_cannot_outlive_its_ranks),
        cmocka_unit_test(a_stopped_worker_is_killed),
        cmocka_unit_test(workers_need_their_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
