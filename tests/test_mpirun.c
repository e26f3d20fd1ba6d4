// test_mpirun.c - reads mpirun's own lines, which say what happened to its
// ranks, and checks which cores ranks get.

#include "launch/mpirun.h"

#include "base/base.h"
#include "launch/cores.h"

#include <signal.h>
#include <sys/wait.h>

#include "tests/test.h"

static void cores_are_divided_among_ranks(void **state)
{
    (void)state;
    int n = cores_count();
    cpu_set_t all, mine, both;
    bool over;
    CPU_ZERO(&all);
    for (int i = 0; i < n; i++) {
        assert_int_equal(cores_share(i, n, &mine, &over), 0);
        assert_false(over);
        assert_int_equal(CPU_COUNT(&mine), 1);
        CPU_AND(&both, &all, &mine);
        assert_int_equal(CPU_COUNT(&both), 0);
        CPU_OR(&all, &all, &mine);
    }
    assert_int_equal(CPU_COUNT(&all), n);
    assert_int_equal(cores_share(0, 1, &mine, &over), 0);
    assert_int_equal(CPU_COUNT(&mine), n);
    assert_int_equal(cores_share(n, n + 1, &mine, &over), 0);
    assert_true(over);
    assert_int_equal(CPU_COUNT(&mine), 1);
}

static void lines_of_open_mpi_4_are_read(void **state)
{
    (void)state;
    struct mpirun_report m = {.words = &openmpi_4};
    char tagged[] = "[1,3]<stderr>:[3] boom", *text = tagged;
    char name[JOB_NAME] = "mpirun";
    const char *last = "";
    int rank = -1, stream = 0, status = 0;
    assert_true(mpirun_line(&m, &text, &rank, &stream));
    assert_int_equal(rank, 3);
    assert_int_equal(stream, 1);
    assert_string_equal(text, "boom");
    char said[] = "  Process name: [[28543,1],3]", *p = said;
    assert_false(mpirun_line(&m, &p, &rank, &stream));
    char code[] = "  Exit code:    5";
    p = code;
    assert_false(mpirun_line(&m, &p, &rank, &stream));
    mpirun_cause(&m, name, &status, &last);
    assert_string_equal(name, "rank 3");
    assert_int_equal(WEXITSTATUS(status), 5);
    assert_string_equal(last, "boom");
    mpirun_begin(&m, 3); // lines before the first step are dropped
    assert_string_equal(last, "");
    char noticed[] = "mpirun noticed that process rank 1 with PID 0 on node x "
                     "exited on signal 9 (Killed).";
    p = noticed;
    assert_false(mpirun_line(&m, &p, &rank, &stream));
    mpirun_cause(&m, name, &status, &last);
    assert_string_equal(name, "rank 1");
    assert_int_equal(WTERMSIG(status), SIGKILL);
    char pieces[] = "[1,0]<stdout>:a [1,0]<stdout>:row of[1,0]<stdout>: one";
    p = pieces;
    assert_true(mpirun_line(&m, &p, &rank, &stream));
    assert_string_equal(p, "a row of one");
    char wild[] = "[1,99999999]<stdout>:x";
    p = wild;
    assert_false(mpirun_line(&m, &p, &rank, &stream));
    mem_free(m.last);
}

static void take_lines(struct mpirun_report *m, const char *const *lines)
{
    for (; *lines; lines++) {
        char copy[128], *p = copy;
        int rank, stream;
        snprintf(copy, sizeof copy, "%s", *lines);
        assert_false(mpirun_line(m, &p, &rank, &stream));
    }
}

static void lines_of_open_mpi_5_are_read(void **state)
{
    (void)state;
    static const char *const exited[] = {
        "prterun detected that one or more processes exited with non-zero "
        "status,",
        "thus causing the job to be terminated. The first process was:",
        "",
        "   Process name: [prterun-vm-7193@1,2]",
        "   Exit code:    3",
        NULL};
    static const char *const killed[] = {
        "prterun noticed that process rank 1 with PID 7222 on node v exited on",
        "signal 9 (Killed).", NULL};
    static const char *const odd[] = {
        "-------", "PRTE detected a parse error in the hostfile:",
        "",        "   /tmp/odd",
        "",        "-------",
        "more",    NULL};
    struct mpirun_report m = {.words = &openmpi_5};
    char name[JOB_NAME] = "mpirun";
    char tagged[] = "[1,3]<stdout>: a[1,3]<stdout>: b", *p = tagged;
    const char *last = "";
    int rank = -1, stream = -1, status = 0;
    assert_true(mpirun_line(&m, &p, &rank, &stream));
    assert_int_equal(rank, 3);
    assert_string_equal(p, "ab");
    take_lines(&m, exited);
    mpirun_cause(&m, name, &status, &last);
    assert_string_equal(name, "rank 2");
    assert_int_equal(WEXITSTATUS(status), 3);
    take_lines(&m, killed);
    mpirun_cause(&m, name, &status, &last);
    assert_string_equal(name, "rank 1");
    assert_int_equal(WTERMSIG(status), SIGKILL);
    mem_free(m.last);
    m = (struct mpirun_report){.words = &openmpi_5};
    take_lines(&m, odd);
    mpirun_cause(&m, name, &status, &last);
    assert_string_equal(last, "PRTE detected a parse error in the hostfile: "
                              "/tmp/odd");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cores_are_divided_among_ranks),
        cmocka_unit_test(lines_of_open_mpi_4_are_read),
        cmocka_unit_test(lines_of_open_mpi_5_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
