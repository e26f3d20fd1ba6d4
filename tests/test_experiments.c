// test_experiments.c - lockstep can run every file of experiments/: its keys
// are known, the settings of each cell are compatible, and its figures exist.

#include "base/base.h"
#include "config/config.h"
#include "lockstep/experiment.h"

#include <glob.h>
#include <string.h>
#include <unistd.h>

#include "tests/test.h"

static void check_figures(const struct experiment *e)
{
    char list[EXP_TEXT], path[256], *save;
    strcpy(list, e->figures);
    for (char *name = strtok_r(list, " \n", &save); name;
         name = strtok_r(NULL, " \n", &save)) {
        snprintf(path, sizeof path, LOCKSTEP_SOURCE "/plots/%s.gp", name);
        if (access(path, R_OK))
            print_error("%s: no figure %s\n", e->name, name);
        assert_int_equal(access(path, R_OK), 0);
    }
}

static void every_experiment_is_valid(void **state)
{
    (void)state;
    glob_t files;
    assert_int_equal(glob(LOCKSTEP_SOURCE "/experiments/*.ini", 0, NULL,
                          &files),
                     0);
    assert_true(files.gl_pathc > 0);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        struct experiment *e = NULL;
        int rc = experiment_open(&e, files.gl_pathv[i], 0, NULL);
        if (rc)
            print_error("%s: %s\n", files.gl_pathv[i], fail_message());
        assert_int_equal(rc, 0);
        assert_true(e->ncells > 0);
        check_figures(e);
        experiment_close(&e);
    }
    globfree(&files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_experiment_is_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
