// test_supervise.c - jobs of shell scripts that fail in different ways. The
// error names the first failure and quotes its last line, and no process is
// left.

#include "base/base.h"
#include "tests/job_of_scripts.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

static void lines_of_all_go_to_the_log(void **state)
{
    (void)state;
    struct fixture f = {0};
    char log[1024];
    open_job(&f, false);
    script(&f, JOB_WORKER, 0, "echo '[0] hello' >&2; printf 'no newline'");
    script(&f, JOB_WORKER, 1, "echo there; echo '@progress rank=1 step=2'");
    assert_int_equal(job_run(f.job), 0);
    read_log(&f, log, sizeof log);
    assert_non_null(strstr(log, "[0] hello\n"));
    assert_null(strstr(log, "[0] [0]"));
    assert_non_null(strstr(log, "[0] no newline\n"));
    assert_non_null(strstr(log, "[1] there\n"));
    assert_null(strstr(log, "@progress"));
    close_job(&f);
}

static void first_failure_is_named(void **state)
{
    (void)state;
    struct fixture f = {0};
    char first[256], second[256];
    open_job(&f, false);
    snprintf(first, sizeof first,
             "echo '@progress rank=0 step=7 steps=9 loss=1'; "
             ": > %s/said; sleep 100",
             f.dir);
    snprintf(second, sizeof second,
             "until [ -e %s/said ]; do sleep 0.02; done; "
             "echo boom >&2; exit 3",
             f.dir);
    script(&f, JOB_WORKER, 0, first);
    script(&f, JOB_WORKER, 1, second);
    script(&f, JOB_WORKER, 2, "trap 'exit 4' TERM; sleep 100 & wait");
    assert_int_equal(job_run(f.job), -1);
    assert_says("rank 1: exit code 3 after step 7; last line: boom");
    close_job(&f);
}

// A job of one worker, which runs `text`, ends with `error`.
static void assert_fails(const char *text, const char *error)
{
    struct fixture f = {0};
    open_job(&f, false);
    script(&f, JOB_WORKER, 0, text);
    assert_int_equal(job_run(f.job), -1);
    assert_string_equal(fail_message(), error);
    close_job(&f);
}

// A line that a worker printed before the first step does not explain a later
// failure. A line after the first step does. Only the lines of one stream have
// an order.
static void early_lines_do_not_explain_a_failure(void **state)
{
    (void)state;
    assert_fails("echo 'a worker needs 2 GiB'; "
                 "echo '@progress rank=0 step=7 steps=9 loss=1'; sleep 0.1; "
                 "exit 3",
                 "rank 0: exit code 3 after step 7");
    assert_fails("echo begins >&2; "
                 "echo '@progress rank=0 step=7 steps=9 loss=1'; "
                 "sleep 0.1; echo boom >&2; exit 3",
                 "rank 0: exit code 3 after step 7; last line: boom");
}

// The error of the process is quoted, also if the process ends much later.
static void its_own_error_is_quoted(void **state)
{
    (void)state;
    struct fixture f = {0};
    char log[1024];
    open_job(&f, false);
    script(&f, JOB_WORKER, 0, "sleep 100");
    script(&f, JOB_WORKER, 1,
           "echo '@error no data; try: data=x' >&2; sleep 0.3; echo more; "
           "exit 3");
    assert_int_equal(job_run(f.job), -1);
    assert_string_equal(fail_message(), "rank 1: no data; try: data=x");
    assert_false(job_crashed(f.job));
    read_log(&f, log, sizeof log);
    assert_non_null(strstr(log, "[1] error: no data; try: data=x\n"));
    close_job(&f);
    assert_fails("echo '@error a bug' >&2; kill -ABRT $$",
                 "rank 0: killed by signal 6 (SIGABRT, Aborted): a bug");
    assert_fails("echo '@error no model' >&2; exit 1", "no model");
    open_job(&f, false);
    script(&f, JOB_WORKER, 0, "exit 2");
    assert_int_equal(job_run(f.job), -1);
    assert_string_equal(fail_message(), "rank 0: exit code 2");
    assert_true(job_crashed(f.job));
    close_job(&f);
}

static void a_killed_worker_ends_the_job(void **state)
{
    (void)state;
    struct fixture f = {.grace_s = 0.5};
    open_job(&f, false);
    script(&f, JOB_SERVER, 0, "sleep 100");
    script(&f, JOB_WORKER, 0, "trap '' TERM; while :; do sleep 0.1; done");
    script(&f, JOB_WORKER, 1, "echo alive; sleep 0.2; kill -9 $$");
    assert_int_equal(job_run(f.job), -1);
    assert_says("rank 1: killed by signal 9 (SIGKILL, Killed)");
    assert_says("last line: alive");
    close_job(&f);
}

static void a_dead_server_ends_the_job(void **state)
{
    (void)state;
    struct fixture f = {0};
    open_job(&f, false);
    script(&f, JOB_SERVER, 0, "sleep 100");
    script(&f, JOB_SERVER, 1, "sleep 0.1; kill -SEGV $$");
    script(&f, JOB_WORKER, 0, "sleep 100");
    assert_int_equal(job_run(f.job), -1);
    assert_says("server 1: killed by signal 11");
    close_job(&f);
}

static void a_program_that_is_not_there(void **state)
{
    (void)state;
    struct fixture f = {0};
    char path[] = "/no/such/program";
    char *argv[] = {path, NULL};
    struct job_child child = {.kind = JOB_WORKER, .argv = argv};
    open_job(&f, false);
    assert_int_equal(job_start(f.job, &child), 0);
    assert_int_equal(job_run(f.job), -1);
    assert_says("/no/such/program: No such file");
    close_job(&f);
}

static void servers_end_with_the_workers(void **state)
{
    (void)state;
    struct fixture f = {.grace_s = 0.5};
    open_job(&f, false);
    script(&f, JOB_SERVER, 0, "sleep 100");
    script(&f, JOB_SERVER, 1, "trap '' TERM; while :; do sleep 0.1; done");
    script(&f, JOB_WORKER, 0, "exit 0");
    assert_int_equal(job_run(f.job), 0);
    close_job(&f);
}

static void endpoints_are_read(void **state)
{
    (void)state;
    struct fixture f = {0};
    char answer[64];
    open_job(&f, false);
    script(&f, JOB_SERVER, 0,
           "echo noise; echo '@endpoint tcp://h:1'; sleep 9");
    assert_int_equal(job_answer(f.job, "@endpoint ", 10, answer, sizeof answer),
                     0);
    assert_string_equal(answer, "tcp://h:1");
    script(&f, JOB_SERVER, 1, "echo 'port in use' >&2; exit 1");
    assert_int_equal(job_answer(f.job, "@endpoint ", 10, answer, sizeof answer),
                     -1);
    assert_says("server 1: exit code 1");
    assert_says("port in use");
    close_job(&f);
}

static void silence_has_a_deadline(void **state)
{
    (void)state;
    struct fixture f = {0};
    char answer[64];
    open_job(&f, false);
    script(&f, JOB_SERVER, 0, "sleep 100");
    assert_int_equal(job_answer(f.job, "@endpoint ", 0.2, answer,
                                sizeof answer),
                     -1);
    assert_says("server 0: no answer within 0.2 s");
    close_job(&f);
}

static void elastic_jobs_outlive_a_worker(void **state)
{
    (void)state;
    struct fixture f = {0};
    char log[1024];
    open_job(&f, true);
    script(&f, JOB_WORKER, 0, "kill -9 $$");
    script(&f, JOB_WORKER, 1, "sleep 0.3; exit 0");
    assert_int_equal(job_run(f.job), 0);
    read_log(&f, log, sizeof log);
    assert_non_null(strstr(log, "rank 0: killed by signal 9"));
    close_job(&f);
    open_job(&f, true);
    script(&f, JOB_WORKER, 0, "exit 1");
    assert_int_equal(job_run(f.job), -1);
    close_job(&f);
}

static double once(void *ctx, int rank, bool lost, char *why, size_t size)
{
    struct fixture *f = ctx;
    size_t at = strlen(why);
    assert_true(lost);
    snprintf(why + at, size - at, "; rank %d was asked for", rank);
    return f->asked++ ? -1 : 0.1;
}

static int come_back(void *ctx, struct job *j, int rank)
{
    struct fixture *f = ctx;
    assert_ptr_equal(j, f->job);
    return script(f, JOB_WORKER, rank, "echo back; kill -9 $$");
}

static int come_late(void *ctx, struct job *j, int rank)
{
    (void)j;
    return script(ctx, JOB_WORKER, rank, "sleep 100");
}

// A single worker is also started again. When it dies a second time, the job
// ends.
static void a_worker_comes_back(void **state)
{
    (void)state;
    struct fixture f = {0};
    struct job_again again = {once, come_back, &f};
    char log[1024];
    f.again = &again;
    open_job(&f, true);
    script(&f, JOB_WORKER, 0, "exit 1");
    assert_int_equal(job_run(f.job), -1);
    assert_int_equal(f.asked, 2);
    read_log(&f, log, sizeof log);
    assert_non_null(
        strstr(log, "exit code 1; the other workers go on; rank 0 was"));
    assert_non_null(strstr(log, "[0] back\n"));
    assert_non_null(strstr(log, "rank 0: killed by signal 9"));
    close_job(&f);
}

static int cannot_come_back(void *ctx, struct job *j, int rank)
{
    (void)ctx, (void)j, (void)rank;
    return fail("fork: Resource temporarily unavailable");
}

// A worker whose restart fails is lost like any other: the job must not wait,
// with its servers, for a worker that will not come.
static void a_failed_restart_is_a_loss(void **state)
{
    (void)state;
    struct fixture f = {.grace_s = 0.2};
    struct job_again again = {once, cannot_come_back, &f};
    char log[1024];
    f.again = &again;
    open_job(&f, true);
    script(&f, JOB_SERVER, 0, "sleep 1000");
    script(&f, JOB_WORKER, 0, "exit 1");
    assert_int_equal(job_run(f.job), -1);
    assert_int_equal(f.asked, 2);
    read_log(&f, log, sizeof log);
    assert_non_null(strstr(log, "rank 0: not started again: fork: Resource"));
    close_job(&f);
}

// A worker that is started again when the servers have ended cannot join, so
// the job does not wait for it.
static void a_late_worker_is_not_waited_for(void **state)
{
    (void)state;
    struct fixture f = {.grace_s = 0.2};
    struct job_again again = {once, come_late, &f};
    f.again = &again;
    open_job(&f, true);
    script(&f, JOB_SERVER, 0, "sleep 0.5");
    script(&f, JOB_WORKER, 0, "sleep 0.5");
    script(&f, JOB_WORKER, 1, "exit 1");
    assert_int_equal(job_run(f.job), 0);
    assert_int_equal(f.asked, 1);
    close_job(&f);
}

static void signals_are_forwarded(void **state)
{
    (void)state;
    struct fixture f = {0};
    char log[1024];
    open_job(&f, false);
    script(&f, JOB_WORKER, 0,
           "trap 'echo told; exit 0' INT; kill -INT $PPID; "
           "while :; do sleep 0.1; done");
    assert_int_equal(job_run(f.job), 128 + SIGINT);
    read_log(&f, log, sizeof log);
    assert_non_null(strstr(log, "[0] told\n"));
    close_job(&f);
}

// There are many stray processes, each a child of the one before: more than are
// killed in a second.
static void strays_are_killed(void **state)
{
    (void)state;
    struct fixture f = {0};
    char text[512], path[128];
    open_job(&f, false);
    snprintf(path, sizeof path, "%s/pid", f.dir);
    snprintf(text, sizeof text,
             "echo '[ $1 = 0 ] && echo $$ > %s || setsid sh %s/more $(($1 - 1))"
             " & sleep 100' > %s/more; sh %s/more 120 >/dev/null 2>&1 & "
             "while [ ! -s %s ]; do sleep 0.05; done",
             path, f.dir, f.dir, f.dir, path);
    script(&f, JOB_WORKER, 0, text);
    assert_int_equal(job_run(f.job), 0);
    FILE *file = fopen(path, "r");
    int pid = 0;
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%d", &pid), 1);
    fclose(file);
    assert_int_equal(kill(pid, 0), 0);
    close_job(&f);
    assert_int_equal(kill(pid, 0), -1);
}

// If the launcher itself is killed, its workers end, too.
static void workers_die_with_the_launcher(void **state)
{
    (void)state;
    int tell[2];
    struct fixture f = {0};
    make_folder(&f);
    assert_int_equal(pipe2(tell, O_CLOEXEC), 0);
    pid_t launcher = fork();
    if (launcher == 0) {
        char text[128];
        open_job_here(&f, false);
        snprintf(text, sizeof text, "echo $$ > /proc/%d/fd/%d; sleep 100",
                 (int)getpid(), tell[1]);
        script(&f, JOB_WORKER, 0, text);
        job_run(f.job);
        _exit(0);
    }
    char pid_text[32] = "";
    assert_true(read(tell[0], pid_text, sizeof pid_text - 1) > 0);
    int pid = atoi(pid_text);
    assert_true(pid > 1);
    kill(launcher, SIGKILL);
    assert_int_equal(waitpid(launcher, NULL, 0), launcher);
    bool gone = false;
    for (int i = 0; i < 500 && !gone; i++) {
        waitpid(pid, NULL, WNOHANG); // our child, if we are a subreaper
        gone = kill(pid, 0) != 0;
        usleep(10000);
    }
    assert_true(gone);
    close(tell[0]);
    close(tell[1]);
    remove_folder(&f);
}

// If mpirun names no rank, its first paragraph is the cause.
static void mpirun_could_not_begin(void **state)
{
    (void)state;
    struct fixture f = {0};
    open_job(&f, false);
    script(&f, JOB_MPIRUN, 0,
           "printf '%s\\n' ------- 'Open RTE was unable to open the hostfile:' "
           "'    hosts.txt' 'Check to make sure.' ------- ------- "
           "'An internal error' -------; exit 1");
    assert_int_equal(job_run(f.job), -1);
    assert_string_equal(fail_message(),
                        "mpirun: exit code 1; last line: Open RTE was unable "
                        "to open the hostfile: hosts.txt Check to make sure.");
    assert_true(job_crashed(f.job));
    close_job(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_of_all_go_to_the_log),
        cmocka_unit_test(first_failure_is_named),
        cmocka_unit_test(early_lines_do_not_explain_a_failure),
        cmocka_unit_test(its_own_error_is_quoted),
        cmocka_unit_test(a_killed_worker_ends_the_job),
        cmocka_unit_test(a_dead_server_ends_the_job),
        cmocka_unit_test(a_program_that_is_not_there),
        cmocka_unit_test(servers_end_with_the_workers),
        cmocka_unit_test(endpoints_are_read),
        cmocka_unit_test(silence_has_a_deadline),
        cmocka_unit_test(elastic_jobs_outlive_a_worker),
        cmocka_unit_test(a_worker_comes_back),
        cmocka_unit_test(a_failed_restart_is_a_loss),
        cmocka_unit_test(a_late_worker_is_not_waited_for),
        cmocka_unit_test(signals_are_forwarded),
        cmocka_unit_test(strays_are_killed),
        cmocka_unit_test(workers_die_with_the_launcher),
        cmocka_unit_test(mpirun_could_not_begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
